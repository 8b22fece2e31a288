"""The crash test: workers, and all that can happen to them. `make chaos` runs it; SEED=… repeats a run's plan and faults.

    feeder ──waves of tasks──► queue ◄── workers ◄── kill -9, SIGSTOP, SIGTERM
                                 ▲ └──── connections cut, PostgreSQL stopped in the midst of everything
                                 └── somebody cancels what waits to be cancelled

A disturbance comes when a share of the work that was fed so far is done, never at a time: a slow machine has the same run, only later.
At the end `evidence.faults` looks at what is left.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from menuwatch.db import migrate
from menuwatch.db.pool import Connection, connect
from menuwatch.queue import store as tasks
from menuwatch.queue.model import Role
from tests.chaos import evidence, trace
from tests.chaos.evidence import Effect, Ended, Evidence
from tests.chaos.plan import Node, Plan
from tests.chaos.server import Server
from tests.chaos.worker_processes import Crew, Leash, Member

_STANDSTILL = 180.0
"""Seconds without any progress after which the run has failed. Nothing else depends on how fast the machine is."""

_MANY = 40
"""Slots of a worker whose cycles overlap."""

_TABLES = """
CREATE TABLE chaos_effects (
  task_id bigint NOT NULL, attempt integer NOT NULL, name text NOT NULL, what text NOT NULL, worker_id text NOT NULL,
  store integer, claimed_at timestamptz NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE chaos_fed (wave integer PRIMARY KEY);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How big a run is. `stale` in seconds; `first`: the share of the trees that is there from the start."""

    workers: int
    slots: int
    tasks: int
    stores: int
    stale: float
    first: float
    kills: int
    stops: int
    terms: int
    cuts: int
    crashes: int
    axes: int

    def faults(self, rng: Random) -> list[str]:
        """All disturbances, in their order."""
        kinds = ("kill", "stop", "term", "cut", "crash", "axe")
        numbers = (self.kills, self.stops, self.terms, self.cuts, self.crashes, self.axes)
        found = [kind for kind, n in zip(kinds, numbers, strict=True) for _ in range(n)]
        rng.shuffle(found)
        return found


FULL = Size(
    workers=8, slots=5, tasks=20_000, stores=500, stale=4.0, first=0.5,
    kills=50, stops=25, terms=15, cuts=40, crashes=9, axes=1,
)  # fmt: skip
SHORT = Size(
    workers=3, slots=4, tasks=600, stores=40, stale=1.5, first=0.3,
    kills=2, stops=2, terms=1, cuts=3, crashes=1, axes=1,
)  # fmt: skip


@dataclass(slots=True)
class Report:
    """What a run was like. `faults` is empty when all that must hold held."""

    seed: int
    faults: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    counts: dict[str, Any] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """For people."""
        return [
            f"seed {self.seed}: {'FAILED' if self.faults else 'all held'}",
            *(f"  {name}: {value}" for name, value in {**dict(sorted(self.done.items())), **self.counts}.items()),
            *(f"  WRONG: {fault}" for fault in self.faults[:50]),
            *([f"  and {len(self.faults) - 50} more"] if len(self.faults) > 50 else []),
        ]


class Desk:
    """A connection that comes back when it was cut."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._conn: Connection | None = None

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        if self._conn is None or self._conn.closed:
            self._conn = await connect(self._url, name="chaos-desk")
        try:
            yield self._conn
        except psycopg.OperationalError:
            await self.close()
            raise

    async def close(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            with contextlib.suppress(psycopg.Error):
                await conn.close()

    async def ask(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows; asked again until the database answers, so the statement must be one that may run twice."""
        return await self.do(lambda conn: self._rows(conn, statement, values))

    @staticmethod
    async def _rows(conn: Connection, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        cursor = await conn.execute(statement, values)  # type: ignore[arg-type]
        return await cursor.fetchall() if cursor.description else []

    async def do(self, work: Callable[[Connection], Any]) -> Any:
        """Calls `work` until it comes through without the connection being lost."""
        deadline = time.monotonic() + _STANDSTILL
        while True:
            try:
                async with self._connection() as conn:
                    return await work(conn)
            except psycopg.OperationalError:
                if time.monotonic() >= deadline:
                    raise
                await asyncio.sleep(0.1)


class Chaos:
    """One run."""

    def __init__(self, size: Size, seed: int, folder: Path, leash: Leash, say: Callable[[str], None]) -> None:
        self._size = size
        self._say = say
        self._rng = Random(seed)
        self._plan = Plan(seed, count=size.tasks, stores=size.stores)
        self._report = Report(seed)
        self._folder = folder
        self._server = Server(folder, started=leash.hold, ended=leash.let_go)
        migrate.migrate(self._server.url)
        common = {
            "url": self._server.url, "seed": seed, "stores": size.stores, "stale": size.stale,
        }  # fmt: skip
        self._crew = Crew(leash, folder, common, self._rng)
        self._waking: set[asyncio.Task[None]] = set()
        self._began = time.monotonic()

    async def run(self) -> Report:
        """The whole of it. Whatever happens, no process is left when it returns."""
        desk = Desk(self._server.url)
        cancelling = None
        try:
            await desk.ask(_TABLES)
            for n in range(self._size.workers):
                # Mostly all-rounders; every third place does a few roles only, every third has slots for two cycles at once.
                roles = frozenset(self._rng.sample(list(Role), 3)) if n % 3 == 2 else None
                await self._crew.hire(roles, _MANY if n % 3 == 1 else self._size.slots)
            cancelling = asyncio.create_task(self._cancel())
            await self._feed_and_disturb(desk)
            await self._until(desk, self._plan.total)
            await self._come_to_rest()
            cancelling.cancel()
            await self._judge(desk)
        except TimeoutError as error:
            self._report.faults.append(f"{type(error).__name__}: {error}")
        finally:
            if cancelling is not None:
                cancelling.cancel()
            for task in self._waking:
                task.cancel()
            await self._crew.kill()
            await desk.close()
            await asyncio.to_thread(self._server.stop)
        self._report.counts["seconds"] = round(time.monotonic() - self._began, 1)
        return self._report

    # the work

    async def _feed_and_disturb(self, desk: Desk) -> None:
        faults = self._size.faults(self._rng)
        trees = self._plan.trees
        first = int(len(trees) * self._size.first)
        bounds = [0, *(first + (len(trees) - first) * n // len(faults) for n in range(len(faults))), len(trees)]
        fed = ended = 0
        for wave, kind in enumerate(faults):
            batch = trees[bounds[wave] : bounds[wave + 1]]
            await self._feed(desk, wave, [tree[0] for tree in batch])
            fed += sum(map(len, batch))
            # Mostly early in what there is to do, so that a backlog remains; now and then when little is left.
            ended = await self._until(desk, ended + int((0.95 * fed - ended) * self._rng.random() ** 3))
            self._say(
                f"{time.monotonic() - self._began:6.1f} s  {ended:6} of {self._plan.total} ended; "
                f"disturbance {wave + 1:3} of {len(faults)}: {kind}"
            )
            await self._disturb(desk, kind)
        await self._feed(desk, len(faults), [tree[0] for tree in trees[bounds[-2] :]])

    async def _feed(self, desk: Desk, wave: int, roots: Sequence[Node]) -> None:
        """A wave, whose fate is never in doubt: a row says that it was fed, in the same transaction."""
        if not roots:
            return

        async def put(conn: Connection) -> None:
            async with conn.transaction():
                cursor = await conn.execute("SELECT FROM chaos_fed WHERE wave = %s", (wave,))
                if await cursor.fetchone() is not None:
                    return
                await conn.execute("INSERT INTO chaos_fed VALUES (%s)", (wave,))
                new = [root.task() for root in roots]
                for at in range(0, len(new), 500):
                    await tasks.enqueue(conn, new[at : at + 500])

        await desk.do(put)

    async def _until(self, desk: Desk, ended: int) -> int:
        """Until so many tasks have ended; returns how many have."""
        last, since = -1, time.monotonic()
        while True:
            ((now,),) = await desk.ask("SELECT count(*) FROM task_history")
            if now >= ended:
                return int(now)
            if now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > _STANDSTILL:
                rows = await desk.ask(
                    "SELECT state, count(*), min(scheduled_for), array_agg(DISTINCT worker_id) FROM task_live GROUP BY state"
                )
                raise TimeoutError(f"nothing ended for {_STANDSTILL:.0f} seconds; {now} of {ended} have; live: {rows}")
            for member in list(self._crew.members):
                if member.process.returncode is not None and not member.busy:
                    self._report.faults.append(
                        f"worker {member.name} ended by itself with {member.process.returncode}: {self._last_words(member)}"
                    )
                    await self._crew.replace(member)
            await asyncio.sleep(0.05)

    async def _cancel(self) -> None:
        """Some tasks end only by being cancelled: most of them while they run, the others while they wait."""
        desk, rng = Desk(self._server.url), Random(self._report.seed)
        try:
            while True:
                found = await desk.ask("SELECT id, state = 'a' FROM task_live WHERE payload ->> 'end' = 'cancel'")
                ids = [task_id for task_id, active in found if active or rng.random() < 0.02]
                if ids:
                    await desk.do(lambda conn, ids=ids: tasks.cancel(conn, ids, "on purpose"))
                await asyncio.sleep(0.3)
        finally:
            await desk.close()

    # what happens to it

    async def _disturb(self, desk: Desk, kind: str) -> None:
        await {
            "kill": self._kill, "stop": self._suspend, "term": self._term, "cut": self._cut, "crash": self._crash, "axe": self._axe,
        }[kind](desk)  # fmt: skip
        self._report.done[kind] += 1

    async def _victim(self, desk: Desk) -> Member:
        """A worker, if possible one with tasks in hand."""
        for _ in range(100):
            rows = await desk.ask("SELECT DISTINCT worker_id FROM task_live WHERE state = 'a' ORDER BY 1")
            holding = {str(worker).rpartition("-")[0] for (worker,) in rows}
            free = [member for member in self._crew.members if not member.busy]
            busy = [member for member in free if member.name in holding]
            if busy:
                return self._rng.choice(busy)
            if not free:
                await asyncio.gather(*self._waking)
            await asyncio.sleep(0.05)
        return self._rng.choice([member for member in self._crew.members if not member.busy])

    async def _kill(self, desk: Desk) -> None:
        victim = await self._victim(desk)
        victim.busy = True
        victim.signal(signal.SIGKILL)
        await self._crew.replace(victim)

    async def _term(self, desk: Desk) -> None:
        victim = await self._victim(desk)
        victim.busy = True
        victim.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_STANDSTILL):
                code = await self._crew.replace(victim)
        except TimeoutError:
            raise TimeoutError(f"worker {victim.name} did not stop in {_STANDSTILL:.0f} seconds") from None
        if code != 0:
            self._report.faults.append(
                f"worker {victim.name} ended with {code} when told to stop: {self._last_words(victim)}"
            )

    async def _suspend(self, desk: Desk) -> None:
        """SIGSTOP until the others have taken its tasks; it wakes while further things happen."""
        victim = await self._victim(desk)
        victim.busy = True
        victim.signal(signal.SIGSTOP)
        waking = asyncio.create_task(self._wake(victim))
        self._waking.add(waking)
        waking.add_done_callback(self._waking.discard)
        if len(self._waking) >= max(1, self._size.workers // 3):
            await asyncio.wait(self._waking, return_when=asyncio.FIRST_COMPLETED)

    async def _wake(self, victim: Member) -> None:
        desk, began = Desk(self._server.url), time.monotonic()
        try:
            while True:
                # Rows that it holds locked, in the midst of settling, nobody takes from it: those are not waited for for ever.
                ((held,),) = await desk.ask(
                    "SELECT count(*) FROM task_live WHERE state = 'a' AND worker_id LIKE %s", (f"{victim.name}-%",)
                )
                if held == 0 and time.monotonic() - began > self._size.stale:
                    self._report.done["stop: tasks were taken"] += 1
                    break
                if time.monotonic() - began > 3 * self._size.stale:
                    self._report.done["stop: it kept tasks"] += 1
                    break
                await asyncio.sleep(0.1)
        finally:
            victim.signal(signal.SIGCONT)
            victim.busy = False
            await desk.close()

    async def _cut(self, desk: Desk) -> None:
        rows = await desk.ask("SELECT pid FROM pg_stat_activity WHERE application_name ^@ 'menuwatch' ORDER BY pid")
        pids = [pid for (pid,) in rows]
        chosen = self._rng.sample(pids, min(len(pids), self._rng.randint(1, 8)))
        await desk.ask("SELECT pg_terminate_backend(p) FROM unnest(%s::integer[]) p", (chosen,))
        self._report.done["connections cut"] += len(chosen)

    async def _crash(self, _: Desk) -> None:
        await asyncio.to_thread(self._server.stop)
        await asyncio.sleep(self._rng.choice((0, 0, 0.5, 2.0)))
        await asyncio.to_thread(self._server.start)

    async def _axe(self, _: Desk) -> None:
        await asyncio.to_thread(self._server.stop, signal.SIGKILL)
        await asyncio.to_thread(self._server.start)

    # the end

    async def _come_to_rest(self) -> None:
        if self._waking:
            await asyncio.wait(self._waking)
        for name, code in await self._crew.dismiss():
            if code != 0:
                self._report.faults.append(f"worker {name} ended with {code} when all were done")

    async def _judge(self, desk: Desk) -> None:
        report = self._report
        history = await desk.ask(
            "SELECT id, payload ->> 'n', role, dispensary_id, priority, status, attempt, retry_count, postpone_count, worker_id,"
            " claimed_at, completed_at, result FROM task_history"
        )
        effects = await desk.ask(
            "SELECT task_id, attempt, name, what, worker_id, store, claimed_at, at FROM chaos_effects"
        )
        live = [row[0] for row in await desk.ask("SELECT id FROM task_live")]
        ((stranded,),) = await desk.ask("SELECT unpark_stranded_tasks()")
        runs, beats, offset = evidence.runs_of(trace.read(self._folder))
        seen = Evidence(
            ended=[Ended(**dict(zip(Ended.__slots__, row, strict=True))) for row in history],
            effects=[Effect(**dict(zip(Effect.__slots__, row, strict=True))) for row in effects],
            runs=runs,
            beats=beats,
            offset=offset,
            live=live,
            stranded=stranded,
        )
        report.faults += evidence.faults(self._plan.nodes(), seen, stale=self._size.stale)
        said = self._said()
        complaints = self._server.complaints()
        report.faults += [f"the engine said {action} {n} times" for action, n in said.items() if action in _NEVER]
        report.faults += [
            f"the server said {n} times: {text}"
            for text, n in complaints.items()
            if "duplicate key" in text or "PANIC" in text
        ]
        report.counts |= {
            "tasks": len(history),
            "statuses": dict(Counter(row.status for row in seen.ended)),
            "attempts begun": len(runs),
            "attempts lost or given back": len(runs) - sum(1 for run in runs if run.told and run.told[0]),
            "effects": len(effects),
            "handlers of lost attempts that lived on beside their successor": sum(
                1 for first, _ in evidence.overlaps(seen) if first.ended is not None
            ),
            "worker processes": len(list(self._folder.glob("c*.log"))),
            "warnings": said,
            "server errors": complaints,
        }

    def _said(self) -> dict[str, int]:
        found: Counter[str] = Counter()
        for path in self._folder.glob("c*.log"):
            for line in path.read_text(errors="replace").splitlines():
                try:
                    found[json.loads(line)["action"]] += 1
                except (ValueError, KeyError, TypeError):
                    found["not a log line"] += 1
        return dict(sorted(found.items()))

    def _last_words(self, member: Member) -> str:
        return (self._folder / f"{member.name}.log").read_text(errors="replace")[-1500:]


_NEVER = frozenset({"tasks_unparked", "attempt_failed", "task_settle_failed"})
"""What the engine must never have to say, whatever is done to it."""


async def run(size: Size, seed: int, say: Callable[[str], None] = lambda _: None, keep: Path | None = None) -> Report:
    """One run in a folder of its own, which is gone afterwards; its traces and logs are copied to `keep`."""
    folder = Path(tempfile.mkdtemp(prefix="mw-chaos-", dir="/tmp" if Path("/tmp").is_dir() else None))
    with Leash(folder) as leash:
        report = await Chaos(size, seed, folder, leash, say).run()
        if keep is not None:
            shutil.copytree(folder, keep, ignore=shutil.ignore_patterns("data*", "s"), dirs_exist_ok=True)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=None, help="repeats the plan and the faults of that run")
    parser.add_argument("--short", action="store_true", help="the form that is part of `make test`")
    parser.add_argument("--keep", type=Path, default=None, help="a folder to copy the traces and logs to")
    given = parser.parse_args()
    seed = int(time.time()) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    report = asyncio.run(run(SHORT if given.short else FULL, seed, lambda line: print(line, flush=True), given.keep))
    print("\n".join(report.lines()), flush=True)
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
