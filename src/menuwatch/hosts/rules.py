"""What answers mean for a host: its pace, its cool-down, its circuit. Pure.

- Let in: the pace grows by a tenth of the rate per minute, up to the rate; the circuit closes; refusals before it do not
count any more.
- Asked to slow down: the pace halves, and nobody asks until the time that the host named is over, or, where it named none,
for a time that
  doubles with each such answer in a row. Several such answers within one cool-down are one.
- Trouble (it fails or does not answer): from the third time in a row on the pace halves, once in ten seconds at most.
- Refused: when many identities in a row were refused and none was let in, the trouble is not the identities. The circuit opens: nobody
  asks for a time, then one identity tries; if it is refused as well, the time doubles.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self

from menuwatch.core.settings import Settings
from menuwatch.hosts.model import FIRST_TURN, Course, HostEvent, Outlook

GROWTH = 0.1 / 60
"""Share of the rate by which the pace grows in a second."""
FLOOR = 0.02
"""Share of the rate below which the pace does not fall."""
TROUBLES = 3
"""Failures in a row that slow it down: one broken store is not a broken host."""
TROUBLE_PAUSE = timedelta(seconds=10)
SAME_STORM = timedelta(seconds=1)
"""Requests to slow down that follow each other within this time were one, also where no time was to be waited."""
LONGEST_COOLDOWN = timedelta(hours=1)
"""Of those that the host did not ask for itself."""
LONGEST_OPEN = timedelta(hours=6)
IDENTITIES = 6
"""Identities refused in a row that open a circuit,"""
PROXIES = 5
"""of at least so many proxies, or all that there are."""
REMEMBERED = 50
"""Refused identities that are kept in mind."""


@dataclass(frozen=True, slots=True)
class LetIn:
    """It answered so many requests as asked."""

    times: int = 1


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """It refused an identity."""

    proxy_id: int
    profile: str
    reason: str


@dataclass(frozen=True, slots=True)
class SlowDown:
    """It asked to slow down; `retry_after` in seconds, None where it named no time."""

    retry_after: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """It failed, or did not answer in time."""

    reason: str


News = LetIn | TurnedAway | SlowDown | Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """First waits: `cooldown` after a request to slow down that named no time, `circuit` while a circuit is open."""

    cooldown: timedelta = timedelta(seconds=60)
    circuit: timedelta = timedelta(minutes=15)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """As the settings have them."""
        return cls(
            cooldown=timedelta(seconds=settings.host_cooldown_seconds),
            circuit=timedelta(seconds=settings.circuit_seconds),
        )


def after(
    course: Course, news: Sequence[News], now: datetime, *, proxies: int, waits: Waits
) -> tuple[Course, list[HostEvent]]:
    """The course after these, in their order, and what people should hear of it. `proxies` is how many are active."""
    events: list[HostEvent] = []
    for item in news:
        match item:
            case LetIn():
                course = _let_in(course, now, events)
            case TurnedAway():
                course = _turned_away(course, item, now, events, proxies=proxies, waits=waits)
            case SlowDown():
                course = _slow_down(course, item, now, events, waits=waits)
            case Trouble():
                course = _trouble(course, item, now, events)
    return course, events


def _let_in(course: Course, now: datetime, events: list[HostEvent]) -> Course:
    if course.circuit == "open":
        events.append(HostEvent(kind="circuit_closed", reason="it let an identity in again"))
    cooling = course.cooldown_until is not None and course.cooldown_until > now
    grown = course.pace
    if not cooling:
        # While it cooled down nobody was let in: that is no reason to trust it more.
        since = max(course.paced_at, course.cooldown_until or course.paced_at)
        grown = min(course.rate, course.pace + course.rate * GROWTH * max((now - since).total_seconds(), 0.0))
    return replace(
        course,
        pace=grown,
        paced_at=now,
        # What was asked before the host lost patience may still be answered while it cools down.
        throttles=course.throttles if cooling else 0,
        troubles=0,
        circuit="closed",
        circuit_opened_at=None,
        circuit_until=None,
        circuit_opens=0,
        circuit_reason=None,
        refused=(),
        last_ok_at=now,
    )


def _slower(course: Course, now: datetime) -> Course:
    # Of a rate that was raised a great deal the pace may be below the floor yet.
    pace = min(course.pace, max(course.pace / 2, course.rate * FLOOR))
    return replace(course, pace=pace, paced_at=now, slowed_at=now)


def _slow_down(course: Course, item: SlowDown, now: datetime, events: list[HostEvent], *, waits: Waits) -> Course:
    cooling = course.cooldown_until is not None and course.cooldown_until > now
    just_now = course.slowed_at is not None and now - course.slowed_at < SAME_STORM
    if not cooling and not just_now:
        course = _slower(replace(course, throttles=course.throttles + 1), now)
    if item.retry_after is None:
        wait = min(waits.cooldown * 2.0 ** min(max(course.throttles - 1, 0), 20), LONGEST_COOLDOWN)
    else:
        wait = timedelta(seconds=item.retry_after)
    until = now + wait
    if course.cooldown_until is not None and course.cooldown_until >= until:
        return course
    events.append(HostEvent(kind="cooldown", reason=item.reason, until=until))
    return replace(course, cooldown_until=until, cooldown_reason=item.reason)


def _trouble(course: Course, item: Trouble, now: datetime, events: list[HostEvent]) -> Course:
    course = replace(course, troubles=course.troubles + 1)
    recently = course.slowed_at is not None and now - course.slowed_at < TROUBLE_PAUSE
    if course.troubles < TROUBLES or recently:
        return course
    slower = _slower(course, now)
    if slower.pace < course.pace:
        events.append(HostEvent(kind="slower", reason=item.reason))
    return slower


def _turned_away(
    course: Course, item: TurnedAway, now: datetime, events: list[HostEvent], *, proxies: int, waits: Waits
) -> Course:
    pair = (item.proxy_id, item.profile)
    refused = course.refused if pair in course.refused else (*course.refused, pair)[-REMEMBERED:]
    course = replace(course, refused=refused, last_refused_at=now)
    trying_again = course.circuit == "open" and course.circuit_until is not None and course.circuit_until <= now
    if course.circuit == "open" and not trying_again:
        return course
    if not trying_again and not many(refused, proxies):
        return course
    wait = min(waits.circuit * 2.0 ** min(course.circuit_opens, 20), LONGEST_OPEN)
    apart = len({proxy_id for proxy_id, _ in refused})
    reason = (
        f"it refused {len(refused)} identities of {apart} {'proxy' if apart == 1 else 'proxies'} in a row, "
        f"the last with: {item.reason}"
    )
    events.append(HostEvent(kind="circuit_opened", reason=reason, until=now + wait))
    return replace(
        course,
        circuit="open",
        circuit_opened_at=course.circuit_opened_at or now,
        circuit_until=now + wait,
        circuit_opens=course.circuit_opens + 1,
        circuit_reason=reason,
    )


def many(refused: Sequence[tuple[int, str]], proxies: int) -> bool:
    """Whether so many identities in a row say that it is the host who refuses, not they who are bad."""
    return len(refused) >= IDENTITIES and len({proxy_id for proxy_id, _ in refused}) >= min(PROXIES, max(proxies, 1))


ADVICE = (
    "open the site in a browser of your own: if it shows its menus to people, ask less often "
    "(`menuwatch hosts set {host} --rate …`) or add proxies of another network; if it shows none, or forbids it, stop "
    "(`menuwatch hosts pause {host}`). `menuwatch hosts reset {host}` tries again at once"
)
"""What a person can do about an open circuit."""


def all_closed(asked: Collection[str], outlooks: Sequence[Outlook]) -> tuple[str, float | None] | None:
    """Why none of these hosts can be asked now, and in how many seconds to look again where that is a matter of moments;
    None where one can. A host that was never asked can."""
    known = {outlook.host: outlook for outlook in outlooks}
    if not asked or any(host not in known or known[host].is_open for host in asked):
        return None
    closed = [known[host] for host in sorted(asked)]
    if brief := [outlook for outlook in closed if outlook.code is None]:
        return "its budget is in use", max(BRIEF, min((outlook.next_turn or 0) - FIRST_TURN for outlook in brief))
    return "; ".join(f"{outlook.host} is not asked: {outlook.reason}" for outlook in closed), None


BRIEF = 0.5
"""Seconds after which to look again at a host that is only busy."""
