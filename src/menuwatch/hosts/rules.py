"""Effects of responses on the rate, cooldown and circuit of a host. Pure.

- Accepted: the current rate grows by a tenth of the limit per minute, up to the limit; the circuit closes; earlier refusals no
  longer count.
- RateLimited: the current rate halves, and the host gets no requests for the time that it named, or for a default that doubles with
  each such response in a row. Several such responses within one cooldown count as one.
- ServerError (it fails or does not respond): from the third in a row the current rate halves, at most once in ten seconds.
- IdentityBlocked: if many identities in a row were refused and none accepted, the identities are not the cause. The circuit opens:
  no requests for a time, then one identity tries; if it is refused as well, the time doubles.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Self

from msgspec import Struct

from menuwatch.config.settings import Settings
from menuwatch.core.postpone import PostponeCode
from menuwatch.hosts.model import FIRST_TURN, HostAvailability, HostEvent, HostState

GROWTH = 0.1 / 60
"""Growth of the current rate per second, as a share of the limit."""
FLOOR = 0.02
"""Minimum of the current rate, as a share of the limit."""
ERRORS = 3
"""Failures in a row that reduce the current rate: one broken store is not a broken host."""
ERROR_PAUSE = timedelta(seconds=10)
SAME_BURST = timedelta(seconds=1)
"""Rate-limit responses within this time count as one, even without a cooldown."""
LONGEST_COOLDOWN = timedelta(hours=1)
"""Longest cooldown, unless the host asked for a longer one."""
LONGEST_OPEN = timedelta(hours=6)
IDENTITIES = 6
"""Identities refused in a row that open a circuit,"""
PROXIES = 5
"""using at least this many proxies, or all active ones."""
REMEMBERED = 50
"""Most refused identities that are stored."""


class Accepted(Struct, frozen=True):
    """The host responded to this many requests as expected."""

    times: int = 1


class IdentityBlocked(Struct, frozen=True):
    """The host refused an identity."""

    proxy_id: int
    profile: str
    reason: str


class RateLimited(Struct, frozen=True):
    """The host asked to slow down; `retry_after` in seconds, None if not specified."""

    retry_after: float | None
    reason: str


class ServerError(Struct, frozen=True):
    """The host failed, or did not respond in time."""

    reason: str


HostSignal = Accepted | IdentityBlocked | RateLimited | ServerError


class Delays(Struct, frozen=True, kw_only=True):
    """Initial delays: `cooldown` after a rate-limit response without a time, `circuit` while a circuit is open."""

    cooldown: timedelta = timedelta(seconds=60)
    circuit: timedelta = timedelta(minutes=15)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(
            cooldown=timedelta(seconds=settings.host_cooldown_seconds),
            circuit=timedelta(seconds=settings.circuit_seconds),
        )


def apply_signals(
    state: HostState, signals: Sequence[HostSignal], now: datetime, *, proxies: int, delays: Delays
) -> tuple[HostState, list[HostEvent]]:
    """Apply signals in order; returns the new state and the events to record. `proxies` is the number of active proxies."""
    events: list[HostEvent] = []
    for item in signals:
        match item:
            case Accepted():
                state = _accepted(state, now, events)
            case IdentityBlocked():
                state = _identity_blocked(state, item, now, events, proxies=proxies, delays=delays)
            case RateLimited():
                state = _rate_limited(state, item, now, events, delays=delays)
            case ServerError():
                state = _server_error(state, item, now, events)
    return state, events


def _accepted(state: HostState, now: datetime, events: list[HostEvent]) -> HostState:
    if state.circuit == "open":
        events.append(HostEvent(kind="circuit_closed", reason="it accepted an identity again"))
    cooling = state.cooldown_until is not None and state.cooldown_until > now
    grown = state.current_rate
    if not cooling:
        # No request was accepted during a cooldown, so it is no reason to raise the current rate.
        since = max(state.rate_changed_at, state.cooldown_until or state.rate_changed_at)
        grown = min(state.rate, state.current_rate + state.rate * GROWTH * max((now - since).total_seconds(), 0.0))
    return replace(
        state,
        current_rate=grown,
        rate_changed_at=now,
        # Requests sent before the cooldown may still succeed during it.
        consecutive_throttles=state.consecutive_throttles if cooling else 0,
        consecutive_errors=0,
        circuit="closed",
        circuit_opened_at=None,
        circuit_until=None,
        consecutive_opens=0,
        circuit_reason=None,
        blocked_identities=(),
        last_ok_at=now,
    )


def _halve_rate(state: HostState, now: datetime) -> HostState:
    # After a large increase of the limit the current rate may still be below the minimum.
    reduced = min(state.current_rate, max(state.current_rate / 2, state.rate * FLOOR))
    return replace(state, current_rate=reduced, rate_changed_at=now, rate_reduced_at=now)


def _rate_limited(
    state: HostState, item: RateLimited, now: datetime, events: list[HostEvent], *, delays: Delays
) -> HostState:
    cooling = state.cooldown_until is not None and state.cooldown_until > now
    just_now = state.rate_reduced_at is not None and now - state.rate_reduced_at < SAME_BURST
    if not cooling and not just_now:
        state = _halve_rate(replace(state, consecutive_throttles=state.consecutive_throttles + 1), now)
    if item.retry_after is None:
        wait = min(delays.cooldown * 2.0 ** min(max(state.consecutive_throttles - 1, 0), 20), LONGEST_COOLDOWN)
    else:
        wait = timedelta(seconds=item.retry_after)
    until = now + wait
    if state.cooldown_until is not None and state.cooldown_until >= until:
        return state
    events.append(HostEvent(kind="cooldown", reason=item.reason, until=until))
    return replace(state, cooldown_until=until, cooldown_reason=item.reason)


def _server_error(state: HostState, item: ServerError, now: datetime, events: list[HostEvent]) -> HostState:
    state = replace(state, consecutive_errors=state.consecutive_errors + 1)
    recently = state.rate_reduced_at is not None and now - state.rate_reduced_at < ERROR_PAUSE
    if state.consecutive_errors < ERRORS or recently:
        return state
    slower = _halve_rate(state, now)
    if slower.current_rate < state.current_rate:
        events.append(HostEvent(kind="rate_reduced", reason=item.reason))
    return slower


def _identity_blocked(
    state: HostState, item: IdentityBlocked, now: datetime, events: list[HostEvent], *, proxies: int, delays: Delays
) -> HostState:
    pair = (item.proxy_id, item.profile)
    refused = (
        state.blocked_identities
        if pair in state.blocked_identities
        else (*state.blocked_identities, pair)[-REMEMBERED:]
    )
    state = replace(state, blocked_identities=refused, last_refused_at=now)
    trying_again = state.circuit == "open" and state.circuit_until is not None and state.circuit_until <= now
    if state.circuit == "open" and not trying_again:
        return state
    if not trying_again and not threshold_reached(refused, proxies):
        return state
    wait = min(delays.circuit * 2.0 ** min(state.consecutive_opens, 20), LONGEST_OPEN)
    apart = len({proxy_id for proxy_id, _ in refused})
    reason = f"refused {len(refused)} identities on {apart} {'proxy' if apart == 1 else 'proxies'} in a row; last: {item.reason}"
    events.append(HostEvent(kind="circuit_opened", reason=reason, until=now + wait))
    return replace(
        state,
        circuit="open",
        circuit_opened_at=state.circuit_opened_at or now,
        circuit_until=now + wait,
        consecutive_opens=state.consecutive_opens + 1,
        circuit_reason=reason,
    )


def threshold_reached(refused: Sequence[tuple[int, str]], proxies: int) -> bool:
    """Whether this many refused identities in a row mean that the host is the cause."""
    return len(refused) >= IDENTITIES and len({proxy_id for proxy_id, _ in refused}) >= min(PROXIES, max(proxies, 1))


def all_closed(
    hosts: Collection[str], availabilities: Sequence[HostAvailability]
) -> tuple[str, float | None, PostponeCode] | None:
    """Why none of these hosts takes requests now, the seconds until the next check if the reason is temporary, and its code; None if
    one does. A host without a row takes requests."""
    known = {availability.host: availability for availability in availabilities}
    if not hosts or any(host not in known or known[host].is_open for host in hosts):
        return None
    closed = [known[host] for host in sorted(hosts)]
    if brief := [availability for availability in closed if availability.code is None]:
        wait = min((availability.next_turn or 0) - FIRST_TURN for availability in brief)
        return "its request budget is used up", max(BRIEF, wait), PostponeCode.BUSY
    reason = "; ".join(f"{availability.host} is blocked: {availability.reason}" for availability in closed)
    return reason, None, PostponeCode(closed[0].code or PostponeCode.OTHER)


BRIEF = 0.5
"""Seconds after which to check again a host that is only busy."""
