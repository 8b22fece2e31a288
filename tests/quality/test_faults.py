"""Injected faults are found and attributed, and menus without a fault raise no alarm. `tests/quality/run.py` is the whole proof."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from menuwatch.db.pool import Pool
from menuwatch.quality import check as checks
from tests.quality import world
from tests.quality.proof import NORMALIZERS, SCOPES, Result, alarms, history, incident
from tests.quality.world import Shop, World, made_menu, recorded_menus

EVERY = 3 if "ALL_SEVERITIES" in os.environ else 6
"""Of ten severities of each kind of fault, so many apart are tried; `make proofs` tries more of them."""


def _shops(rng: Random, menus: list[list[world.Product]]) -> list[Shop]:
    """Two platforms, each with a chain of three."""
    half = len(menus) // 2
    return [
        Shop(
            "weedmaps" if n < half else "jane", f"chain-{n // half}" if n % half < 3 else None, menu,
            special_days=(1, 4) if n % 3 == 0 else (),
        )
        for n, menu in enumerate(menus)
    ]  # fmt: skip


async def _prove(pool: Pool, shops: list[Shop]) -> Result:
    """Each kind at every so many severities."""
    rng, result = Random(7), Result()
    async with pool.connection() as conn:
        await conn.set_autocommit(True)
        real = World(3, shops)
        await real.open(conn)
        # Three weeks, from which the days of specials are known.
        await history(conn, real, 22)
        assert await alarms(conn) == []
        for number, kind in enumerate(world.KINDS):
            for severity in world.severities(kind)[number % EVERY :: EVERY]:
                scope = SCOPES[(number + int(100 * severity)) % len(SCOPES)]
                await incident(conn, real, kind, severity, scope, rng, result)
        # Incidents are taken back: the next menu is as usual.
        await history(conn, real, 1)
        assert await alarms(conn) == []
    assert result.above >= 240 / EVERY
    assert result.found >= 0.95 * result.above, result.missed
    assert result.right >= 0.9 * result.scoped, result.wrong
    return result


async def test_faults_in_made_menus_are_found_and_attributed(pool: Pool) -> None:
    rng = Random(1)
    await _prove(pool, _shops(rng, [made_menu(rng, size) for size in (40, 80, 120, 60, 90, 50, 150, 45)]))


async def test_faults_in_recorded_menus_are_found_and_attributed(pool: Pool, recorded: Path) -> None:
    menus = [menu for menu in recorded_menus(recorded) if sum(one.thc is not None for one in menu) >= 10]
    await _prove(pool, _shops(Random(2), menus[:8]))


async def test_a_fault_lasts_recovers_and_is_accepted(pool: Pool) -> None:
    """A store loses its brands for three days, and then for good: the new level is usual after a week."""
    rng = Random(4)
    shops = _shops(rng, [made_menu(rng, 60) for _ in range(4)])
    async with pool.connection() as conn:
        await conn.set_autocommit(True)
        real = World(5, shops)
        await real.open(conn)

        def fault(shop: Shop, menu: list[world.Product]) -> list[world.Product]:
            return world.inject("brand_null", 1.0, menu) if shop is shops[0] else menu

        async def findings() -> list[tuple[str, int, str | None]]:
            rows = await conn.execute(
                "SELECT measure, crawls, outcome FROM quality_findings WHERE severity <> 'info' ORDER BY id"
            )
            return await rows.fetchall()

        await history(conn, real, 6)
        assert await findings() == []
        for _ in range(3):
            await real.crawl(conn, fault)
            await checks.check(conn, NORMALIZERS)
        assert await findings() == [("null.brand", 3, None)]
        score = await (
            await conn.execute("SELECT score FROM quality_stores WHERE dispensary_id = %s", [shops[0].id])
        ).fetchone()
        await history(conn, real, 1)
        assert await findings() == [("null.brand", 3, "recovered")]
        better = await (
            await conn.execute("SELECT score FROM quality_stores WHERE dispensary_id = %s", [shops[0].id])
        ).fetchone()
        assert score is not None
        assert better is not None
        assert score[0] < better[0]
        for _ in range(8):
            await real.crawl(conn, fault)
            await checks.check(conn, NORMALIZERS)
        assert await findings() == [("null.brand", 3, "recovered"), ("null.brand", 7, "accepted")]
        # Brands that come back are no alarm: they are an improvement.
        await history(conn, real, 1)
        last = await (
            await conn.execute("SELECT measure, direction, severity FROM quality_findings ORDER BY id DESC LIMIT 1")
        ).fetchone()
        assert last == ("null.brand", "down", "info")


async def test_a_menu_in_quarantine_is_a_finding_of_its_size(pool: Pool) -> None:
    rng = Random(4)
    shops = _shops(rng, [made_menu(rng, 60) for _ in range(4)])
    async with pool.connection() as conn:
        await conn.set_autocommit(True)
        real = World(5, shops)
        await real.open(conn)
        at = await real.crawl(conn)
        for _ in range(5):
            at = await real.crawl(conn)
            await checks.check(conn, NORMALIZERS)
        await world.add_payload(conn, shops[1].id, at + world.timedelta(hours=20), 11, "quarantined")
        result = await checks.check(conn, NORMALIZERS)
        assert result == checks.CheckResult(menus=1, opened=1, closed=0)
        assert [(row[0], row[1], row[5]) for row in await alarms(conn)] == [(shops[1].id, "products", 11.0)]
        assert await checks.check(conn, NORMALIZERS) == checks.CheckResult()
