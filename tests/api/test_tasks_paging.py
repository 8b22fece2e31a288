"""Lists of tasks while the tasks move: from waiting to work to history, between one page and the next."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from tests.api.shop import Shop

END = (
    "SELECT finish_tasks('w1', array_agg(id), array_agg(attempt), array_agg(%s::text), array_agg('why'::text), array_agg(NULL::jsonb),"
    " array_agg(0::float8), array_agg(now()), array_agg(1::float8)) FROM claim_tasks(NULL, 'w1', %s)"
)
MORE = (
    "INSERT INTO worker_tasks (role, payload)"
    " SELECT 'store_discovery', jsonb_build_object('n', n) FROM generate_series(%s::integer, %s) n"
)


async def _ids(shop: Shop) -> list[int]:
    async with shop.pool.connection() as conn:
        cursor = await conn.execute("SELECT id FROM worker_tasks ORDER BY id DESC")
        return [row[0] for row in await cursor.fetchall()]


@pytest.mark.parametrize("limit", [1, 7, 200])
async def test_between_pages_tasks_move_and_none_is_lost_or_repeated(shop: Shop, limit: int) -> None:
    mine = Random(limit)
    await shop.execute(MORE, [1, 40])
    expected = await _ids(shop)
    found: list[int] = []
    cursor: dict[str, Any] = {}
    more = 100
    while True:
        page = await shop.ask("/api/tasks", params={"limit": limit, **cursor})
        found += [task["id"] for task in page["items"]]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
        await shop.execute(END, [mine.choice(("done", "fail", "retry", "postpone")), mine.randint(0, 3)])
        await shop.execute("SELECT cancel_tasks(ARRAY(SELECT id FROM task_live ORDER BY random() LIMIT 1))")
        await shop.execute(MORE, [more, more + 2])
        more += 3
    assert found == expected, "those that were there when it began, newest first; what came later is on no later page"


async def test_while_a_worker_is_at_it(shop: Shop) -> None:
    await shop.execute(MORE, [1, 300])
    expected = await _ids(shop)
    stop = asyncio.Event()

    async def work() -> None:
        while not stop.is_set():
            await shop.execute(END, ["done", 3])

    working = asyncio.create_task(work())
    try:
        walks = [[task["id"] for task in await shop.walk("/api/tasks", limit=limit)] for limit in (20, 50)]
        narrow = await shop.walk("/api/tasks", role="store_discovery", limit=30)
    finally:
        stop.set()
        await working
    assert walks == [expected, expected]
    assert [task["id"] for task in narrow] == expected
    counts = await shop.ask("/api/tasks/counts")
    assert counts["total"] == 300
    assert counts["completed"] > 0


async def test_a_state_is_counted_as_it_is_listed(shop: Shop) -> None:
    """Every filter and pair of filters: the count is the length of the list."""
    store = await shop.store()
    await shop.execute(MORE, [1, 12])
    await shop.execute("INSERT INTO worker_tasks (role, dispensary_id) VALUES ('payload_fetch', %s)", [store])
    for verb in ("done", "fail", "retry", "postpone", "done"):
        await shop.execute(END, [verb, 2])
    await shop.execute("SELECT claim_tasks(NULL, 'w2', 2)")
    await shop.execute(
        "UPDATE task_live SET claimed_at = now() - interval '1 hour' WHERE id = (SELECT min(id) FROM task_live WHERE state = 'a')"
    )
    await shop.execute(
        "SELECT cancel_tasks(ARRAY(SELECT id FROM task_live WHERE state = 'r' ORDER BY id DESC LIMIT 1))"
    )
    middle = (await shop.walk("/api/tasks"))[6]["created_at"]
    choices: list[dict[str, Any]] = [
        {},
        *(
            {"status": status}
            for status in ("pending", "claimed", "stale", "completed", "failed", "cancelled", "running")
        ),
        {"status": ["failed", "cancelled"]},
        {"role": "store_discovery"},
        {"role": ["payload_fetch", "store_discovery"]},
        {"dispensary_id": store},
        {"platform": "dutchie"},
        {"worker_id": "w2"},
        {"error": "hy"},
        {"created_after": middle},
        {"created_before": middle},
    ]
    seen = set()
    for one in choices:
        for other in choices:
            wanted = {**one, **other}
            listed = await shop.walk("/api/tasks", limit=100, **wanted)
            counts = await shop.ask("/api/tasks/counts", params=wanted)
            assert counts["total"] == len(listed), wanted
            for status in ("pending", "claimed", "running", "stale", "completed", "failed", "cancelled"):
                assert counts[status] == sum(task["status"] == status for task in listed), wanted
            seen |= {task["status"] for task in listed}
    assert seen == {"pending", "claimed", "stale", "completed", "failed", "cancelled"}
