"""Where claims begin, how much of them is for who has waited longest, and which roles they are for."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from menuwatch.core.clock import ManualClock
from menuwatch.engine.course import Course
from menuwatch.engine.gate import Gate
from menuwatch.engine.handler import Claimable
from menuwatch.engine.permission import Permission
from menuwatch.tasks.cycle import BEGINNING, Claimed, Place
from menuwatch.tasks.model import Role, Status, Task

FETCH, REFRESH = Role.PAYLOAD_FETCH, Role.PRODUCT_REFRESH
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def hand() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
def course(hand: ManualClock) -> Course:
    return Course(hand)


def _claimed(role: Role, place: Place) -> Claimed:
    times: dict[str, Any] = dict.fromkeys(
        ("scheduled_for", "started_at", "completed_at", "last_heartbeat_at", "result", "error_message")
    )
    task = Task(
        id=place[2], role=role, dispensary_id=None, platform="p", status=Status.CLAIMED, priority=-place[0], worker_id="w",
        claimed_at=NOON, created_at=NOON, updated_at=NOON, retry_count=0, max_retries=3, **times,
    )  # fmt: skip
    return Claimed(task=task, place=place)


def test_claims_go_on_where_they_ended_until_the_whole_queue_is_looked_at_again(
    course: Course, hand: ManualClock
) -> None:
    assert course.next([FETCH, REFRESH], 3).start is None
    course.went([_claimed(FETCH, (-9, NOON, 7)), _claimed(FETCH, (-9, NOON, 8)), _claimed(FETCH, (-5, NOON, 2))])
    assert course.next([FETCH, REFRESH], 3).start == [(-5, NOON, 2), BEGINNING]
    course.went([_claimed(FETCH, (-9, NOON, 9)), _claimed(REFRESH, (0, NOON, 4))])
    assert course.next([REFRESH, FETCH], 3).start == [(0, NOON, 4), (-5, NOON, 2)], "never back"
    hand.advance(timedelta(seconds=0.24))
    assert course.next([FETCH], 3).start == [(-5, NOON, 2)]
    hand.advance(timedelta(seconds=0.01))
    assert course.next([FETCH], 3).start is None
    assert course.next([FETCH], 3).start == [BEGINNING], "what was passed before counts no more"


def test_what_is_announced_may_lie_before_the_place_that_was_reached(course: Course) -> None:
    course.next([FETCH], 3)
    course.went([_claimed(FETCH, (-9, NOON, 7))])
    course.begin_anew()
    assert course.next([FETCH], 3).start is None
    assert course.next([FETCH], 3).start == [BEGINNING]


@pytest.mark.parametrize("sizes", [(1,) * 12, (3, 3, 3, 3), (12,), (5, 7)])
def test_one_in_four_is_for_who_has_waited_longest_however_small_the_claims(
    course: Course, sizes: tuple[int, ...]
) -> None:
    fair = 0
    for size in sizes:
        fair += course.next([FETCH, REFRESH], size).fair
        course.went([_claimed(FETCH, (0, NOON, n)) for n in range(size)])
    assert fair == 3
    assert course.next([FETCH], 40).fair == 0, "among one role there is nobody to be fair to"


class _Told:
    """Says what it was told to say, and how often it was asked."""

    def __init__(self, *roles: Role) -> None:
        self.roles: frozenset[Role] | Exception = frozenset(roles)
        self.asked = 0
        self.again: float | None = None

    async def __call__(self) -> Claimable:
        self.asked += 1
        if isinstance(self.roles, Exception):
            raise self.roles
        return Claimable(self.roles, None if self.roles == frozenset(Role) else "no proxy is active", self.again)


def _permission(told: Any, gate: Gate, hand: ManualClock) -> Permission:
    return Permission(frozenset({FETCH, REFRESH}), told, gate=gate, clock=hand, worker_id="w")


async def test_while_every_role_is_open_it_is_asked_once_a_second_and_else_each_time(hand: ManualClock) -> None:
    gate, told = Gate(clock=hand), _Told(*Role)
    permission = _permission(told, gate, hand)
    assert await permission.now() == await permission.now() == permission.open == {FETCH, REFRESH}
    assert told.asked == 1
    told.roles = frozenset({REFRESH})
    assert await permission.now() == {FETCH, REFRESH}, "as of a moment ago"
    hand.advance(timedelta(seconds=1))
    assert await permission.now() == await permission.now() == permission.open == {REFRESH}
    assert (told.asked, gate.paused_roles, gate.paused_roles_reason) == (3, (FETCH,), "no proxy is active")
    told.roles = frozenset(Role)
    assert await permission.now() == {FETCH, REFRESH}, "seen at once"
    assert (gate.paused_roles, gate.paused_roles_reason) == ((), None)


async def test_what_closes_for_moments_is_asked_again_soon_and_no_news(hand: ManualClock) -> None:
    gate, told = Gate(clock=hand), _Told(REFRESH)
    told.again = 0.5
    permission = _permission(told, gate, hand)
    assert await permission.now() == {REFRESH}
    assert (permission.again, gate.paused_roles) == (0.5, ())
    told.roles = frozenset(Role)
    assert await permission.now() == {FETCH, REFRESH}
    assert permission.again is None


async def test_what_is_not_known_is_not_claimed_and_says_nothing_of_later(
    hand: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, told = Gate(clock=hand), _Told()
    told.roles = RuntimeError("a bug")
    permission = _permission(told, gate, hand)
    assert await permission.now() == frozenset()
    assert (permission.open, gate.paused_roles) == ({FETCH, REFRESH}, ())
    told.roles = frozenset(Role)
    assert await permission.now() == {FETCH, REFRESH}

    async def never() -> Claimable:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr("menuwatch.engine.permission.PATIENCE", 0.01)
    assert await _permission(never, gate, hand).now() == frozenset()
    assert await _permission(None, gate, hand).now() == {FETCH, REFRESH}, "nobody forbids anything"
