"""Rows of stores and licences for tests of locations."""

from __future__ import annotations

from typing import Any

from menuwatch.db.pool import Pool

HOME = {
    "name": "Green Mesa", "address": "3300 Central Ave SE", "city": "Albuquerque", "state": "NM", "zipcode": "87106",
    "phone": "(505) 308-4015", "latitude": 35.08022, "longitude": -106.608,
}  # fmt: skip


async def add_store(pool: Pool, platform: str = "weedmaps", **values: Any) -> int:
    """A store at HOME, but for what is given."""
    row = {**HOME, **values, "platform": platform}
    row.setdefault("platform_dispensary_id", f"{platform}-{row['name']}-{row['address']}")
    return await insert(pool, "dispensaries", row)


async def add_licence(pool: Pool, **values: Any) -> int:
    """A shop's licence at HOME, but for what is given."""
    row = {
        "state": "NM",
        "number": "CCD-2022-0001",
        "holder": "Mesa Holdings LLC",
        "kind": "retail",
        "address": HOME["address"],
    }
    return await insert(pool, "licences", {**row, "city": "Albuquerque", "zipcode": "87106", **values})


async def insert(pool: Pool, table: str, row: dict[str, Any]) -> int:
    names = ", ".join(row)
    places = ", ".join(f"%({name})s" for name in row)
    async with pool.connection() as conn:
        cursor = await conn.execute(f"INSERT INTO {table} ({names}) VALUES ({places}) RETURNING id", row)  # type: ignore[arg-type]
        (number,) = await cursor.fetchone() or (0,)
    return int(number)


async def locations(pool: Pool) -> dict[tuple[str, int], int]:
    """The location of each linked menu and licence."""
    async with pool.connection() as conn:
        cursor = await conn.execute("SELECT dispensary_id, licence_id, location_id FROM location_links")
        return {("menu", d) if d is not None else ("licence", n): place for d, n, place in await cursor.fetchall()}


async def query(pool: Pool, statement: str) -> list[tuple[Any, ...]]:
    async with pool.connection() as conn:
        return await (await conn.execute(statement)).fetchall()  # type: ignore[arg-type]
