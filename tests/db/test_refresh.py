"""What a refresh does with a payload that is not simply the next one."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.archive import store as payloads
from menuwatch.db.pool import Pool
from menuwatch.pipeline.product_refresh import apply_payload
from tests.market import Reader, add_payload, add_store, item


async def _apply(conn: AsyncConnection[Any], payload_id: int, items: list[bytes]) -> dict[str, Any]:
    async with conn.transaction():
        payload = await payloads.get(conn, payload_id)
        assert payload is not None
        return await apply_payload(conn, payload, Reader(), [msgspec.Raw(one) for one in items])  # type: ignore[arg-type]


async def _price(conn: AsyncConnection[Any]) -> list[str]:
    cursor = await conn.execute("SELECT price_rec::text FROM store_products")
    return [str(row[0]) for row in await cursor.fetchall()]


async def test_the_same_payload_twice_changes_nothing(pool: Pool) -> None:
    now = datetime.now(UTC) - timedelta(minutes=5)
    async with pool.connection() as conn:
        store = await add_store(conn)
        payload = await add_payload(conn, store, now, 2)
        first = await _apply(conn, payload, [item("a"), item("b")])
        again = await _apply(conn, payload, [item("a"), item("b")])
        crawls = await (await conn.execute("SELECT count(*) FROM store_crawls")).fetchone()
    assert (first["new"], first["unchanged"]) == (2, 0)
    assert (again["new"], again["unchanged"], again["already_applied"]) == (0, 2, True)
    assert crawls == (1,)


async def test_an_older_payload_never_takes_the_catalogue_back(pool: Pool) -> None:
    now = datetime.now(UTC) - timedelta(minutes=5)
    async with pool.connection() as conn:
        store = await add_store(conn)
        late = await add_payload(conn, store, now, 1)
        early = await add_payload(conn, store, now - timedelta(hours=4), 1)
        await _apply(conn, late, [item("a", price="7")])
        result = await _apply(conn, early, [item("a", price="5")])
        assert result["superseded"] is True
        assert await _price(conn) == ["7"]


async def test_a_payload_dated_by_a_clock_that_runs_ahead_is_quarantined(pool: Pool) -> None:
    now = datetime.now(UTC)
    async with pool.connection() as conn:
        store = await add_store(conn)
        ahead = await add_payload(conn, store, now + timedelta(days=3), 1)
        result = await _apply(conn, ahead, [item("a", price="5")])
        assert "clock" in result["quarantined"]
        kept = await payloads.get(conn, ahead)
        assert kept is not None
        assert (kept.status, kept.applied_at) == ("quarantined", None)
        today = await add_payload(conn, store, now, 1)
        await _apply(conn, today, [item("a", price="7")])
        assert await _price(conn) == ["7"]


async def test_one_product_that_the_database_refuses_does_not_cost_the_others(pool: Pool) -> None:
    now = datetime.now(UTC) - timedelta(minutes=5)
    endless = "x" * 40_000  # longer than an index entry may be; the plain platform has no bounds of its own
    async with pool.connection() as conn:
        store = await add_store(conn)
        payload = await add_payload(conn, store, now, 10)
        result = await _apply(conn, payload, [*(item(str(i)) for i in range(9)), item(_unlike(endless))])
        names = await (await conn.execute("SELECT provider_product_id FROM store_products ORDER BY 1")).fetchall()
    assert [name for (name,) in names] == [str(i) for i in range(9)]
    assert (result["new"], result["warning_count"]) == (9, 1)


def _unlike(text: str) -> str:
    """A text of that length that does not compress: PostgreSQL compresses long index entries before it refuses them."""
    return "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=len(text)))
