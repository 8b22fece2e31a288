"""The queue against a model that fits on a page: any sequence of operations of several people at once, the same answers.

Three workers act, each on a connection of its own. What one does is committed at once, or stays open while the others go on, to be
committed, rolled back or lost with its worker later. One thing happens at a time, so no session waits for long: one that would have to
wait for an open transaction is refused after a moment, and only where the model knows of a session that holds the same store.

While a transaction is open the queue passes over what it holds, so the order within the store it touches is loose ("smudged") until
the database shows that it is right again. Everywhere else, and everything else, must be exactly as the model says.

MODEL_EXAMPLES=… runs more than the usual number of examples, each time different ones.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, ClassVar

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from menuwatch.db import sql

_SQL = sql.load("menuwatch.queue")
ROLES = ("payload_fetch", "product_refresh")
STORES = (None, 1, 1, 2, 2)  # few, so that queues are long and hands meet
WORKERS = ("a", "b", "c")
HOUR = 60  # model time is in minutes; everything happens on whole hours
POSTPONEMENTS = 50

Place = Any
"""What an operation has its hands on: a store, or, of tasks without one, a role and payload."""


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
    def key(self) -> tuple[str, int | None]:
        return (self.role, self.store)

    @property
    def place(self) -> Place:
        return self.store if self.store is not None else (self.role, self.payload)


Tasks = dict[int, _Task]
Token = tuple[int, str, int]
"""A claim: task, worker, attempt."""


@dataclass
class _New:
    """A task to enqueue; `later` in hours."""

    role: str
    store: int | None
    priority: int
    later: int
    alone: bool
    retries: int
    payload: str

    @property
    def key(self) -> tuple[str, Any]:
        return (self.role, self.store if self.store is not None else (None, self.payload))

    @property
    def place(self) -> Place:
        return self.store if self.store is not None else (self.role, self.payload)


@dataclass
class _Open:
    """An open transaction: what will be true when it commits, and where its hands are."""

    tasks: Tasks
    places: set[Place]
    tokens: list[Token] = field(default_factory=list)


def _new(dice: Random) -> _New:
    return _New(
        role=dice.choice(ROLES),
        store=dice.choice(STORES),
        priority=dice.choice((0, 10, 20)),
        later=dice.choice((0, 0, 0, 0, 1, 2)),
        alone=dice.random() < 0.4,
        retries=dice.choice((0, 1, 3)),
        payload=dice.choice(("{}", '{"a": 1}')),
    )


_VERBS = ("done", "done", "done", "fail", "retry", "retry", "postpone", "release")
_STAYS_OPEN = 0.4
_SOME_ROLES = (None, None, None, ROLES[:1], ROLES[1:])
_BY_WORKERS = ("enqueue", "claim", "finish", "cycle", "cancel", "recover")
_BY_ITSELF = ("time_passes", "silence", "wear_out", "mend")
_OFTEN = {"enqueue": 5, "claim": 3, "finish": 6, "cycle": 7, "end": 5, "time_passes": 2, "silence": 2, "cancel": 2}
_WHAT = [
    *(what for what, times in _OFTEN.items() for _ in range(times)),
    *("recover", "crash", "heartbeat", "wear_out", "mend"),
]


class Queue(RuleBasedStateMachine):
    """Three workers, two stores and none, two roles; time goes in hours."""

    url: ClassVar[str]
    eye: ClassVar[psycopg.Connection[Any]]
    """Looks, and beats: never in a transaction."""
    conns: ClassVar[dict[str, psycopg.Connection[Any]]]
    """Kept from one example to the next: what costs most about a new one is that it knows no plans."""

    @initialize()
    def empty(self) -> None:
        self.eye.execute("TRUNCATE task_live, task_history")
        self.tasks: Tasks = {}
        self.tokens: list[Token] = []
        self.known: set[Token] = set()  # those that their worker has not forgotten
        self.open: dict[str, _Open] = {}
        self.smudged: set[tuple[str, int | None]] = set()
        self.clock = 0

    @classmethod
    def connect(cls) -> psycopg.Connection[Any]:
        return psycopg.connect(cls.url, autocommit=True)

    def teardown(self) -> None:
        for conn in self.conns.values():
            conn.rollback()

    # what the model knows

    def touched(self, but: str | None = None) -> set[Place]:
        """Where open transactions have their hands."""
        return {place for worker, opened in self.open.items() if worker != but for place in opened.places}

    def smudge(self, places: set[Place]) -> None:
        self.smudged |= {(role, place) for place in places if isinstance(place, int) for role in ROLES}

    def idle(self) -> list[str]:
        return [worker for worker in WORKERS if worker not in self.open]

    # how anything is done

    def act(
        self,
        worker: str,
        places: set[Place],
        work: Callable[[psycopg.Connection[Any]], Any],
        *,
        anywhere: bool = False,
    ) -> Any:
        """Begins a transaction and does `work` in it; None if it would have had to wait for another session, and nothing was done.

        `anywhere`: its hands may be in places that are not known beforehand.
        """
        conn = self.conns[worker]
        meets = places & self.touched(worker)
        for patience in ("20ms", "10s"):
            conn.execute("BEGIN")
            conn.execute(f"SET LOCAL lock_timeout = '{patience}'")  # type: ignore[arg-type]
            try:
                answer = work(conn)
            except psycopg.errors.LockNotAvailable:
                conn.execute("ROLLBACK")
                if meets or (anywhere and self.open):
                    return None
            else:
                self.smudge(meets)
                return answer
        raise AssertionError(f"waited, while no session holds {places}: {self.open}")

    def close(
        self, worker: str, draft: Tasks, places: set[Place], tokens: Sequence[Token] = (), *, later: bool
    ) -> None:
        """Commits what `act` did, or leaves it open."""
        changed = {task_id: task for task_id, task in draft.items() if task != self.tasks.get(task_id)}
        done = _Open(changed, places, list(tokens))
        if later:
            self.open[worker] = done
        else:
            self.conns[worker].execute("COMMIT")
            self.apply(done)
        self.settle_due()

    def apply(self, done: _Open) -> None:
        self.tasks.update(done.tasks)
        self.tokens += done.tokens
        self.known |= set(done.tokens)

    def draft(self) -> Tasks:
        return {task_id: replace(task) for task_id, task in self.tasks.items()}

    def claimable(self) -> set[Place]:
        """A claim may hold all of these: it promotes due tasks, and locks what it has read until it commits."""
        return {task.place for task in self.tasks.values() if task.status == "pending" and task.due <= self.clock}

    def settle_due(self) -> None:
        self.smudge(self.touched())
        self.eye.execute("SELECT promote_due_tasks()")

    # what can happen

    @rule(seed=st.integers(0, 2**64 - 1))
    def step(self, seed: int) -> None:
        """One of the operations below; where it makes no sense at this moment, one that does.

        Its details come of the seed: what shrinks is the sequence of operations. Drawn one by one they would mostly be the same few.
        """
        dice = Random(seed)
        what = dice.choice(_WHAT)
        if what in _BY_WORKERS and not self.idle():
            what = "end"
        if what == "end" and not self.open:
            what = dice.choice(("enqueue", "cycle", "finish"))
        if what == "finish" and not any(map(self._owned, self.tokens)):
            what = "claim"
        if not self.tasks and self.idle():
            what = "enqueue"
        if what in _BY_ITSELF:
            while self.open:
                self.end(dice)
        getattr(self, what)(dice)

    # enqueueing

    def enqueue(self, dice: Random) -> None:
        worker = dice.choice(self.idle())
        batch = [_new(dice) for _ in range(dice.randint(1, 5))]
        places = {new.place for new in batch}
        rows = self.act(worker, places, lambda conn: self._put(conn, batch))
        if rows is None:
            return
        draft = self.draft()
        self._enqueued(draft, batch, rows, self.touched(worker))
        self.close(worker, draft, places, later=dice.random() < _STAYS_OPEN)

    @staticmethod
    def _put(conn: psycopg.Connection[Any], batch: list[_New]) -> list[tuple[int, bool]]:
        return conn.execute(
            "SELECT e.id, e.created FROM enqueue_tasks(%(roles)s, %(stores)s::int[], %(priorities)s, %(payloads)s::jsonb[],"
            " ARRAY(SELECT CASE WHEN h > 0 THEN now() + make_interval(hours => h) END FROM unnest(%(later)s::int[])"
            "       WITH ORDINALITY u(h, o) ORDER BY o),"
            " array_fill('dutchie'::text, ARRAY[%(n)s]), %(retries)s, %(alone)s) e ORDER BY e.ord",
            {
                "roles": [new.role for new in batch],
                "stores": [new.store for new in batch],
                "priorities": [new.priority for new in batch],
                "payloads": [new.payload for new in batch],
                "later": [new.later for new in batch],
                "retries": [new.retries for new in batch],
                "alone": [new.alone for new in batch],
                "n": len(batch),
            },
        ).fetchall()

    def _enqueued(self, draft: Tasks, batch: list[_New], rows: list[tuple[int, bool]], touched: set[Place]) -> None:
        """What a batch must come to, one task after the other; the database chose the ids of new ones."""
        leads = [self._lead(batch, n) for n in range(len(batch))]
        merged = dict[int, _New]()
        for n, new in enumerate(batch):
            lead = merged.setdefault(leads[n], replace(batch[leads[n]]))
            lead.priority = max(lead.priority, new.priority)
            lead.later = min(lead.later, new.later)
        there = {n: self._there(draft, new) if new.alone else None for n, new in merged.items()}
        crowd = self._crowded_out(draft, merged, there)
        for n, new in merged.items():
            task_id, created = rows[n]
            if new.alone and (new.place in touched or (new.role, new.store) in self.smudged):
                # Which of them counts as waiting depends on what others hold: it is one of this key, or a new one.
                found = None if created else draft.get(task_id) or self._made(merged, rows, task_id)
                assert created or (found is not None and _same(found, new))
            elif n in crowd:
                assert (task_id, created) == (rows[crowd[n]][0], False)
                found = None
            else:
                found = there[n]
                assert (created, task_id) == ((True, task_id) if found is None else (False, found.id))
            if created:
                draft[task_id] = _Task(
                    task_id,
                    new.role,
                    new.store,
                    new.priority,
                    self.clock + new.later * HOUR,
                    new.retries,
                    new.payload,
                    new.alone,
                )
            elif isinstance(found, _Task):
                if found.due > self.clock and (found.attempt == 0 or new.priority > found.priority):
                    found.due = min(found.due, self.clock + new.later * HOUR)
                found.priority = max(found.priority, new.priority)
        for n, lead in enumerate(leads):
            assert n == lead or rows[n] == (rows[lead][0], False)

    @staticmethod
    def _made(merged: dict[int, _New], rows: list[tuple[int, bool]], task_id: int) -> _New | None:
        return next((new for n, new in merged.items() if rows[n] == (task_id, True)), None)

    @staticmethod
    def _lead(batch: list[_New], n: int) -> int:
        """The earlier one of the batch that a task which wants to wait alone stands back behind."""
        new = batch[n]
        if not new.alone:
            return n
        return next(
            m for m, other in enumerate(batch) if other.key == new.key and (other.alone or other.store is not None)
        )

    def _there(self, tasks: Tasks, new: _New) -> _Task | None:
        """The one of its key that waits already."""
        same = [task for task in tasks.values() if task.status == "pending" and task.key == (new.role, new.store)]
        if new.store is None:
            same = [task for task in same if task.payload == new.payload and task.alone]
            return min(same, key=lambda task: task.id, default=None)
        if any(task.status == "claimed" and task.key == (new.role, new.store) for task in tasks.values()):
            return min(same, key=lambda task: task.rank, default=None)
        ready = [task for task in same if task.due <= self.clock]
        return min(ready or same, key=lambda task: task.rank, default=None)

    def _crowded_out(self, tasks: Tasks, merged: dict[int, _New], there: dict[int, _Task | None]) -> dict[int, int]:
        """Those that want to wait alone and find that another one of their batch has become the head of their key."""
        found = {}
        rivals: dict[Any, list[int]] = defaultdict(list)
        for n, new in merged.items():
            if new.store is not None and new.later == 0 and there[n] is None:
                rivals[new.key].append(n)
        for (role, store), members in rivals.items():
            behind = any(
                task.key == (role, store)
                and (task.status == "claimed" or (task.status == "pending" and task.due <= self.clock))
                for task in tasks.values()
            )
            first = min(members, key=lambda n: (-merged[n].priority, n))
            found.update({n: first for n in members if n != first and merged[n].alone and not behind})
        return found

    # claiming

    def claim(self, dice: Random) -> None:
        worker = dice.choice(self.idle())
        n, roles = dice.randint(1, 4), dice.choice(_SOME_ROLES)
        looked = self.claimable()
        rows = self.act(
            worker,
            looked,
            lambda conn: conn.execute(
                "SELECT id, attempt FROM claim_tasks(%s, %s, %s)", (None if roles is None else list(roles), worker, n)
            ).fetchall(),
        )
        assert rows is not None
        draft = self.draft()
        tokens = self._claimed(draft, worker, roles, n, rows)
        places = looked | {draft[token[0]].place for token in tokens}
        self.close(worker, draft, places, tokens, later=dice.random() < _STAYS_OPEN)

    def _claimed(
        self, draft: Tasks, worker: str, roles: tuple[str, ...] | None, n: int, rows: list[tuple[int, int]]
    ) -> list[Token]:
        """Checks a claim's answer, and makes it true."""
        touched = self.touched(worker)
        self.smudge(touched)  # a claim moves what has come due into its place, except where another session holds it
        active = {task.store for task in draft.values() if task.status == "claimed"} - {None}
        got = [draft[task_id] for task_id, _ in rows]
        for task, (_, attempt) in zip(got, rows, strict=True):
            assert (task.status, task.attempt + 1) == ("pending", attempt)
            assert task.due <= self.clock
            assert roles is None or task.role in roles
            assert task.store not in active
            assert all(opened.tasks.get(task.id, task).status == "pending" for opened in self.open.values())
        stores = [task.store for task in got if task.store is not None]
        assert len(stores) == len(set(stores)), "two active tasks of a store"
        assert len(got) <= n
        assert [task.rank for task in got] == sorted(task.rank for task in got)
        expected: list[_Task] = []
        for task in sorted(self._candidates(draft, touched, got), key=lambda task: task.rank):
            if (roles is None or task.role in roles) and task.store not in active and len(expected) < n:
                expected.append(task)
                active |= {task.store} - {None}
        if self.open:
            # Others may have been in the way: fewer are possible, others are not.
            expected = expected[: len(got)]
        assert got == expected
        for task in got:
            task.status, task.worker, task.attempt, task.sign = "claimed", worker, task.attempt + 1, self.clock
        return [(task.id, worker, task.attempt) for task in got]

    def _candidates(self, draft: Tasks, touched: set[Place], got: list[_Task]) -> Iterator[_Task]:
        """The heads that can be claimed; where the order is loose, those that were."""
        heads: dict[Any, _Task] = {}
        for task in draft.values():
            if task.status != "pending" or task.due > self.clock:
                continue
            if task.place in touched or task.key in self.smudged:
                if task in got:
                    yield task
            elif task.store is None:
                yield task
            elif task.key not in heads or task.rank < heads[task.key].rank:
                heads[task.key] = task
        yield from heads.values()

    # ending

    def finish(self, dice: Random, given: str | None = None) -> None:
        """A token that was handed out, perhaps long ago; with the fence held first, and follow-ups."""
        token = task_id, worker, attempt = self._token(dice, self.tokens)
        verb, hours = given or dice.choice(_VERBS), dice.randint(0, 2)
        chain = [_new(dice) for _ in range(dice.choice((0, 0, 1, 2)))]
        hand = worker if worker in self.idle() else self.idle()[0]
        owned = self._owned(token)
        places = {self.tasks[task_id].place, *(new.place for new in chain if owned)}

        def work(conn: psycopg.Connection[Any]) -> Any:
            held = conn.execute(_SQL.hold, {"id": task_id, "worker": worker, "attempt": attempt}).fetchone()
            ended = conn.execute(
                "SELECT id, status FROM finish_tasks(%s, ARRAY[%s::bigint], ARRAY[%s], ARRAY[%s], ARRAY['why'],"
                " ARRAY[NULL::jsonb], ARRAY[%s::float], ARRAY[now() + make_interval(hours => %s)], ARRAY[0.1::float])",
                (worker, task_id, attempt, verb, hours * 3600.0, hours),
            ).fetchall()
            return held, ended, self._put(conn, chain) if ended and chain else []

        answer = self.act(hand, places, work)
        if answer is None:
            return
        held, ended, followed = answer
        assert (held is not None) is owned
        draft = self.draft()
        if owned:
            self._ended(draft[task_id], verb, hours)
            self._enqueued(draft, chain, followed, self.touched(hand))
        assert ended == ([(task_id, draft[task_id].status)] if owned else [])
        self.close(hand, draft, places, later=dice.random() < _STAYS_OPEN)

    def _token(self, dice: Random, tokens: list[Token]) -> Token:
        """Mostly one that still counts; else best one of a worker that has lost the task and has it again."""
        good = [token for token in tokens if self._owned(token)]
        held = {(task.id, task.worker) for task in self.tasks.values() if task.status == "claimed"}
        again = [token for token in tokens if token[:2] in held and token not in good]
        return dice.choice(good if good and dice.randint(0, 3) else again or tokens)

    def _owned(self, token: Token) -> bool:
        task = self.tasks[token[0]]
        return (task.status, task.id, task.worker, task.attempt) == ("claimed", *token)

    def _ended(self, task: _Task, verb: str, hours: int) -> None:
        worn = verb == "postpone" and task.postponed >= POSTPONEMENTS
        if verb in ("done", "fail"):
            task.status = "completed" if verb == "done" else "failed"
        elif (verb == "retry" or worn) and task.retries >= task.max_retries:
            task.status = "failed"
        else:
            task.status, task.worker = "pending", None
            task.retries += verb == "retry" or worn
            task.postponed += verb == "postpone" and not worn
            if verb != "release":
                task.due = self.clock + hours * HOUR

    def cycle(self, dice: Random) -> None:
        """A worker's round trip: ends, follow-ups of those that were its own, claims; in one transaction."""
        worker = dice.choice(self.idle())
        n, roles, hours = dice.randint(0, 3), dice.choice(_SOME_ROLES), dice.randint(0, 1)
        mine = [token for token in self.tokens if token[1] == worker]
        some = [self._token(dice, mine) for _ in range(dice.randint(0, 3)) if mine]
        tokens = {token[0]: token for token in some}.values()
        ends = [(token, dice.choice(_VERBS)) for token in tokens]
        chain = [
            (token, replace(new, alone=False))
            for token, verb in ends
            if verb == "done"
            for new in [_new(dice) for _ in range(dice.randint(0, 1))]
        ]
        live = [(token, verb) for token, verb in ends if self._owned(token)]
        places = {self.tasks[token[0]].place for token, _ in ends} | {new.place for _, new in chain}
        if n > 0:
            places |= self.claimable()

        def work(conn: psycopg.Connection[Any]) -> Any:
            return conn.execute(
                "SELECT id, attempt, lost FROM cycle_tasks(%(worker)s, %(ids)s::bigint[], %(attempts)s::int[], %(verbs)s::text[],"
                " array_fill('why'::text, ARRAY[%(ends)s]), NULL, array_fill(%(wait)s::float, ARRAY[%(ends)s]),"
                " array_fill(now() + make_interval(secs => %(wait)s), ARRAY[%(ends)s]), NULL,"
                " %(parents)s::bigint[], %(roles)s::text[], %(stores)s::int[], %(priorities)s::int[], %(payloads)s::jsonb[],"
                " ARRAY(SELECT CASE WHEN h > 0 THEN now() + make_interval(hours => h) END FROM unnest(%(later)s::int[])"
                "       WITH ORDINALITY u(h, o) ORDER BY o),"
                " array_fill('dutchie'::text, ARRAY[%(news)s]), %(retries)s::int[], array_fill(false, ARRAY[%(news)s]),"
                " %(claims)s::text[], %(n)s, 0, NULL, NULL, NULL)",
                {
                    "worker": worker,
                    "ids": [token[0] for token, _ in ends],
                    "attempts": [token[2] for token, _ in ends],
                    "verbs": [verb for _, verb in ends],
                    "ends": len(ends),
                    "wait": hours * 3600.0,
                    "parents": [token[0] for token, _ in chain],
                    "roles": [new.role for _, new in chain],
                    "stores": [new.store for _, new in chain],
                    "priorities": [new.priority for _, new in chain],
                    "payloads": [new.payload for _, new in chain],
                    "later": [new.later for _, new in chain],
                    "retries": [new.retries for _, new in chain],
                    "news": len(chain),
                    "claims": None if roles is None else list(roles),
                    "n": n,
                },
            ).fetchall()

        rows = self.act(worker, places, work)
        if rows is None:
            return
        draft = self.draft()
        for token, verb in live:
            self._ended(draft[token[0]], verb, hours)
        lost = {task_id for _, _, missing in rows for task_id in missing or ()}
        assert lost == {token[0] for token, _ in ends} - {token[0] for token, _ in live}
        followed = [new for token, new in chain if token[0] not in lost]
        made = self._youngest(worker, len(followed))
        self._enqueued(draft, followed, [(task_id, True) for task_id in made], self.touched(worker))
        claims = sorted(((row[0], row[1]) for row in rows if row[0] is not None), key=lambda row: draft[row[0]].rank)
        gained = self._claimed(draft, worker, roles, n, claims)
        places |= {draft[token[0]].place for token in gained}
        self.close(worker, draft, places, gained, later=dice.random() < _STAYS_OPEN)

    def _youngest(self, worker: str, n: int) -> list[int]:
        """The ids that its open transaction has just made; it may have claimed some of them already."""
        known = {*self.tasks, *(task_id for opened in self.open.values() for task_id in opened.tasks)}
        rows = self.conns[worker].execute("SELECT id FROM task_live WHERE id <> ALL (%s) ORDER BY id", (list(known),))
        found = [row[0] for row in rows.fetchall()]
        assert len(found) == n
        return found

    def cancel(self, dice: Random) -> None:
        worker = self.idle()[0]
        ids = dice.sample(sorted(self.tasks), min(len(self.tasks), dice.randint(1, 3)))
        places = {self.tasks[task_id].place for task_id in ids}
        rows = self.act(worker, places, lambda conn: conn.execute("SELECT cancel_tasks(%s)", (ids,)).fetchall())
        if rows is None:
            return
        draft = self.draft()
        live = [task_id for task_id in ids if draft[task_id].status in ("pending", "claimed")]
        assert sorted(row[0] for row in rows) == sorted(live)
        for task_id in live:
            draft[task_id].status = "cancelled"
        self.close(worker, draft, places, later=dice.random() < _STAYS_OPEN)

    def recover(self, dice: Random) -> None:
        """Those silent for half an hour: whole hours ago in the model. Locked rows may be passed over."""
        worker = self.idle()[0]
        silent = [task for task in self.tasks.values() if task.status == "claimed" and task.sign < self.clock]
        places = {task.place for task in silent}

        def work(conn: psycopg.Connection[Any]) -> tuple[int, list[int]]:
            (count,) = conn.execute("SELECT recover_stale_tasks(30)").fetchone() or (None,)
            rows = conn.execute(
                "SELECT id FROM task_live WHERE state = 'a' AND id = ANY (%s)", ([task.id for task in silent],)
            )
            kept = {row[0] for row in rows.fetchall()}
            return count, [task.id for task in silent if task.id not in kept]

        answer = self.act(worker, places, work, anywhere=True)
        if answer is None:
            return
        count, taken = answer
        assert count == len(taken)
        touched = self.touched(worker)
        assert {task.id for task in silent if task.place not in touched} <= set(taken)
        draft = self.draft()
        for task_id in taken:
            task = draft[task_id]
            if task.retries >= task.max_retries:
                task.status = "failed"
            else:
                task.status, task.worker, task.retries = "pending", None, task.retries + 1
        self.close(worker, draft, places, later=dice.random() < _STAYS_OPEN)

    # what else happens

    def end(self, dice: Random) -> None:
        """Of a transaction."""
        worker, commit = dice.choice(sorted(self.open)), dice.choice((True, True, False))
        self.conns[worker].execute("COMMIT" if commit else "ROLLBACK")
        done = self.open.pop(worker)
        self.smudge(done.places & self.touched())
        if commit:
            self.apply(done)
        self.settle_due()

    def crash(self, dice: Random) -> None:
        """Whatever a worker was doing is undone, and its tasks are forgotten."""
        worker = dice.choice(WORKERS)
        pid = self.conns[worker].info.backend_pid
        self.conns[worker].close()
        while self.eye.execute("SELECT FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchall():
            pass
        self.conns[worker] = self.connect()
        self.open.pop(worker, None)
        self.known = {token for token in self.known if token[1] != worker}
        self.settle_due()

    def heartbeat(self, dice: Random) -> None:
        worker = dice.choice(WORKERS)
        tokens = sorted(token for token in self.known if token[1] == worker)
        rows = self.eye.execute(
            _SQL.heartbeat,
            {
                "worker": worker,
                "ids": [token[0] for token in tokens],
                "attempts": [token[2] for token in tokens],
                "ran": [0.0 for _ in tokens],
            },
        ).fetchall()
        owned = [token for token in tokens if self._owned(token)]
        assert sorted(rows) == [(token[0], token[2]) for token in owned]
        for token in owned:
            # A locked row is passed over.
            if not any(token[0] in opened.tasks for opened in self.open.values()):
                self.tasks[token[0]].sign = self.clock

    def time_passes(self, dice: Random) -> None:
        hours = dice.randint(1, 2)
        self.clock += hours * HOUR
        self.eye.execute(
            "UPDATE task_live SET scheduled_for = scheduled_for - d, claimed_at = claimed_at - d, started_at = started_at - d,"
            " last_heartbeat_at = last_heartbeat_at - d FROM make_interval(hours => %s) d",
            (hours,),
        )
        if dice.random() < 0.5:
            # Another transaction is open when due tasks are promoted.
            self.smudged |= {
                t.key for t in self.tasks.values() if t.status == "pending" and t.due <= self.clock and t.store
            }
        else:
            self.settle_due()

    def silence(self, dice: Random) -> None:
        """Workers are silent for a while, and stale tasks are recovered."""
        self.time_passes(dice)
        self.recover(dice)

    def wear_out(self, dice: Random) -> None:
        """What runs has been postponed until (nearly) no postponement is left, and is so once more."""
        claimed = [task for task in self.tasks.values() if task.status == "claimed"]
        for task in claimed:
            task.postponed = POSTPONEMENTS - dice.randint(0, 1)
            self.eye.execute("UPDATE task_live SET postpone_count = %s WHERE id = %s", (task.postponed, task.id))
        if claimed:
            self.finish(dice, "postpone")

    def mend(self, dice: Random) -> None:
        """The net under I3 finds nothing."""
        assert self.eye.execute("SELECT unpark_stranded_tasks()").fetchone() == (0,)

    # what holds after every step

    @invariant()
    def the_same_tasks(self) -> None:
        if not hasattr(self, "tasks"):
            return
        rows = self.eye.execute(
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
    def the_live_table_is_sound(self) -> None:
        """I1 to I3, and that each store's head is the one that comes first."""
        if not hasattr(self, "tasks"):
            return
        rows = self.eye.execute("SELECT id, state, role, dispensary_id FROM task_live").fetchall()
        states: dict[tuple[str, int], dict[int, str]] = defaultdict(dict)
        for task_id, state, role, store in rows:
            task = self.tasks[task_id]
            assert (state == "a") is (task.status == "claimed")
            assert (
                state != "s"
                or task.due > self.clock
                or store is None
                or task.key in self.smudged
                or store in self.touched()
            )
            if store is None:
                assert state != "p"
            else:
                states[role, store][task_id] = state
        active = [store for (_, store), key in states.items() for state in key.values() if state == "a"]
        assert len(active) == len(set(active)), "I2: two active tasks of a store"
        for key, members in states.items():
            heads = [task_id for task_id, state in members.items() if state in "ra"]
            assert len(heads) <= 1, f"I1: {key} has the heads {heads}"
            assert heads or "p" not in members.values(), f"I3: {key} has parked tasks and no head"
            waiting = [self.tasks[task_id] for task_id, state in members.items() if state in "rp"]
            late = any(state == "s" and self.tasks[task_id].due <= self.clock for task_id, state in members.items())
            right = not late and (
                members.get(heads[0]) == "a" or heads[0] == min(waiting, key=lambda task: task.rank).id
                if heads
                else not waiting
            )
            if key[1] in self.touched():
                continue
            assert right or key in self.smudged, f"{key} is out of order: {members}"
            if right:
                self.smudged.discard(key)
        self.smudged = {key for key in self.smudged if key in states or key[1] in self.touched()}


def _same(found: _Task | _New, new: _New) -> bool:
    return (found.role, found.store) == (new.role, new.store) and (
        new.store is not None or found.payload == new.payload
    )


@pytest.fixture
def machine(database_url: str) -> Iterator[type[Queue]]:
    Queue.url = database_url
    Queue.eye = Queue.connect()
    Queue.conns = {worker: Queue.connect() for worker in WORKERS}
    yield Queue
    for conn in (*Queue.conns.values(), Queue.eye):
        conn.close()


@pytest.mark.slow
def test_the_queue_does_what_the_model_does(machine: type[Queue]) -> None:
    more = os.environ.get("MODEL_EXAMPLES")
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine,
        settings=settings(
            max_examples=int(more or 25),
            stateful_step_count=50,
            deadline=None,
            derandomize=more is None,
            database=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
