"""What is known of one host."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an operator allows: `rate` in requests a second, `burst` requests that may follow each other at once, `concurrency`
    identities that talk to the host at the same time, `min_gap` seconds between two requests."""

    rate: float = 2.0
    burst: int = 4
    concurrency: int = 6
    min_gap: float = 0.0


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
class Outlook:
    """Whether a host may be asked. `code` None: yes; `wait` in seconds, None where only a person can change it."""

    host: str
    code: str | None
    reason: str | None
    wait: float | None
    leases: int
    concurrency: int

    @property
    def is_open(self) -> bool:
        """Whether one more identity could begin to talk to it now."""
        return self.code is None and self.leases < self.concurrency
