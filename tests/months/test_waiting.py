"""A store that has really changed waits for a person, who is told, and counts from the release on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.archive import store as payloads
from menuwatch.db.pool import Pool
from menuwatch.pipeline.product_refresh import apply_payload
from menuwatch.stores import store as stores
from tests.market import Reader, add_payload, add_store, item

MENU = [item(str(number)) for number in range(60)]
LEFT = MENU[:30]
HOURS = timedelta(hours=4)


async def _apply(conn: AsyncConnection[Any], payload_id: int, items: list[bytes]) -> dict[str, Any]:
    async with conn.transaction():
        payload = await payloads.get(conn, payload_id)
        assert payload is not None
        return await apply_payload(conn, payload, Reader(), [msgspec.Raw(one) for one in items])  # type: ignore[arg-type]


async def _out(conn: AsyncConnection[Any]) -> tuple[int, int]:
    """(products out of stock, products with a miss)"""
    row = await (
        await conn.execute(
            "SELECT count(*) FILTER (WHERE stock_status = 'oos'), count(*) FILTER (WHERE consecutive_misses > 0) FROM store_products"
        )
    ).fetchone()
    assert row is not None
    return row[0], row[1]


async def test_a_store_that_really_lost_half_waits_is_told_of_and_counts_once_released(pool: Pool) -> None:
    start = datetime.now(UTC) - timedelta(days=3)
    async with pool.connection() as conn:
        store = await add_store(conn)
        await _apply(conn, await add_payload(conn, store, start, 60), MENU)
        gone = "gone at once: 30 of 60 products are not on this menu"
        since = f"since {start + HOURS:%Y-%m-%d %H:%M} UTC"
        reasons = []
        for number in range(1, 4):
            waiting = await add_payload(conn, store, start + number * HOURS, 30)
            result = await _apply(conn, waiting, LEFT)
            reasons.append(result["quarantined"])
            assert await _out(conn) == (0, 0)
            found = await stores.get(conn, store)
            assert found is not None
            assert found.last_error == reasons[-1], "the store says what is the matter"
            assert found.last_crawled_at == start
        assert reasons == [
            gone,
            f"{gone}; 1 menu before it waits as well, {since}",
            f"{gone}; 2 menus before it wait as well, {since}",
        ]
        async with conn.transaction():
            await payloads.release(conn, waiting)
        assert (await _apply(conn, waiting, LEFT))["missing"] == 30
        # What the person has seen is not asked again, though half of the store is missing for two crawls more.
        story = []
        for number in range(4, 7):
            await _apply(conn, await add_payload(conn, store, start + number * HOURS, 30), LEFT)
            story.append(await _out(conn))
        assert story == [(0, 30), (30, 30), (30, 30)]
        # A new loss is a new question.
        result = await _apply(conn, await add_payload(conn, store, start + 8 * HOURS, 15), LEFT[:15])
        assert result["quarantined"] == "gone at once: 15 of 30 products are not on this menu"


async def test_a_store_that_nobody_asked_for_a_week_may_have_changed(pool: Pool) -> None:
    start = datetime.now(UTC) - timedelta(days=9)
    async with pool.connection() as conn:
        store = await add_store(conn)
        await _apply(conn, await add_payload(conn, store, start, 60), MENU)
        late = await _apply(conn, await add_payload(conn, store, start + timedelta(days=7), 30), LEFT)
        assert (late["missing"], await _out(conn)) == (30, (0, 30))
        again = await _apply(conn, await add_payload(conn, store, start + timedelta(days=7, hours=4), 30), LEFT)
        assert again["missing"] == 30


async def test_a_loss_that_lasts_is_not_believed_for_its_length(pool: Pool) -> None:
    start = datetime.now(UTC) - timedelta(days=20)
    async with pool.connection() as conn:
        store = await add_store(conn)
        await _apply(conn, await add_payload(conn, store, start, 60), MENU)
        for day in (1, 9, 17):
            result = await _apply(conn, await add_payload(conn, store, start + timedelta(days=day), 30), LEFT)
            assert str(result["quarantined"]).startswith("gone at once: 30 of 60")


async def test_a_menu_that_says_nothing_more_of_stock_changes_nothing(pool: Pool) -> None:
    start = datetime.now(UTC) - timedelta(days=1)
    async with pool.connection() as conn:
        store = await add_store(conn)
        await _apply(conn, await add_payload(conn, store, start, 60), MENU)
        dumb = [item(str(number), qty=None) for number in range(60)]
        result = await _apply(conn, await add_payload(conn, store, start + HOURS, 60), dumb)
        assert result["quarantined"] == "schema changed: 60 of 60 products have no stock information any more"
        sold = [item(str(number), qty=0 if number < 20 else 5) for number in range(60)]
        result = await _apply(conn, await add_payload(conn, store, start + 2 * HOURS, 60), sold)
        assert str(result["quarantined"]).startswith(
            "sold out at once: 20 of 60 products are no longer in stock; 1 menu before it"
        )
        assert await _out(conn) == (0, 0)
        states = await (await conn.execute("SELECT count(*), max(seen_to) FROM product_states")).fetchone()
        assert states == (60, None), "nothing of them was kept"
