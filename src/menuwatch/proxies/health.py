"""What an event means for a proxy's counters. Pure.

A fault of the proxy itself raises `failure_count`; a refusal by the target (403, challenge) raises `consecutive_403_count`; a success
resets both. Five of either in a row deactivate. A refusal that several proxies met within one request is the host refusing
everybody: it is counted, but never takes a proxy out, so that one angry host does not burn the pool.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from menuwatch.core.backoff import Backoff

LIMIT = 5
"""Faults, or refusals, in a row at which a proxy is deactivated (SPEC section 8)."""


def probing(first: float) -> Backoff:
    """Waits before a proxy that its health took out is tried again: `first` seconds, doubled with each probe that fails."""
    return Backoff(base=first, cap=6 * 3600.0, jitter=0.2)


PROBING = probing(60.0)

_WEIGHT = 0.2
"""Share of the newest answer in the moving average of response times."""


class Event(StrEnum):
    """What became of a request, as far as its proxy is concerned."""

    SUCCESS = "success"
    FAULT = "fault"
    REFUSED = "refused"
    HOST_REFUSES = "host_refuses"


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """One event of one proxy. `error` says what went wrong; it may not hold a password."""

    proxy_id: int
    event: Event
    elapsed_ms: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The counters of one proxy."""

    is_active: bool = True
    success_count: int = 0
    failure_count: int = 0
    consecutive_403_count: int = 0
    avg_response_time_ms: float | None = None


def after(health: Health, event: Event, *, elapsed_ms: float | None = None) -> Health:
    """The counters after one more event. Only `fault` and `refused` deactivate; nothing here activates again."""
    match event:
        case Event.SUCCESS:
            average = health.avg_response_time_ms
            if elapsed_ms is not None:
                average = elapsed_ms if average is None else average + _WEIGHT * (elapsed_ms - average)
            return replace(
                health,
                success_count=health.success_count + 1,
                failure_count=0,
                consecutive_403_count=0,
                avg_response_time_ms=average,
            )
        case Event.FAULT:
            count = health.failure_count + 1
            return replace(health, failure_count=count, is_active=health.is_active and count < LIMIT)
        case Event.REFUSED:
            count = health.consecutive_403_count + 1
            return replace(health, consecutive_403_count=count, is_active=health.is_active and count < LIMIT)
        case Event.HOST_REFUSES:
            # Not the proxy's doing, so it brings the proxy no nearer to its end either.
            return health
