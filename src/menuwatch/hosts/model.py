"""What is known of one host."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Self
from urllib.parse import urlsplit

from menuwatch.core.settings import Settings

FIRST_TURN = 1.0
"""Seconds that a session's first turn may be away: longer waits are for the task in the queue, not for a worker."""


def host_of(url: str) -> str:
    """The host of an address as its row is named: in lower case, with its port where the address names one, without a login."""
    return urlsplit(url).netloc.rpartition("@")[2].lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an operator allows: `rate` in requests a second, `burst` requests that may follow each other at once, `concurrency`
    identities that talk to the host at the same time, `min_gap` seconds between two requests."""

    rate: float = 2.0
    burst: int = 4
    concurrency: int = 6
    min_gap: float = 0.0

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Those of a host about which nobody said anything else."""
        return cls(
            rate=settings.host_rate,
            burst=settings.host_burst,
            concurrency=settings.host_concurrency,
            min_gap=settings.host_min_gap_seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a host has taken it so far: the part of its row that events change.

    `pace` is the present rate, at most `rate`. `refused` holds the identities (proxy, profile) that were refused since one was let in.
    """

    rate: float
    pace: float
    paced_at: datetime
    slowed_at: datetime | None = None
    cooldown_until: datetime | None = None
    cooldown_reason: str | None = None
    throttles: int = 0
    troubles: int = 0
    circuit: str = "closed"
    circuit_opened_at: datetime | None = None
    circuit_until: datetime | None = None
    circuit_opens: int = 0
    circuit_reason: str | None = None
    refused: tuple[tuple[int, str], ...] = ()
    last_ok_at: datetime | None = None
    last_refused_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One row of `hosts` as people see it. `leases` counts the identities that talk to it at this moment."""

    host: str
    rate: float
    burst: int
    concurrency: int
    min_gap: float
    paused_at: datetime | None
    paused_reason: str | None
    pace: float
    cooldown_until: datetime | None
    cooldown_reason: str | None
    throttles: int
    circuit: str
    circuit_opened_at: datetime | None
    circuit_until: datetime | None
    circuit_opens: int
    circuit_reason: str | None
    refused: int
    last_ok_at: datetime | None
    last_refused_at: datetime | None
    robots_checked_at: datetime | None
    robots_status: int | None
    crawl_delay: float | None
    leases: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEvent:
    """Something that befell a host. `kind` is one of `cooldown`, `slower`, `circuit_opened`, `circuit_closed`, `changed`, `robots`."""

    kind: str
    reason: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Robots:
    """A host's robots.txt: the last `body` that could be read (empty: there is none; None: none ever could), `age` seconds ago, and
    in how many seconds it is to be asked for again; `status` is the last answer's."""

    status: int | None
    body: str | None
    age: float
    due_in: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Whether a host may be asked. `code` None: yes; `wait` in seconds, None where only a person can change it. `next_turn`
    is in how many seconds the next request could be made, None (or less than 0) where that is at once."""

    host: str
    code: str | None
    reason: str | None
    wait: float | None
    leases: int
    concurrency: int
    next_turn: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether one more identity could begin to talk to it now."""
        return self.code is None and self.leases < self.concurrency and (self.next_turn or 0) <= FIRST_TURN
