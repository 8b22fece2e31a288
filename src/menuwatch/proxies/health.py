"""Effects of events on a proxy's counters. Pure.

A fault of the proxy itself raises `failure_count`; a refusal by the target (403, challenge) raises `consecutive_403_count`; a success
resets both. Five of either in a row deactivate. If several proxies are refused within one request, the host refuses
all of them: this is counted, but deactivates no proxy, so that one host cannot exhaust the pool.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from menuwatch.core.backoff import Backoff

LIMIT = 5
"""Faults, or refusals, in a row that deactivate a proxy (SPEC section 8)."""


def probing(first: float) -> Backoff:
    """Delays before an inactive proxy is probed: `first` seconds, doubled with each failed probe."""
    return Backoff(base=first, cap=6 * 3600.0, jitter=0.2)


PROBING = probing(60.0)

_WEIGHT = 0.2
"""Weight of the newest response in the moving average of response times."""


class ProxyOutcome(StrEnum):
    """Result of a request with respect to its proxy."""

    SUCCESS = "success"
    FAULT = "fault"
    REFUSED = "refused"
    HOST_REFUSES = "host_refuses"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyEvent:
    """One event of one proxy. `error` says what went wrong and must not hold a password."""

    proxy_id: int
    event: ProxyOutcome
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


def apply_event(health: Health, event: ProxyOutcome, *, elapsed_ms: float | None = None) -> Health:
    """The counters after one more event. Only `fault` and `refused` deactivate; no event activates."""
    match event:
        case ProxyOutcome.SUCCESS:
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
        case ProxyOutcome.FAULT:
            count = health.failure_count + 1
            return replace(health, failure_count=count, is_active=health.is_active and count < LIMIT)
        case ProxyOutcome.REFUSED:
            count = health.consecutive_403_count + 1
            return replace(health, consecutive_403_count=count, is_active=health.is_active and count < LIMIT)
        case ProxyOutcome.HOST_REFUSES:
            # Not caused by the proxy, so it does not count towards deactivation.
            return health
