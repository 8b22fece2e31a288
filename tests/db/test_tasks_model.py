"""The queue against a model that fits on a page: any sequence of operations, the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from menuwatch.db import sql

_SQL = sql.load("menuwatch.tasks")
ROLES = ("payload_fetch", "product_refresh", "analytics_refresh")
HOUR = 60  # model time is in minutes; everything happens on whole hours


@dataclass
class _Task:
    id: int
    role: str
    store: int | None
    priority: int
    due: int
    max_retries: int
    payload: str = "{}"
    alone: bool = False
    status: str = "pending"
    worker: str | None = None
    attempt: int = 0
    retries: int = 0
    postponed: int = 0
    sign: int = 0  # when its worker was last heard of

    @property
    def rank(self) -> tuple[int, int]:
        return (-self.priority, self.id)

    @property
    def key(self) -> tuple[str, Any]:
        return (self.role, self.store if self.store is not None else self.payload)


class Queue(RuleBasedStateMachine):
    """Two workers, three stores and none, three roles; time goes in hours."""

    url: ClassVar[str]

    @initialize()
    def empty(self) -> None:
        self.conn = psycopg.connect(self.url, autocommit=True)
        self.conn.execute("TRUNCATE task_live, task_history")
        self.tasks: dict[int, _Task] = {}
        self.tokens: list[tuple[int, str, int]] = []
        self.clock = 0

    def teardown(self) -> None:
        if hasattr(self, "conn"):
            self.conn.close()

    # what the model knows

    def waiting(self) -> list[_Task]:
        return [task for task in self.tasks.values() if task.status == "pending"]

    def active(self) -> list[_Task]:
        return [task for task in self.tasks.values() if task.status == "claimed"]

    def settle_due(self) -> None:
        self.conn.execute("SELECT promote_due_tasks()")

    # operations

    @rule(
        role=st.sampled_from(ROLES),
        store=st.sampled_from((None, 1, 2, 3)),
        priority=st.sampled_from((0, 10, 20)),
        later=st.sampled_from((0, 0, 0, 1, 2)),
        alone=st.booleans(),
        retries=st.sampled_from((0, 1, 3)),
        payload=st.sampled_from(("{}", '{"a": 1}')),
    )
    def enqueue(
        self, role: str, store: int | None, priority: int, later: int, alone: bool, retries: int, payload: str
    ) -> None:
        due = self.clock + later * HOUR
        expected = self._there(role, store, payload) if alone else None
        row = self.conn.execute(
            "SELECT id, created FROM enqueue_tasks(ARRAY[%s], ARRAY[%s::int], ARRAY[%s], ARRAY[%s::jsonb],"
            " ARRAY[CASE WHEN %s > 0 THEN now() + make_interval(hours => %s) END], ARRAY['dutchie'], ARRAY[%s], ARRAY[%s])",
            (role, store, priority, payload, later, later, retries, alone),
        ).fetchone()
        assert row is not None
        if expected is None:
            assert row[1] is True
            self.tasks[row[0]] = _Task(row[0], role, store, priority, due, retries, payload, alone)
        else:
            assert row == (expected.id, False)
            if expected.due > self.clock and (expected.attempt == 0 or priority > expected.priority):
                expected.due = min(expected.due, due)
            expected.priority = max(expected.priority, priority)
        self.settle_due()

    def _there(self, role: str, store: int | None, payload: str) -> _Task | None:
        same = [task for task in self.waiting() if task.role == role and task.store == store]
        if store is None:
            return min(
                (task for task in same if task.payload == payload and task.alone),
                key=lambda task: task.id,
                default=None,
            )
        if any(task.role == role and task.store == store for task in self.active()):
            return min(same, key=lambda task: task.rank, default=None)
        ready = [task for task in same if task.due <= self.clock]
        return min(ready or same, key=lambda task: task.rank, default=None)

    @rule(worker=st.sampled_from("ab"), n=st.integers(1, 4), roles=st.sampled_from((None, ROLES[:1], ROLES[1:])))
    def claim(self, worker: str, n: int, roles: tuple[str, ...] | None) -> None:
        busy = {task.store for task in self.active() if task.store is not None}
        expected = []
        for task in sorted(self.waiting(), key=lambda task: task.rank):
            if (
                task.due <= self.clock
                and task.store not in busy
                and (roles is None or task.role in roles)
                and len(expected) < n
            ):
                expected.append(task)
                if task.store is not None:
                    busy.add(task.store)
        rows = self.conn.execute(
            "SELECT id, attempt FROM claim_tasks(%s, %s, %s)", (None if roles is None else list(roles), worker, n)
        ).fetchall()
        assert rows == [(task.id, task.attempt + 1) for task in expected]
        for task in expected:
            task.status, task.worker, task.attempt, task.sign = "claimed", worker, task.attempt + 1, self.clock
            self.tokens.append((task.id, worker, task.attempt))

    @precondition(lambda self: self.tokens)
    @rule(
        data=st.data(),
        verb=st.sampled_from(("done", "fail", "retry", "postpone", "release")),
        hours=st.integers(0, 2),
        commit=st.sampled_from((True, True, True, False)),
        chain=st.booleans(),
    )
    def finish(self, data: st.DataObject, verb: str, hours: int, commit: bool, chain: bool) -> None:
        """Any token that was ever handed out, so stale ones as well; with a follow-up; perhaps dying before the commit."""
        task_id, worker, attempt = data.draw(st.sampled_from(self.tokens))
        task = self.tasks[task_id]
        owned = (task.status, task.worker, task.attempt) == ("claimed", worker, attempt)
        followed = None
        self.conn.execute("BEGIN")
        rows = self.conn.execute(
            "SELECT id, status FROM finish_tasks(%s, ARRAY[%s::bigint], ARRAY[%s], ARRAY[%s], ARRAY['why'], ARRAY[NULL::jsonb],"
            " ARRAY[%s::float], ARRAY[now() + make_interval(hours => %s)], ARRAY[0.1::float])",
            (worker, task_id, attempt, verb, hours * 3600.0, hours),
        ).fetchall()
        if owned and chain:
            followed = self.conn.execute(
                "SELECT id FROM enqueue_tasks(ARRAY['product_refresh'], ARRAY[%s::int], ARRAY[10], ARRAY[NULL::jsonb],"
                " ARRAY[NULL::timestamptz],"
                " ARRAY['dutchie'], ARRAY[3], ARRAY[false])",
                (task.store,),
            ).fetchone()
        self.conn.execute("COMMIT" if commit else "ROLLBACK")
        assert len(rows) == int(owned)
        if not (owned and commit):
            return
        if verb in ("done", "fail"):
            task.status = "completed" if verb == "done" else "failed"
        elif verb == "retry" and task.retries >= task.max_retries:
            task.status = "failed"
        else:
            task.status, task.worker = "pending", None
            task.retries += verb == "retry"
            task.postponed += verb == "postpone"
            if verb != "release":
                task.due = self.clock + hours * HOUR
        assert rows == [(task_id, task.status)]
        if followed is not None:
            self.tasks[followed[0]] = _Task(followed[0], "product_refresh", task.store, 10, self.clock, 3)

    @precondition(lambda self: self.tasks)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        task = self.tasks[data.draw(st.sampled_from(sorted(self.tasks)))]
        live = task.status in ("pending", "claimed")
        assert len(self.conn.execute("SELECT cancel_tasks(ARRAY[%s::bigint])", (task.id,)).fetchall()) == int(live)
        if live:
            task.status = "cancelled"

    @rule(worker=st.sampled_from("ab"))
    def heartbeat(self, worker: str) -> None:
        tokens = [token for token in self.tokens if token[1] == worker]
        rows = self.conn.execute(
            _SQL.heartbeat,
            {
                "worker": worker,
                "ids": [token[0] for token in tokens],
                "attempts": [token[2] for token in tokens],
                "ran": [0.0 for _ in tokens],
            },
        ).fetchall()
        owned = [task for task in self.active() if task.worker == worker]
        assert sorted(rows) == sorted((task.id, task.attempt) for task in owned)
        for task in owned:
            task.sign = self.clock

    @rule(hours=st.integers(1, 2))
    def time_passes(self, hours: int) -> None:
        self.clock += hours * HOUR
        self.conn.execute(
            "UPDATE task_live SET scheduled_for = scheduled_for - d, claimed_at = claimed_at - d, started_at = started_at - d,"
            " last_heartbeat_at = last_heartbeat_at - d FROM make_interval(hours => %s) d",
            (hours,),
        )
        self.settle_due()

    @rule()
    def recover(self) -> None:
        """Those silent for half an hour: whole hours ago in the model."""
        silent = [task for task in self.active() if task.sign < self.clock]
        assert self.conn.execute("SELECT recover_stale_tasks(30)").fetchone() == (len(silent),)
        for task in silent:
            if task.retries >= task.max_retries:
                task.status = "failed"
            else:
                task.status, task.worker, task.retries = "pending", None, task.retries + 1

    # what holds after every step

    @invariant()
    def the_same_tasks(self) -> None:
        if not hasattr(self, "conn"):
            return
        rows = self.conn.execute(
            "SELECT id, role, dispensary_id, priority, CASE WHEN status IN ('running', 'stale') THEN 'claimed' ELSE status END,"
            " attempt, retry_count, postpone_count, CASE WHEN completed_at IS NULL THEN worker_id END FROM worker_tasks ORDER BY id"
        ).fetchall()
        assert rows == [
            (
                t.id,
                t.role,
                t.store,
                t.priority,
                t.status,
                t.attempt,
                t.retries,
                t.postponed,
                t.worker if t.status == "claimed" else None,
            )
            for t in sorted(self.tasks.values(), key=lambda task: task.id)
        ]

    @invariant()
    def nothing_is_parked_without_a_head(self) -> None:
        if not hasattr(self, "conn"):
            return
        stranded = self.conn.execute(
            "SELECT id FROM task_live p WHERE state = 'p' AND NOT EXISTS (SELECT FROM task_live h WHERE h.state IN ('r', 'a')"
            " AND h.dispensary_id = p.dispensary_id AND h.role = p.role)"
        ).fetchall()
        assert stranded == []


@pytest.fixture
def machine(database_url: str) -> Iterator[type[Queue]]:
    Queue.url = database_url
    yield Queue
    del Queue.url


def test_the_queue_does_what_the_model_does(machine: type[Queue]) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine,
        settings=settings(
            max_examples=120,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
