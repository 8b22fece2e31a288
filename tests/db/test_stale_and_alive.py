"""What counts as stale is the same for everything that shows it and for recovery, whatever STALE_AFTER_MINUTES is."""

from __future__ import annotations

from datetime import timedelta

import pytest

from menuwatch.db.pool import Pool
from menuwatch.db.query import fetch_one
from menuwatch.ops import overview
from menuwatch.ops.metrics import Reader
from menuwatch.queue import counts
from menuwatch.queue import store as tasks
from menuwatch.queue.explain.service import explain
from menuwatch.queue.model import NewTask, Role
from menuwatch.queue.task_list import TaskFilter
from menuwatch.workers import pods, timeline
from menuwatch.workers.engine.reaper import Reaper
from tests.db.queue_calls import claim, put


async def shown(pool: Pool, task_id: int) -> set[bool]:
    """For each reader whether it shows the task as stale."""
    figures = await Reader(pool).read()
    async with pool.connection() as conn:
        row = await fetch_one(conn, "SELECT status FROM worker_tasks WHERE id = %(id)s", {"id": task_id})
        (held,) = await pods.held(conn)
        ((bar,),) = [lane.bars for lane in (await timeline.timeline(conn)).lanes]
        return {
            row is not None and row["status"] == "stale",
            held["status"] == "stale",
            bar.status == "stale",
            (await counts.count_by_status(conn, TaskFilter())).stale == 1,
            sum(queue.stale for queue in figures.queue) == 1,
            sum(load.stale for load in (await overview.overview(conn)).roles) == 1,
            (await explain(conn, task_id)).code == "stale",
        }


@pytest.mark.parametrize(("minutes", "is_stale"), [(10, False), (1, True), (30, False)])
async def test_what_is_shown_as_stale_is_what_is_recovered(pool: Pool, minutes: float, is_stale: bool) -> None:
    (task_id,) = await put(pool, NewTask(role=Role.PRODUCT_REFRESH, dispensary_id=1))
    await claim(pool)
    await Reaper(pool, stale_after=timedelta(minutes=minutes)).step()
    async with pool.connection() as conn:
        await conn.execute("UPDATE task_live SET claimed_at = now() - interval '5 minutes'")
    assert await shown(pool, task_id) == {is_stale}
    async with pool.connection() as conn:
        assert await tasks.recover_stale(conn, minutes) == is_stale
