"""A refresh beside readers, beside another one, and one that goes wrong."""

from __future__ import annotations

import asyncio
import contextlib
import re
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from menuwatch.analytics.refresh import TABLES, RefreshResult, RefreshRunning, refresh
from menuwatch.db.pool import Pool
from menuwatch.pipeline.context import HandlerContext
from menuwatch.pipeline.registry import AnalyticsRefresh
from menuwatch.queue.model import Role, Status, Task
from menuwatch.queue.outcome import Done, Postpone
from menuwatch.workers.engine.handler import TaskContext
from tests.api.shop import Shop, at, item

DAY = timedelta(days=1)


async def _made(pool: Pool, hours: float = 10) -> RefreshResult:
    made = await refresh(pool, window=DAY, now=at(hours))
    assert isinstance(made, RefreshResult)
    return made


async def _rows(pool: Pool, query: str) -> list[Any]:
    async with pool.connection() as conn:
        return await (await conn.execute(query)).fetchall()  # type: ignore[arg-type]


async def test_an_empty_database(shop: Shop) -> None:
    before = await shop.ask("/api/analytics")
    assert (before["run_id"], before["refreshed_at"], before["window"], before["figures"]) == (None, None, None, [])
    assert "`menuwatch analytics refresh`" in before["notice"]
    paths = (
        "price-per-gram",
        "brands",
        "categories",
        "discounts",
        "out-of-stock",
        "out-of-stock/products",
        "new-and-gone",
        "stores",
        "distribution",
        "distribution/brands",
        "price-dispersion",
        "widest-gaps",
        "cheapest-quarter",
        "coverage",
    )
    for path in paths:
        assert (await shop.ask(f"/api/analytics/{path}"))["items"] == []
    await _made(shop.pool)
    after = await shop.ask("/api/analytics")
    others = ("specials", "specials/groups", "shrinkflation", "by-day", "by-day/brands")
    assert {one["figure"]: one["rows"] for one in after["figures"]} == dict.fromkeys((*paths[:-1], *others), 0)
    for path in paths:
        answer = await shop.ask(f"/api/analytics/{path}")
        assert answer["run_id"] == after["run_id"]
        assert answer["refreshed_at"] == after["refreshed_at"] is not None
        assert answer["notice"] is None
        assert [one for one in answer["items"] if not one.get("all_states")] == []
    assert datetime.fromisoformat(after["window"]["to"]) - datetime.fromisoformat(after["window"]["from"]) == DAY


async def test_readers_have_the_figures_of_one_refresh_throughout(shop: Shop) -> None:
    """Whoever reads while figures are made anew has the old ones or the new ones, whole, and does not wait."""
    store = await shop.store(state="AZ")
    for n in range(4):
        await shop.crawl(
            store, n * 4, [item(f"p{i}", options=[("1g", 10 + n, 5)], brandName=f"B{i}") for i in range(30)]
        )
        if n == 0:
            await _made(shop.pool, 1)
    over = asyncio.Event()
    answers: list[tuple[int, Any]] = []

    async def read() -> None:
        while not over.is_set():
            found = await shop.ask("/api/analytics/price-per-gram", params={"state": "AZ"})
            answers.append((found["run_id"], found["items"][0]["effective"]["median"]))

    async with asyncio.TaskGroup() as group:
        group.create_task(read())
        made = await _made(shop.pool, 13)
        over.set()
    assert {run for run, _ in answers} <= {made.run_id - 1, made.run_id}
    assert {median for run, median in answers if run < made.run_id} <= {10}
    found = await shop.ask("/api/analytics/price-per-gram", params={"state": "AZ"})
    assert (found["run_id"], found["items"][0]["effective"]["median"]) == (made.run_id, 13)


