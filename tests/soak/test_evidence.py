"""The checks of the soak see what they are there to see: each is given something wrong, and something right beside it."""

from __future__ import annotations

from typing import Any

from menuwatch.sim.stats import Arrival
from tests.soak import evidence
from tests.soak.evidence import Attempt, Books, Hold, Kill
from tests.soak.plan import FULL, SHORT, Plan


def _arrival(number: int, at: float, *, proxy: int = 0, status: int = 200, agent: str = "a") -> Arrival:
    return Arrival(number=number, at=at, host="h", path="/", proxy=proxy, agent=agent, status=status)


def _attempt(number: int, began: float, ended: float, **more: Any) -> Attempt:
    values: dict[str, Any] = {"task": 1, "proxy": 0, "agent": "a", "status": 200}
    return Attempt(id=number, began=began, ended=ended, **{**values, **more})


def test_a_span_that_holds_too_many_is_seen() -> None:
    steady = [_arrival(n, n / 10) for n in range(300)]
    found = evidence.windows(steady, rate=10, burst=4)
    assert [window.requests for window in found] == [11, 51, 201]
    assert [window.beyond for window in found] == [-3, -3, -3]
    assert list(evidence.over_budget(found, concurrency=3)) == []
    more = [_arrival(300 + n, 15 + n / 100) for n in range(8)]
    found = evidence.windows([*steady, *more], rate=10, burst=4)
    assert [window.beyond for window in found] == [5, 5, 5]
    assert len(list(evidence.over_budget(found, concurrency=4))) == 3
    assert list(evidence.over_budget(found, concurrency=5)) == []


def test_requests_after_a_429_are_those_on_their_way_or_a_fault() -> None:
    log = [
        _arrival(1, 0.0),
        _arrival(2, 1.0, status=429),
        _arrival(3, 1.1),
        _arrival(4, 1.2, status=429),
        _arrival(5, 4.3),
    ]
    found = evidence.stragglers(log, 3.0)
    assert [(arrival.number, [round(s, 3) for s in after]) for arrival, after in found] == [(2, [0.1, 0.2]), (4, [])]
    assert list(evidence.ignored(found, concurrency=3, timeout=5)) == []
    assert len(list(evidence.ignored(found, concurrency=2, timeout=5))) == 1, "one too many"
    assert len(list(evidence.ignored(found, concurrency=3, timeout=0.15))) == 1, "too late to have been on its way"


def test_a_proxy_leased_twice_at_a_time_is_seen() -> None:
    mine, theirs = Hold(1, 0, 0.0, 1.4), Hold(2, 0, 1.3, 1.6)
    assert len(list(evidence.shared([theirs, mine]))) == 1
    assert list(evidence.shared([mine, Hold(2, 0, 1.4, 1.6)])) == []
    elsewhere = [mine, Hold(2, 1, 0.5, 0.6)]
    assert list(evidence.shared(elsewhere)) == []
    assert evidence.at_once(elsewhere) == 2


def test_a_request_outside_a_lease_of_its_task_is_seen() -> None:
    held = [Hold(1, 0, 0.0, 1.4), Hold(2, 0, 1.5, 1.6)]
    inside = [_attempt(1, 0.0, 0.2), _attempt(2, 1.2, 1.4), _attempt(3, 1.5, 1.6, task=2)]
    assert list(evidence.unleased(inside, held)) == []
    assert len(list(evidence.unleased([_attempt(1, 1.3, 2.0)], held))) == 1, "beyond the end"
    assert len(list(evidence.unleased([_attempt(1, 0.2, 0.3, task=2)], held))) == 1, "another task's lease"
    assert len(list(evidence.unleased([_attempt(1, 0.2, 0.3, proxy=1)], held))) == 1, "another proxy"
    assert list(evidence.unleased([_attempt(4, 9.0, 9.2, task=None)], held)) == [], "a probe has no task"


def test_books_that_do_not_agree_are_seen() -> None:
    arrivals = [_arrival(1, 0.1), _arrival(2, 0.4, status=403), _arrival(3, 0.1, proxy=1), _arrival(4, 9.0)]
    attempts = [
        _attempt(1, 0.0, 0.2),
        _attempt(2, 0.3, 0.5, status=403),
        _attempt(3, 0.0, 5.0, proxy=1, status=None),
        _attempt(4, 20.0, 20.1),
        _attempt(5, 20.0, 20.1, status=None),
    ]
    books = evidence.compare(arrivals, attempts)
    assert [arrival.number for arrival in books.unwritten] == [4]
    assert [attempt.id for attempt in books.invented] == [4], "what got no answer need not have arrived"
    assert books.matched == 3
    assert len(list(evidence.unexplained(books, [], session=10))) == 2
    assert len(list(evidence.unexplained(books, [Kill(9.5, 1, 1)], session=10))) == 1
    twice = evidence.compare([_arrival(1, 0.1)], [_attempt(1, 0.0, 0.2), _attempt(2, 0.0, 0.2)])
    assert len(twice.invented) == 1


def test_a_killed_worker_explains_its_last_requests_and_no_others() -> None:
    def lost(*times: float) -> Books:
        return Books(unwritten=[_arrival(n, at) for n, at in enumerate(times)], invented=[], matched=0)

    kill = Kill(20.0, 2, 1)
    assert list(evidence.unexplained(lost(15.0, 19.9), [kill], session=10)) == []
    assert len(list(evidence.unexplained(lost(15.0, 16.0, 19.9), [kill], session=10))) == 1
    assert len(list(evidence.unexplained(lost(5.0), [kill], session=10))) == 1
    assert len(list(evidence.unexplained(lost(21.0), [kill], session=10))) == 1


def test_a_seed_repeats_a_plan_in_which_each_day_has_every_trouble_and_a_death() -> None:
    for size in (SHORT, FULL):
        plan = Plan(size, 7)
        assert plan.rounds == Plan(size, 7).rounds
        assert [round_.number for round_ in plan.rounds] == list(range(1 + size.days * len(size.troubles)))
        for day in range(size.days):
            rounds = [round_ for round_ in plan.rounds[1:] if round_.day == day]
            assert sorted(round_.trouble for round_ in rounds) == sorted(size.troubles)
            assert sum(round_.kill for round_ in rounds) == 1
            assert all("forbidden" in round_.faults for round_ in rounds)
    assert len(FULL.dead) == FULL.proxies // 10
