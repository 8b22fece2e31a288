"""What the catalogue holds, in full: every column of `store_products` that says something of the product."""

from __future__ import annotations

from typing import Any

from psycopg.rows import dict_row

from menuwatch.db.pool import Pool
from tests.recorded.plain import read

OWN = {
    "id",
    "dispensary_id",
    "local_image_path",
    "consecutive_misses",
    "first_seen_at",
    "last_seen_at",
    "updated_at",
    "store",
}
"""Columns that say something of our crawls, not of the product."""
JSON = ("variants", "cannabinoids", "terpenes", "batch", "specials", "images", "extra")
NEW = ("terpenes", "batch", "quantity_sold")
"""Columns that a reader may leave out: it then says that the menu has none of them."""


async def products(pool: Pool) -> dict[str, dict[str, dict[str, Any]]]:
    """Every column by the platform's id of the store, and of the product; numbers exact."""
    as_text = ", ".join(f"p.{name}::text AS {name}" for name in JSON)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    async with pool.connection() as conn, conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(
            f"SELECT p.*, {as_text}, coalesce(d.platform_dispensary_id, d.slug) AS store "
            "FROM store_products p JOIN dispensaries d ON d.id = p.dispensary_id"
        )
        async for row in cur:
            for name in JSON:
                row[name] = read(row[name]) if row[name] is not None else None
            product = {name: value for name, value in row.items() if name not in OWN}
            product["variants"] = sorted((_full(entry) for entry in product["variants"]), key=lambda one: one["option"])
            found.setdefault(row["store"], {})[product.pop("provider_product_id")] = product
    return found


def _full(variant: dict[str, Any]) -> dict[str, Any]:
    """A stored variant leaves out what it does not say."""
    empty = dict.fromkeys(
        ("price_rec", "price_med", "special_rec", "special_med", "quantity", "weight_g", "price_per_g", "pieces",
         "content_mg", "price_per_piece", "price_per_mg")
    )  # fmt: skip
    return {**empty, "capped": False, "stock_status": "unknown", **variant}


def differences(expected: dict[str, Any], got: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """(expected, stored) of every field that differs."""
    expected = dict.fromkeys(NEW) | expected
    return {
        name: (expected.get(name, "not expected"), got.get(name, "not stored"))
        for name in expected.keys() | got.keys()
        if name not in expected or name not in got or expected[name] != got[name]
    }