async def test_a_reader_who_holds_the_figures_holds_nobody_up(shop: Shop, database_url: str) -> None:
    store = await shop.store(state="AZ")
    await shop.crawl(store, 1, [item("a")])
    await _made(shop.pool)
    async with await psycopg.AsyncConnection.connect(database_url) as reader:
        await reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        seen = await (
            await reader.execute("SELECT run_id, brand, products FROM analytics_brand_distribution")
        ).fetchall()
        for _ in range(3):
            await asyncio.wait_for(_made(shop.pool), 30)
        assert (
            await (await reader.execute("SELECT run_id, brand, products FROM analytics_brand_distribution")).fetchall()
            == seen
        )
    assert len(seen) == 2


async def test_two_at_once(shop: Shop) -> None:
    """One does it, the other says that it is done; never both."""
    await shop.crawl(await shop.store(state="AZ"), 1, [item("a")])
    made = await asyncio.gather(*(refresh(shop.pool, window=DAY, now=at(2)) for _ in range(4)))
    did = [one for one in made if isinstance(one, RefreshResult)]
    assert did
    assert len(await _rows(shop.pool, "SELECT id FROM analytics_runs")) == len(did)
    assert await _rows(shop.pool, "SELECT DISTINCT status FROM analytics_runs") == [("done",)]


async def test_the_second_one_is_told_and_its_task_waits(shop: Shop, database_url: str) -> None:
    task = Task(
        id=1, role=Role.ANALYTICS_REFRESH, dispensary_id=None, platform="dutchie", status=Status.RUNNING, priority=0,
        scheduled_for=None, worker_id="w", claimed_at=None, started_at=None, completed_at=None, last_heartbeat_at=None, result=None,
        error_message=None, retry_count=0, max_retries=3, created_at=at(0), updated_at=at(0),
    )  # fmt: skip

    def nothing(**_: Any) -> Any:
        raise AssertionError("figures need no network")

    given: Any = {"clock": None, "archive": None, "platforms": {}, "open_session": nothing, "suspect_share": 0.4}
    handler = AnalyticsRefresh(HandlerContext(pool=shop.pool, analytics_window=DAY, **given))
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        await other.execute("SELECT pg_advisory_lock(hashtext('analytics_refresh'))")
        assert await refresh(shop.pool) == RefreshRunning(run_id=None, started_at=None)
        outcome = await handler(task, TaskContext("w"))
        assert isinstance(outcome, Postpone)
        assert outcome.after == timedelta(minutes=1)
        await other.execute("SELECT pg_advisory_unlock(hashtext('analytics_refresh'))")
    done = await handler(task, TaskContext("w"))
    assert isinstance(done, Done)
    assert done.result is not None
    assert done.result["run_id"] == 1
    assert (await shop.ask("/api/analytics"))["run_id"] == 1


async def test_one_that_fails_leaves_the_figures_and_says_so(shop: Shop) -> None:
    store = await shop.store(state="AZ")
    await shop.crawl(store, 1, [item("a", options=[("1g", 10, 5)])])
    made = await _made(shop.pool)
    before = await shop.ask("/api/analytics/brands")
    assert before["failed"] is None
    await shop.execute("ALTER TABLE analytics_daily_stats ADD CONSTRAINT broken CHECK (crawls < 0) NOT VALID")
    with pytest.raises(psycopg.errors.CheckViolation):
        await _made(shop.pool)
    after = await shop.ask("/api/analytics/brands")
    assert (after["run_id"], after["refreshed_at"], after["items"]) == (
        made.run_id,
        before["refreshed_at"],
        before["items"],
    )
    assert "broken" in after["failed"]["error"]
    metrics = (await shop.http.get("/metrics")).text
    assert "menuwatch_analytics_failing 1.0" in metrics
    (told,) = re.findall(r"^menuwatch_analytics_refreshed_timestamp_seconds (.*)$", metrics, re.MULTILINE)
    assert float(told) == pytest.approx(datetime.fromisoformat(before["refreshed_at"]).timestamp(), abs=1)
    await shop.execute("ALTER TABLE analytics_daily_stats DROP CONSTRAINT broken")
    again = await _made(shop.pool)
    now = await shop.ask("/api/analytics/brands")
    assert (now["run_id"], now["failed"]) == (again.run_id, None)
    left = await _rows(
        shop.pool,
        "SELECT count(*) FROM analytics_store_stats f JOIN analytics_runs r ON r.id = f.run_id WHERE r.status = 'failed'",
    )
    assert left == [(0,)], "what the failed one had written is gone"


