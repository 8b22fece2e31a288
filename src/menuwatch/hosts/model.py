"""Values that describe a host."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self
from urllib.parse import urlsplit

from msgspec import Struct

from menuwatch.config.settings import Settings
from menuwatch.core.postpone import PostponeCode

FIRST_TURN = 1.0
"""Longest wait in seconds for a session's first slot: for a longer wait the task goes back to the queue."""


class State(StrEnum):
    """State of a host. `cooling`, `circuit` and `paused` are also the codes of `host_block_reason()`."""

    HEALTHY = "healthy"
    THROTTLED = "throttled"
    COOLING = "cooling"
    CIRCUIT = "circuit"
    HALF_OPEN = "half_open"
    PAUSED = "paused"

    @property
    def label(self) -> str:
        """What badges and tables show."""
        return _LABELS[self]

    @property
    def meaning(self) -> str:
        """One line about what happens to requests in this state."""
        return _MEANINGS[self]

    @property
    def is_closed(self) -> bool:
        """Whether the host gets no requests."""
        return self in (State.COOLING, State.CIRCUIT, State.PAUSED)

    def remedy(self, host: str) -> str | None:
        """What an operator can do; None if nothing is wrong."""
        match self:
            case State.HEALTHY:
                return None
            case State.THROTTLED:
                return (
                    "nothing: the rate recovers by a tenth of the limit per minute while requests succeed; "
                    f"`menuwatch hosts reset {host}` restores it immediately"
                )
            case State.HALF_OPEN:
                return f"wait: one identity is probing the host. In the meantime, {PostponeCode.CIRCUIT.remedy(host)}"
            case _:
                return PostponeCode(self.value).remedy(host)


_LABELS = {
    State.HEALTHY: "healthy",
    State.THROTTLED: "throttled",
    State.COOLING: "cooling down",
    State.CIRCUIT: "circuit open",
    State.HALF_OPEN: "half-open",
    State.PAUSED: "paused",
}
_MEANINGS = {
    State.HEALTHY: "requests are sent within the limits",
    State.THROTTLED: "the rate is reduced after errors or HTTP 429",
    State.COOLING: "the host asked for a pause: no requests until the cool-down ends",
    State.CIRCUIT: "too many refusals: no requests until the circuit is half-open",
    State.HALF_OPEN: "the circuit was open; one identity is probing the host",
    State.PAUSED: "paused by an operator: no requests",
}


def host_of(url: str) -> str:
    """The host of a URL as stored: lower case, with the port if the URL names one, without credentials."""
    return urlsplit(url).netloc.rpartition("@")[2].lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits set by an operator: `rate` in requests a second, `burst` requests that may follow each other at once, `concurrency`
    identities that use the host at the same time, `min_gap` seconds between two requests."""

    rate: float = 2.0
    burst: int = 4
    concurrency: int = 6
    min_gap: float = 0.0

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Default limits of a host."""
        return cls(
            rate=settings.host_rate,
            burst=settings.host_burst,
            concurrency=settings.host_concurrency,
            min_gap=settings.host_min_gap_seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HostState:
    """State of a host: the columns of its row that events change.

    `current_rate` is at most `rate`. `blocked_identities` holds the identities (proxy, profile) refused since one was accepted.
    """

    rate: float
    current_rate: float
    rate_changed_at: datetime
    rate_reduced_at: datetime | None = None
    cooldown_until: datetime | None = None
    cooldown_reason: str | None = None
    consecutive_throttles: int = 0
    consecutive_errors: int = 0
    circuit: str = "closed"
    circuit_opened_at: datetime | None = None
    circuit_until: datetime | None = None
    consecutive_opens: int = 0
    circuit_reason: str | None = None
    blocked_identities: tuple[tuple[int, str], ...] = ()
    last_ok_at: datetime | None = None
    last_refused_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEvent:
    """An event of a host. `kind` is one of `cooldown`, `rate_reduced`, `circuit_opened`, `circuit_closed`, `changed`, `robots`."""

    kind: str
    reason: str
    until: datetime | None = None


class Robots(Struct, frozen=True, kw_only=True):
    """A host's robots.txt: the last `body` that could be read (empty: there is none; None: never read), its `age` in seconds, and
    the seconds until the next fetch; `status` is the last response's."""

    status: int | None
    body: str | None
    age: float
    due_in: float


class HostAvailability(Struct, frozen=True, kw_only=True):
    """Whether a host takes requests. `code` None: yes; `wait` in seconds, None if only an operator can change it. `next_turn` is the
    number of seconds until the next request slot, None or less than 0 if there is one now."""

    host: str
    code: str | None
    reason: str | None
    wait: float | None
    leases: int
    concurrency: int
    next_turn: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether another identity could start using it now."""
        return self.code is None and self.leases < self.concurrency and (self.next_turn or 0) <= FIRST_TURN
