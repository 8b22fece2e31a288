"""Where claims begin, how much of them is for who has waited longest, and which roles they are for."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from menuwatch.core.clock import ManualClock
from menuwatch.queue.claim import BEGINNING, ClaimCursor, Claimed, Place
from menuwatch.queue.model import Role, Status, Task
from menuwatch.workers.engine.claim_gate import ClaimGate
from menuwatch.workers.engine.claimable_roles import Claimable, ClaimableRoles

FETCH, REFRESH = Role.PAYLOAD_FETCH, Role.PRODUCT_REFRESH
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def hand() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
def cursor(hand: ManualClock) -> ClaimCursor:
    return ClaimCursor(hand)


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
    cursor: ClaimCursor, hand: ManualClock
) -> None:
    assert cursor.next([FETCH, REFRESH], 3).start is None
    cursor.advance([_claimed(FETCH, (-9, NOON, 7)), _claimed(FETCH, (-9, NOON, 8)), _claimed(FETCH, (-5, NOON, 2))])
    assert cursor.next([FETCH, REFRESH], 3).start == [(-5, NOON, 2), BEGINNING]
    cursor.advance([_claimed(FETCH, (-9, NOON, 9)), _claimed(REFRESH, (0, NOON, 4))])
    assert cursor.next([REFRESH, FETCH], 3).start == [(0, NOON, 4), (-5, NOON, 2)], "never back"
    hand.advance(timedelta(seconds=0.24))
    assert cursor.next([FETCH], 3).start == [(-5, NOON, 2)]
    hand.advance(timedelta(seconds=0.01))
    assert cursor.next([FETCH], 3).start is None
    assert cursor.next([FETCH], 3).start == [BEGINNING], "what was passed before counts no more"


def test_what_is_announced_may_lie_before_the_place_that_was_reached(cursor: ClaimCursor) -> None:
    cursor.next([FETCH], 3)
    cursor.advance([_claimed(FETCH, (-9, NOON, 7))])
    cursor.reset()
    assert cursor.next([FETCH], 3).start is None
    assert cursor.next([FETCH], 3).start == [BEGINNING]


@pytest.mark.parametrize("sizes", [(1,) * 12, (3, 3, 3, 3), (12,), (5, 7)])
def test_one_in_four_is_for_who_has_waited_longest_however_small_the_claims(
    cursor: ClaimCursor, sizes: tuple[int, ...]
) -> None:
    fair = 0
    for size in sizes:
        fair += cursor.next([FETCH, REFRESH], size).fair
        cursor.advance([_claimed(FETCH, (0, NOON, n)) for n in range(size)])
    assert fair == 3
    assert cursor.next([FETCH], 40).fair == 0, "with one role there is no fair share"


class _RoleCheck:
    """Returns the given roles and counts its calls."""

    def __init__(self, *roles: Role) -> None:
        self.roles: frozenset[Role] | Exception = frozenset(roles)
        self.calls = 0
        self.again: float | None = None

    async def __call__(self) -> Claimable:
        self.calls += 1
        if isinstance(self.roles, Exception):
            raise self.roles
        return Claimable(self.roles, None if self.roles == frozenset(Role) else "no proxy is active", self.again)


def _claimable(check: Any, gate: ClaimGate, hand: ManualClock) -> ClaimableRoles:
    return ClaimableRoles(frozenset({FETCH, REFRESH}), check, gate=gate, clock=hand, worker_id="w")


async def test_while_every_role_is_open_it_is_asked_once_a_second_and_else_each_time(hand: ManualClock) -> None:
    gate, check = ClaimGate(clock=hand), _RoleCheck(*Role)
    claimable = _claimable(check, gate, hand)
    assert await claimable.refresh() == await claimable.refresh() == claimable.open == {FETCH, REFRESH}
    assert check.calls == 1
    check.roles = frozenset({REFRESH})
    assert await claimable.refresh() == {FETCH, REFRESH}, "as of a moment ago"
    hand.advance(timedelta(seconds=1))
    assert await claimable.refresh() == await claimable.refresh() == claimable.open == {REFRESH}
    assert (check.calls, gate.paused_roles, gate.paused_roles_reason) == (3, (FETCH,), "no proxy is active")
    check.roles = frozenset(Role)
    assert await claimable.refresh() == {FETCH, REFRESH}, "seen at once"
    assert (gate.paused_roles, gate.paused_roles_reason) == ((), None)


async def test_what_closes_for_moments_is_asked_again_soon_and_no_news(hand: ManualClock) -> None:
    gate, check = ClaimGate(clock=hand), _RoleCheck(REFRESH)
    check.again = 0.5
    claimable = _claimable(check, gate, hand)
    assert await claimable.refresh() == {REFRESH}
    assert (claimable.again, gate.paused_roles) == (0.5, ())
    check.roles = frozenset(Role)
    assert await claimable.refresh() == {FETCH, REFRESH}
    assert claimable.again is None


async def test_what_is_not_known_is_not_claimed_and_says_nothing_of_later(
    hand: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, check = ClaimGate(clock=hand), _RoleCheck()
    check.roles = RuntimeError("a bug")
    claimable = _claimable(check, gate, hand)
    assert await claimable.refresh() == frozenset()
    assert (claimable.open, gate.paused_roles) == ({FETCH, REFRESH}, ())
    check.roles = frozenset(Role)
    assert await claimable.refresh() == {FETCH, REFRESH}

    async def never() -> Claimable:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr("menuwatch.workers.engine.claimable_roles.ROLES_TIMEOUT", 0.01)
    assert await _claimable(never, gate, hand).refresh() == frozenset()
    assert await _claimable(None, gate, hand).refresh() == {FETCH, REFRESH}, "without a check all are open"