async def test_one_whose_process_dies_is_cleared_away(shop: Shop) -> None:
    await shop.crawl(await shop.store(state="AZ"), 1, [item("a")])
    await shop.execute("INSERT INTO analytics_runs (window_from, window_to) VALUES (now() - interval '1 day', now())")
    await shop.execute("INSERT INTO analytics_daily_stats SELECT 1, '2026-03-01', 1, 'AZ', 0, 0, 0, 0, 0, 1, 0, 0, 0")
    assert (await shop.ask("/api/analytics"))["run_id"] is None, "it is not done"
    made = await _made(shop.pool)
    assert await _rows(shop.pool, "SELECT id, status, error FROM analytics_runs WHERE status <> 'done'") == [
        (1, "failed", "the process that made it went away")
    ]
    assert await _rows(shop.pool, "SELECT DISTINCT run_id FROM analytics_daily_stats") == [(made.run_id,)]


async def test_a_cancelled_one_frees_its_lock(shop: Shop, database_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        await other.execute("LOCK TABLE analytics_store_stats")
        running = asyncio.create_task(_made(shop.pool))
        async with asyncio.timeout(20):
            while not await _rows(shop.pool, "SELECT FROM pg_locks WHERE NOT granted"):
                await asyncio.sleep(0.01)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
    assert await _rows(shop.pool, "SELECT status FROM analytics_runs") == [("failed",)]
    await _made(shop.pool)


async def test_old_figures_go_and_a_list_stays_with_its_refresh(shop: Shop) -> None:
    store = await shop.store(state="AZ")
    await shop.crawl(store, 1, [item(f"p{i}", brandName=f"B{i}") for i in range(3)])
    await _made(shop.pool)
    first = await shop.ask("/api/analytics/brands", params={"state": "AZ", "limit": 1})
    await shop.crawl(store, 5, [item(f"p{i}", brandName=f"C{i}") for i in range(3)])
    await _made(shop.pool)
    rest = await shop.ask("/api/analytics/brands", params={"state": "AZ", "limit": 5, "cursor": first["next"]})
    assert [r["brand"] for r in first["items"] + rest["items"]] == ["B0", "B1", "B2"], "as it was begun"
    assert rest["run_id"] == first["run_id"]
    await _made(shop.pool)
    problem = await shop.refused(f"/api/analytics/brands?state=AZ&limit=5&cursor={first['next']}", 400)
    assert problem["type"] == "/problems/bad-cursor"
    assert "start again without `cursor`" in problem["detail"]
    await _made(shop.pool)
    for table in TABLES:
        (kept,) = await _rows(shop.pool, f"SELECT count(DISTINCT run_id) FROM {table}")
        assert kept[0] <= 3, "those of the last two, and of the one that was replaced just now"


async def test_the_views_are_the_current_figures(shop: Shop) -> None:
    await shop.crawl(await shop.store(state="AZ"), 1, [item("a", options=[("1g", 10, 5)])])
    await _made(shop.pool, 3)
    await _made(shop.pool, 3)
    for view in (
        "stores", "price_per_gram", "brand_distribution", "discounts", "out_of_stock", "out_of_stock_products", "new_and_gone",
    ):  # fmt: skip
        runs = await _rows(shop.pool, f"SELECT DISTINCT run_id, refreshed_at <= now() FROM analytics_{view}")
        assert runs == ([] if view == "out_of_stock_products" else [(2, True)]), view
