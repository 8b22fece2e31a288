"""What a claim costs Menuwatch as the backlog and the history grow."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from rates import Bench

from menuwatch.db.pool import Connection, connect
from menuwatch.queue import store
from menuwatch.queue.claim import Claim, cycle
from menuwatch.queue.ending import Ending
from menuwatch.queue.model import NewTask, Role

N = 50
STORES = 2000
BUSY = 50
WARM_UP = 10
BATCH = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """So many tasks waiting and finished; its database begins as a copy of `grown_from`'s."""

    label: str
    waiting: int
    finished: int = 0
    grown_from: Size | None = None


def sizes(smallest: int) -> list[Size]:
    """Smallest, 10 and 100 times as many waiting, and the smallest with 100 times as many finished."""
    one = Size(label="base", waiting=smallest)
    ten = Size(label="x10", waiting=10 * smallest, grown_from=one)
    hundred = Size(label="x100", waiting=100 * smallest, grown_from=ten)
    return [one, ten, hundred, Size(label="history", waiting=smallest, finished=100 * smallest, grown_from=one)]


def store_of(number: int) -> int:
    """Half of the tasks queue up at 2,000 stores; the others have a store each, so that the claim's index grows as well."""
    return number // 2 % STORES + 1 if number % 2 == 0 else STORES + number


async def claim_cost(
    bench: Bench, template: str, among: Sequence[Size], claims: int, say: Callable[[str], None]
) -> dict[str, list[float]]:
    """Milliseconds per task of each claim, by label."""
    made: dict[str, str] = {}
    try:
        for size in among:
            say(f"  {size.waiting:,} waiting, {size.finished:,} finished")
            source = template if size.grown_from is None else made[size.grown_from.label]
            made[size.label] = bench.server.create(f"claims_{size.label}", source)
            await _fill(bench.server.url(made[size.label]), size)
        bench.server.checkpoint()
        costs: dict[str, list[float]] = {size.label: [] for size in among}
        async with AsyncExitStack() as stack:
            # A database that is copied must have no sessions, so they begin only now.
            conns = [
                (label, await stack.enter_async_context(await connect(bench.server.url(name))))
                for label, name in made.items()
            ]
            for number in range(-WARM_UP, claims):
                turn = number % len(conns)
                for label, conn in conns[turn:] + conns[:turn]:
                    cost = await _claim(conn)
                    if number >= 0:
                        costs[label].append(cost)
        return costs
    finally:
        for name in made.values():
            bench.server.drop(name)


async def _claim(conn: Connection) -> float:
    """Milliseconds per task of a claim as workers make it; what it got is then completed, and as much put back."""
    start = time.perf_counter()
    claimed = (await cycle(conn, "bench", claim=Claim(roles=[Role.PAYLOAD_FETCH], n=N))).claimed
    took = time.perf_counter() - start
    if len(claimed) != N:
        raise AssertionError(f"a claim of {N} gave {len(claimed)}")
    tasks = [item.task for item in claimed]
    await store.finish(conn, "bench", [Ending(task_id=task.id, attempt=task.attempt, verb="done") for task in tasks])
    await store.enqueue(conn, [_crawl(task.dispensary_id or 0) for task in tasks], wake=False)
    return took * 1000 / N


def _crawl(store_id: int) -> NewTask:
    return NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=store_id, unique=False)


async def _fill(url: str, size: Size) -> None:
    there = 0 if size.grown_from is None else size.grown_from.waiting
    async with await connect(url) as conn:
        if size.grown_from is None:
            # These stores are busy with work of another role, and what they have waiting for this one is the oldest there is.
            refreshes = [NewTask(role=Role.PRODUCT_REFRESH, dispensary_id=n + 1, unique=False) for n in range(BUSY)]
            await store.enqueue(conn, refreshes, wake=False)
            await store.claim(conn, "busy", [Role.PRODUCT_REFRESH], BUSY)
        for start in range(there, size.waiting, BATCH):
            numbers = range(start, min(start + BATCH, size.waiting))
            await store.enqueue(conn, [_crawl(store_of(number)) for number in numbers], wake=False)
        if size.finished:
            await _finished(conn, size.finished)
        await conn.execute("VACUUM (ANALYZE)")


async def _finished(conn: Connection, count: int) -> None:
    """A history such as completing that many tasks today would leave."""
    await conn.execute(
        """
        INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, dispensary_id, priority, attempt, retry_count,
                                  max_retries, postpone_count, role, platform, status, worker_id, payload)
        SELECT nextval('task_ids'), now(), now(), now(), now(), n %% %s + 1, 0, 1, 0,
               3, 0, 'payload_fetch', 'dutchie', 'completed', 'bench', '{}'
          FROM generate_series(1, %s) n
        """,
        [STORES, count],
    )
