"""Menus that are none, and an archive that cannot write: what is kept, what is said, and that no product changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from menuwatch import bootstrap
from menuwatch.archive import service as payload_operations
from menuwatch.cli.demo import first_crawl, market, settle
from menuwatch.core.errors import Refused
from menuwatch.queue import store as tasks
from menuwatch.queue.model import NewTask, Role
from menuwatch.sim.process import Simulator
from menuwatch.system import System
from tests.e2e.expected_catalog import assert_catalogue

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "html": ({"html": {"rate": 1}}, "html"),
    "cut off": ({"truncated": {"rate": 1}}, "truncated"),
    "data null with errors": ({"errors": {"rate": 1}}, "errors"),
    "empty": ({"empty_page": {"rate": 1}}, "empty"),
}


async def _rows(system: System, query: str) -> list[tuple[Any, ...]]:
    async with system.pool.connection() as conn:
        return list(await (await conn.execute(query)).fetchall())  # type: ignore[arg-type]


async def _crawl(system: System, store: int, *, max_retries: int = 0) -> None:
    async with system.pool.connection() as conn:
        await tasks.enqueue(conn, [NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=store, max_retries=max_retries)])
    await settle(system)


async def _truth(simulator: Simulator, system: System, ticks: list[int]) -> None:
    await assert_catalogue(system.pool, simulator.expect({store.slug: ticks for store in simulator.market.stores})[0])


@pytest.mark.parametrize("kind", BAD)
async def test_an_answer_that_is_no_menu_changes_nothing_and_is_kept(home: Path, kind: str) -> None:
    faults, word = BAD[kind]
    async with (
        market(home, store_count=1, product_count=30, seed=3) as (simulator, system),
        bootstrap.run_worker(system),
    ):
        await first_crawl(system)
        await simulator.tick()
        await simulator.inject_faults(faults)
        for _ in range(4):
            await _crawl(system, 1)
        await _truth(simulator, system, [0])
        failed = await _rows(
            system, "SELECT DISTINCT status, error_message FROM worker_tasks WHERE role = 'payload_fetch'"
        )
        assert [status for status, _ in failed] == ["failed"]
        assert failed[0][1].startswith(f"{word}: "), failed
        kept = await _rows(system, "SELECT status, reason, path FROM raw_crawl_payloads WHERE status <> 'ok'")
        assert [status for status, _, _ in kept] == ["rejected"] * 4
        assert all(reason.startswith(f"{word}: ") for _, reason, _ in kept)
        # The request is on record for what it was, though the answer came with HTTP 200 and no mark of a refusal.
        last = await _rows(
            system, "SELECT verdict, error FROM fetch_attempts ORDER BY attempted_at DESC, id DESC LIMIT 1"
        )
        assert last[0][0] in ("schema_changed", "empty_suspect"), last
        document = system.archive.read(kept[0][2])
        (body,) = (*document.pages, *document.broken)
        assert len(body) > 20, "the answer itself is there"
        (store,) = await _rows(system, "SELECT last_error, last_crawled_at < last_attempt_at FROM dispensaries")
        assert store[0].startswith(f"{word}: ")
        assert store[1] is True
        # When it comes right, the next crawl goes on from where the last good one was.
        await simulator.inject_faults(None)
        await _crawl(system, 1)
        await _truth(simulator, system, [0, 1])


async def test_more_items_than_any_menu_has_fail_at_once_and_the_worker_goes_on(home: Path) -> None:
    async with (
        market(home, store_count=1, product_count=30, seed=3) as (simulator, system),
        bootstrap.run_worker(system),
    ):
        await first_crawl(system)
        await simulator.tick()
        await simulator.inject_faults({"flood": {"rate": 1}})
        await _crawl(system, 1, max_retries=3)
        (task,) = await _rows(
            system, "SELECT status, retry_count, error_message FROM worker_tasks WHERE role = 'payload_fetch'"
        )
        assert task[:2] == ("failed", 0), "the same would come again"
        assert task[2].startswith("limits: ")
        (kept,) = await _rows(system, "SELECT status, reason, path FROM raw_crawl_payloads WHERE status <> 'ok'")
        assert (kept[0], kept[1].partition(":")[0]) == ("rejected", "limits")
        (body,) = system.archive.read(kept[2]).pages
        assert body.count(b"{}") == 250_000, "the answer itself is there"
        await simulator.inject_faults(None)
        await _crawl(system, 1)
        await _truth(simulator, system, [0, 1])


async def test_an_archive_that_cannot_write_leaves_neither_row_nor_file(home: Path) -> None:
    async with (
        market(home, store_count=1, product_count=30, seed=3) as (simulator, system),
        bootstrap.run_worker(system),
    ):
        await first_crawl(system)
        await simulator.tick()
        incoming = system.settings.storage / "payloads" / ".incoming"
        aside = incoming.rename(incoming.with_name("aside"))
        incoming.write_text("a file where the folder must be: no disk could write less")
        await _crawl(system, 1, max_retries=1)
        (task,) = await _rows(
            system, "SELECT status, retry_count, error_message FROM worker_tasks WHERE role = 'payload_fetch'"
        )
        assert task[:2] == ("failed", 1)
        assert "could not be archived" in task[2]
        assert await _rows(system, "SELECT count(*) FROM raw_crawl_payloads") == [(1,)]
        await _truth(simulator, system, [0])
        incoming.unlink()
        aside.rename(incoming)
        await _crawl(system, 1)
        await _truth(simulator, system, [0, 1])
        paths = {str(path) for (path,) in await _rows(system, "SELECT path FROM raw_crawl_payloads")}
        assert {
            str(p.relative_to(system.settings.storage)) for p in system.settings.storage.rglob("*.json.gz")
        } == paths


async def test_a_menu_with_pages_missing_changes_nothing(home: Path) -> None:
    async with (
        market(home, store_count=1, product_count=60, seed=3) as (simulator, system),
        bootstrap.run_worker(system),
    ):
        await first_crawl(system)
        await simulator.tick()
        await simulator.inject_faults(
            {"clamp": {"rate": 1, "per_page": 10}, "empty_page": {"rate": 1, "pages": [2, 3, 4, 5, 6]}}
        )
        await _crawl(system, 1)
        assert await _rows(system, "SELECT status, applied_at FROM raw_crawl_payloads WHERE id > 1") == [
            ("partial", None)
        ]
        await _truth(simulator, system, [0])


async def test_a_menu_that_shrank_waits_for_a_person(home: Path) -> None:
    async with market(home, store_count=1, product_count=60, seed=3) as (simulator, calm):
        # Whatever is smaller than usual is suspect here, so that the market's own drift will do.
        system = replace(calm, settings=replace(calm.settings, suspect_share=1.0))
        store = simulator.market.stores[0]
        sizes = [len(simulator.expected.rows(store.slug, tick)) for tick in range(6)]
        smaller = next(tick for tick in range(1, 6) if sizes[tick] < sizes[0])
        async with bootstrap.run_worker(system):
            await first_crawl(system)
            await simulator.tick(smaller)
            await _crawl(system, 1)
            (payload,) = await _rows(system, "SELECT id, status, reason FROM raw_crawl_payloads WHERE id > 1")
            assert payload[1:] == (
                "quarantined",
                f"shrunk: {sizes[smaller]} products, usually {sizes[0]}",
            )
            await _truth(simulator, system, [0])
            async with system.pool.connection() as conn, conn.transaction():
                await payload_operations.release(conn, payload[0])
            await settle(system)
            await _truth(simulator, system, [0, smaller])


async def test_a_worker_does_not_start_without_a_proxy(home: Path) -> None:
    async with market(home, store_count=1, product_count=5, seed=3) as (_, system):
        async with system.pool.connection() as conn:
            await conn.execute("UPDATE proxies SET is_active = false")
        with pytest.raises(Refused, match="menuwatch proxies add"):
            await bootstrap.worker(system)
