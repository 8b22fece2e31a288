"""The checks of the crash test find what they are there to find: sound evidence passes, and each way of spoiling it is named."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.chaos.evidence import Effect, Ended, Evidence, Run, faults
from tests.chaos.plan import Node, Plan

EPOCH = datetime(2026, 11, 1, tzinfo=UTC)
STALE = 4.0


def at(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def sound(plan: Plan) -> Evidence:
    """What an undisturbed worker leaves that does one attempt after the other, each of them in a second."""
    ended, effects, runs = [], [], []
    clock = itertools.count(step=2)
    for task_id, node in enumerate(plan.nodes().values(), start=1):
        steps = ["postpone"] * node.postpones + ["retry"] * (3 if node.end == "exhaust" else node.tries)
        if node.end in ("done", "fail", "raise"):
            steps.append(node.end)
        attempt = 0
        began = 0
        for step in steps:
            for trips in (True, False) if node.trips else (False,):
                attempt, began = attempt + 1, next(clock)
                run = Run(
                    id=task_id,
                    attempt=attempt,
                    name=node.name,
                    store=node.store,
                    worker="w",
                    claimed=at(began),
                    began=began + 0.1,
                    ended=began + 0.5,
                    told=[] if step == "raise" else [not trips],
                )
                runs.append(run)
                if node.writes and not trips and step != "raise":
                    effects.append(
                        Effect(
                            id=task_id,
                            attempt=attempt,
                            name=node.name,
                            what=step,
                            worker="w",
                            store=node.store,
                            claimed=at(began),
                            at=at(began + 0.9),
                        )
                    )
        ended.append(
            Ended(
                id=task_id,
                name=node.name,
                role=str(node.role),
                store=node.store,
                priority=node.priority,
                status=str(node.status),
                attempt=attempt,
                retry_count=2 if node.end == "exhaust" else 0,
                postpone_count=node.postpones,
                worker="w",
                claimed=at(began) if attempt else None,
                completed=at(began + 1),
                result={"tries": node.tries},
            )
        )
    beats = {"w": [n / 2 for n in range(2 * next(clock))]}
    return Evidence(ended=ended, effects=effects, runs=runs, beats=beats, offset=EPOCH.timestamp(), live=[], stranded=0)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan(5, count=400, stores=20)


def test_sound_evidence_passes(plan: Plan) -> None:
    assert faults(plan.nodes(), sound(plan), stale=STALE) == []


def _first(rows: Any, wanted: Callable[[Any], bool]) -> Any:
    return next(row for row in rows if wanted(row))


def _without(rows: Any, row: Any) -> list[Any]:
    return [other for other in rows if other is not row]


def _lose(seen: Evidence) -> Evidence:
    return replace(seen, ended=seen.ended[:-1])


def _double(seen: Evidence) -> Evidence:
    return replace(seen, ended=[*seen.ended, replace(seen.ended[3], id=10_000)])


def _chain_twice(seen: Evidence) -> Evidence:
    child = _first(seen.ended, lambda row: "." in row.name)
    return replace(seen, ended=[*seen.ended, replace(child, id=10_000)])


def _effect_gone(seen: Evidence) -> Evidence:
    return replace(seen, effects=_without(seen.effects, _first(seen.effects, lambda row: row.what == "done")))


def _effect_twice(seen: Evidence) -> Evidence:
    return replace(seen, effects=[*seen.effects, seen.effects[0]])


def _effect_of_a_lost_attempt(seen: Evidence) -> Evidence:
    retried = _first(seen.effects, lambda row: row.what == "retry")
    return replace(seen, effects=[*seen.effects, replace(retried, attempt=99)])


def _wrong_status(seen: Evidence) -> Evidence:
    row = _first(seen.ended, lambda row: row.status == "completed")
    return replace(seen, ended=[*_without(seen.ended, row), replace(row, status="failed")])


def _retry_forgotten(seen: Evidence) -> Evidence:
    row = _first(seen.ended, lambda row: row.result == {"tries": 2})
    return replace(seen, ended=[*_without(seen.ended, row), replace(row, result={"tries": 1})])


def _still_live(seen: Evidence) -> Evidence:
    return replace(seen, live=[7])


def _stranded(seen: Evidence) -> Evidence:
    return replace(seen, stranded=1)


def _one_attempt_twice(seen: Evidence) -> Evidence:
    return replace(seen, runs=[*seen.runs, replace(seen.runs[5], worker="v", began=9e6, ended=9e6 + 1)])


def _false_comfort(seen: Evidence) -> Evidence:
    settled = _first(seen.effects, lambda row: row.what == "done")
    run = _first(seen.runs, lambda run: run.key == (settled.id, settled.attempt))
    return replace(seen, runs=[*_without(seen.runs, run), replace(run, told=[False])])


def _false_alarm(seen: Evidence) -> Evidence:
    run = _first(seen.runs, lambda run: run.told == [False])
    return replace(seen, runs=[*_without(seen.runs, run), replace(run, told=[True])])


def _two_claims(seen: Evidence) -> Evidence:
    mine = _first(seen.effects, lambda row: row.what == "done" and row.store is not None)
    run = _first(seen.runs, lambda run: run.key == (mine.id, mine.attempt))
    early = mine.claimed + timedelta(seconds=0.7)
    return replace(seen, runs=[*seen.runs, replace(run, attempt=98, told=[], claimed=early, began=9e6, ended=9e6 + 1)])


def _two_handlers(seen: Evidence) -> Evidence:
    """The second begins by its own account while the first still runs, whose worker beats all the time."""
    run = _first(seen.runs, lambda run: run.store is not None)
    other = replace(run, id=10_000, worker="v", told=[], claimed=run.claimed, began=run.began + 0.1)
    return replace(seen, runs=[*seen.runs, other])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_lose, "tasks are missing"),
        (_double, "is there 2 times"),
        (_chain_twice, "is there 2 times"),
        (_effect_gone, "had the effects"),
        (_effect_twice, "had its effect 2 times"),
        (_effect_of_a_lost_attempt, "had an effect at 99"),
        (_wrong_status, "should be"),
        (_retry_forgotten, "was retried"),
        (_still_live, "still live"),
        (_stranded, "no head"),
        (_one_attempt_twice, "was begun 2 times"),
        (_false_comfort, "rolled back, and was committed"),
        (_false_alarm, "was committed, and was not"),
        (_two_claims, "before"),
        (_two_handlers, "two handlers at once"),
    ],
)
def test_spoilt_evidence_is_named(plan: Plan, spoil: Callable[[Evidence], Evidence], said: str) -> None:
    found = faults(plan.nodes(), spoil(sound(plan)), stale=STALE)
    assert any(said in fault for fault in found), found


def test_a_handler_that_outlived_its_worker_s_silence_is_no_fault(plan: Plan) -> None:
    seen = sound(plan)
    run = _first(seen.runs, lambda run: run.store is not None and run.attempt == 1)
    lost = Run(
        id=run.id,
        attempt=0,
        name=run.name,
        store=run.store,
        worker="v",
        claimed=run.claimed - timedelta(seconds=5),
        began=run.began - 5,
        ended=run.began + 0.2,
        cut=True,
    )
    silent = replace(seen, runs=[*seen.runs, lost], beats={**seen.beats, "v": [run.began - 6]})
    assert faults(plan.nodes(), silent, stale=STALE) == []
    beating = replace(silent, beats={**seen.beats, "v": [run.began - 6 + n for n in range(10)]})
    (fault,) = faults(plan.nodes(), beating, stale=STALE)
    assert "two handlers at once" in fault


def test_the_plan_follows_from_its_seed() -> None:
    one, two, other = (Plan(seed, count=300, stores=9).nodes() for seed in (1, 1, 2))
    assert one == two
    assert one != other
    assert 300 <= len(one) < 500
    node: Node
    for name, node in one.items():
        assert (name.rpartition(".")[0] in one) or "." not in name
        assert all(child in one for child in node.names)
