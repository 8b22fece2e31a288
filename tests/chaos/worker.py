"""One worker process of the crash test: the real engine, with handlers that do what the plan says and keep a trace of it."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import signal
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from psycopg import AsyncConnection
from psycopg_pool import PoolTimeout

from menuwatch.core import logging as telemetry
from menuwatch.core.backoff import Backoff
from menuwatch.core.errors import Permanent, Transient
from menuwatch.core.postpone import PostponeCode
from menuwatch.db.pool import Pool, open_pool
from menuwatch.queue.model import Role, Task
from menuwatch.queue.outcome import Done, Fail, Outcome, Postpone, Retry, Writes, Wrote
from menuwatch.workers.engine.config import WorkerConfig
from menuwatch.workers.engine.handler import TaskContext
from menuwatch.workers.engine.worker import Worker
from tests.chaos.plan import ON_PURPOSE, Node, Plan
from tests.chaos.trace import Trace

_EFFECT = "INSERT INTO chaos_effects (task_id, attempt, name, what, worker_id, store, claimed_at) VALUES (%s, %s, %s, %s, %s, %s, %s)"


class Hands:
    """The handler of every role."""

    def __init__(self, plan: Plan, trace: Trace) -> None:
        self._plan = plan
        self._trace = trace
        self.rng = Random()

    async def __call__(self, task: Task, ctx: TaskContext) -> Outcome:
        node = self._plan.node(task.payload["n"])
        ids = {"id": task.id, "attempt": task.attempt}
        self._trace.put(
            "start", **ids, name=node.name, store=task.dispensary_id, worker=ctx.worker_id, claimed=task.claimed_at
        )
        try:
            await self._work(node)
        except asyncio.CancelledError:
            self._trace.put("cut", **ids, lost=ctx.lost.is_set())
            raise
        try:
            outcome = self._outcome(node, task, ctx)
        finally:
            self._trace.put("end", **ids)
        return outcome

    async def _work(self, node: Node) -> None:
        if node.end == "cancel":
            await asyncio.Event().wait()
        until = time.monotonic() + node.work
        while (left := until - time.monotonic()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                if not node.deaf:
                    raise

    def _outcome(self, node: Node, task: Task, ctx: TaskContext) -> Outcome:
        result = dict(task.result or {})
        tries = result.get("tries", 0)
        soon = timedelta(seconds=self.rng.choice((0, 0.01, 0.3)))
        if task.postpone_count < node.postpones:
            return Postpone(
                code=PostponeCode.THROTTLED,
                until=datetime.now(UTC) + soon,
                reason=ON_PURPOSE,
                **self._keeping(node, task, ctx, "postpone"),
            )
        if tries < node.tries or node.end == "exhaust":
            return Retry(
                reason=ON_PURPOSE,
                after=soon,
                result={"tries": tries + 1},
                **self._keeping(node, task, ctx, "retry"),
            )
        if node.end == "fail":
            return Fail(reason=ON_PURPOSE, **self._keeping(node, task, ctx, "fail"))
        if node.end == "raise":
            raise Permanent(ON_PURPOSE)
        then = [self._plan.node(name).task() for name in node.names]
        if not node.writes:
            return Done(result={**result, "n": node.name}, then=then, **self._keeping(node, task, ctx, "done"))
        # Half of the follow-ups are known at once, the others come of the writes.
        late = then[1::2]
        return Done(
            result={**result, "n": node.name},
            then=then[::2],
            **self._keeping(node, task, ctx, "done", Wrote(then=late)),
        )

    def _keeping(
        self, node: Node, task: Task, ctx: TaskContext, what: str, wrote: Wrote | None = None
    ) -> dict[str, Any]:
        """Rows of the outcome's own, where the plan wants some; and a note of what its author is told of its fate."""
        writes: Writes | None = None

        async def put(conn: AsyncConnection[Any]) -> Wrote | None:
            await conn.execute(
                _EFFECT,
                (task.id, task.attempt, node.name, what, ctx.worker_id, task.dispensary_id, task.claimed_at),
            )
            if node.trips and task.attempt % 2 == 1:
                raise Transient("tripped over its own writes")
            return wrote

        def told(committed: bool) -> None:
            self._trace.put("told", id=task.id, attempt=task.attempt, what=what, committed=committed)

        if node.writes:
            writes = put
        return {"writes": writes, "settle": told}


def _watch_beats(worker: Worker, trace: Trace) -> None:
    """Notes each heartbeat that went through: the evidence of when the others may have thought this worker dead."""
    step = worker.heartbeat.step

    async def noted() -> float | None:
        began = time.monotonic()
        pause = await step()
        trace.put("beat", worker=worker.worker_id, began=began)
        return pause

    worker.heartbeat.step = noted  # type: ignore[method-assign]


async def _serve(given: argparse.Namespace, pool: Pool) -> None:
    trace = Trace(Path(given.folder) / f"{given.name}.trace")
    hands = Hands(Plan(given.seed, count=0, stores=given.stores), trace)
    worker = Worker(
        pool,
        given.url,
        dict.fromkeys(Role, hands),
        WorkerConfig(
            worker_id=f"{given.name}-{secrets.token_hex(4)}",
            roles=frozenset(Role(name) for name in given.roles.split(",")) if given.roles else None,
            slots=given.slots,
            poll_interval=0.5,
            heartbeat_interval=given.stale / 8,
            reap_interval=given.stale / 4,
            stale_after=timedelta(seconds=given.stale),
            backoff=Backoff(base=0.05),
            grace=given.grace,
            db_timeout=60.0,
        ),
    )
    _watch_beats(worker, trace)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, worker.stop)
    trace.put("hello", worker=worker.worker_id, pid=os.getpid(), wall=time.time())
    await worker.run()
    trace.put("bye", worker=worker.worker_id)


async def _main(given: argparse.Namespace) -> None:
    while True:
        try:
            async with open_pool(given.url, max_size=given.slots + 3, name="menuwatch-chaos") as pool:
                await _serve(given, pool)
                return
        except PoolTimeout:
            continue  # the server is away at this moment; a supervisor would start the process anew


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--url", "--folder", "--name", "--roles"):
        parser.add_argument(name, default="")
    for name in ("--seed", "--stores", "--slots"):
        parser.add_argument(name, type=int, default=1)
    for name in ("--stale", "--grace"):
        parser.add_argument(name, type=float, default=1.0)
    given = parser.parse_args()
    telemetry.configure("json", "warning")
    asyncio.run(_main(given))


if __name__ == "__main__":
    sys.exit(main())
