"""The whole job against the simulator's expected state: what it served is what the catalogue holds, also when it misbehaves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from menuwatch import bootstrap
from menuwatch.cli import demo
from menuwatch.cli.demo import crawl_all, first_crawl, market, spread
from menuwatch.cli.demo_report import figures
from menuwatch.sim.market import Market
from menuwatch.sim.platform import platform_names
from tests.e2e.expected_catalog import assert_catalogue, snapshot_of, snapshots

ON_DUTCHIE, ON_OTHERS = spread(12)
PRODUCTS, CYCLES = 60, 5
STORES = [store.slug for store in Market(seed=7, stores=ON_DUTCHIE, products=PRODUCTS).stores]
FAULTS: dict[str, dict[str, Any]] = {
    "fair": {},
    "hostile": {
        "forbidden": {"rate": 0.08},
        "rate_limited": {"rate": 0.03, "retry_after": 1},
        "server_error": {"rate": 0.05},
        "html": {"rate": 0.03},
        "truncated": {"rate": 0.05},
        "errors": {"rate": 0.03},
        "empty_page": {"rate": 0.05},
        "clamp": {"rate": 0.3, "per_page": 40},
        # A total that lies beside repeated rows looks like missing products, and is refused: not both at one store.
        "pinned": {"rate": 0.5, "stores": STORES[:3]},
        "total_lies": {"rate": 0.5, "delta": 9, "stores": STORES[3:5]},
    },
}


@pytest.mark.parametrize("mood", FAULTS)
async def test_the_catalogue_is_what_the_market_served(home: Path, mood: str) -> None:
    async with market(
        home,
        store_count=ON_DUTCHIE,
        platform_counts=ON_OTHERS,
        product_count=PRODUCTS,
        seed=7,
        faults=FAULTS[mood],
    ) as (sim, system):
        async with bootstrap.run_worker(system):
            await first_crawl(system, None, sim)
            for _ in range(CYCLES - 1):
                await sim.tick()
                await crawl_all(system)
        report = await figures(system)
        stats = await sim.stats()
        # Every store was crawled once at each tick; what the market served then is the truth.
        ticks = {store.slug: list(range(CYCLES)) for store in sim.market.stores}
        expected, counts = sim.expect(ticks)
        await assert_catalogue(system.pool, expected)
        told = {key: report[key] for key in ("products", "snapshots", "price_changes", "stock_changes", "out_of_stock")}
        assert told == {key: getattr(counts, key) for key in told}
        history = await snapshots(system.pool)
        for slug in ticks:
            served = [sim.expected.rows(slug, tick) for tick in range(CYCLES)]
            assert history[slug] == [{i: snapshot_of(row) for i, row in rows.items()} for rows in served]
        assert stats["direct"] == 0, "no request reached the market but through a proxy"
        assert report["blocked_requests"] == stats["blocked"]
        assert set().union(*report["tasks"].values()) == {"completed"}
        if mood == "hostile":
            assert stats["blocked"] > 0
            # Which requests meet what depends on their order; how much faults there is hardly does.
            assert len(stats["spoiled"]) >= 4
            assert sum(stats["spoiled"].values()) >= 10


def test_the_demo_command_agrees_with_the_market(tmp_path: Path) -> None:
    """`menuwatch demo --json` as a person runs it, compared with an expected state computed from the same seed."""
    run = subprocess.run(
        [sys.executable, "-m", "menuwatch.cli.main", "demo", "--stores", "12", "--products", "40", "--cycles", "3", "--json"],
        capture_output=True, text=True, check=False, timeout=240, cwd=tmp_path,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    on_dutchie, on_others = spread(12)
    simulator = demo.Simulator(stores=on_dutchie, platforms=on_others, products=40, seed=1)
    known, counts = simulator.expect({store.slug: [0, 1, 2] for store in simulator.market.stores})
    assert report["stores"] == 12
    told = {key: report[key] for key in ("products", "snapshots", "price_changes", "stock_changes", "out_of_stock")}
    assert told == {key: getattr(counts, key) for key in told}
    assert {row["platform"]: (row["stores"], row["products"]) for row in report["platforms"]} == {
        platform: (
            len(simulator.market.on(platform)),
            sum(len(known[store.slug]) for store in simulator.market.on(platform)),
        )
        for platform in ("dutchie", *platform_names())
    }
    assert report["platforms"][0]["label"] == "Dutchie"
    assert report["tasks"]["product_refresh"] == {"completed": 36}
    assert set().union(*report["tasks"].values()) == {"completed"}
    assert report["payloads"] >= 36
    assert report["rotations"] <= report["blocked_requests"] + 36


def test_stores_of_a_demo_are_on_all_platforms() -> None:
    names = platform_names()
    assert spread(1) == (1, {})
    for count in range(2, 60):
        on_dutchie, on_others = spread(count)
        assert on_dutchie + sum(on_others.values()) == count
        assert on_dutchie >= max(on_others.values())
        assert list(on_others) == names[: count - 1]
    on_dutchie, on_others = spread(20)
    stores = Market(stores=on_dutchie, platforms=on_others, products=1).stores
    platforms: dict[str, set[str]] = {}
    for store in stores:
        platforms.setdefault(store.chain, set()).add(store.platform)
    assert sum(len(found) > 1 for found in platforms.values()) >= 2, "some chains are on two platforms"
