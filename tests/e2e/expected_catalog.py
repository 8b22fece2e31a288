"""Comparing the catalogue with the simulator's expected state, product by product."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from psycopg.rows import dict_row

from menuwatch.db.pool import Pool
from menuwatch.sim.expected import Known, Row

Plain = dict[str, Any]


def _decimal(value: object) -> Decimal | None:
    return None if value is None else Decimal(str(value))


def expected(known: Known) -> Plain:
    """What the simulator expects of one product, in the words of `store_products`."""
    row = known.row
    return {
        "name_raw": row.name_raw,
        "brand_name_raw": row.brand_raw,
        "stock_status": row.stock,
        "misses": known.misses,
        "options": sorted(
            (o.option, o.price_rec, o.special_rec, o.price_med, o.special_med, o.quantity, o.stock) for o in row.options
        ),
        "price_rec": min((o.price_rec for o in row.options if o.price_rec is not None), default=None),
        "price_rec_special": min((o.special_rec for o in row.options if o.special_rec is not None), default=None),
        "thc": (row.thc.lo, row.thc.hi, row.thc.unit) if row.thc else None,
        "cbd": (row.cbd.lo, row.cbd.hi, row.cbd.unit) if row.cbd else None,
        "terpenes": sorted(row.terpenes),
        "batch": dict(row.batch) if row.batch else None,
        "sold": row.sold,
    }


async def catalogue(pool: Pool) -> dict[str, dict[str, Plain]]:
    """What `store_products` says, by slug and product id."""
    found: dict[str, dict[str, Plain]] = {}
    async with pool.connection() as conn, conn.cursor(row_factory=dict_row) as cur:
        await cur.execute("SELECT p.*, d.slug FROM store_products p JOIN dispensaries d ON d.id = p.dispensary_id")
        async for row in cur:
            options = [
                (
                    v["option"],
                    _decimal(v.get("price_rec")),
                    _decimal(v.get("special_rec")),
                    _decimal(v.get("price_med")),
                    _decimal(v.get("special_med")),
                    v.get("quantity"),
                    v.get("stock_status", "unknown"),
                )
                for v in row["variants"]
            ]
            found.setdefault(row["slug"], {})[row["provider_product_id"]] = {
                "name_raw": row["name_raw"],
                "brand_name_raw": row["brand_name_raw"],
                "stock_status": row["stock_status"],
                "misses": row["consecutive_misses"],
                "options": sorted(options),
                "price_rec": row["price_rec"],
                "price_rec_special": row["price_rec_special"],
                "thc": (row["thc_lo"], row["thc_hi"], row["thc_unit"]) if row["thc_unit"] else None,
                "cbd": (row["cbd_lo"], row["cbd_hi"], row["cbd_unit"]) if row["cbd_unit"] else None,
                "terpenes": sorted((t["name"], _decimal(t["value"]), t["unit"]) for t in row["terpenes"] or ()),
                "batch": row["batch"],
                "sold": row["quantity_sold"],
            }
    return found


async def snapshots(pool: Pool) -> dict[str, list[dict[str, tuple[Any, ...]]]]:
    """What `store_product_snapshots` says: by slug, for each crawl in order, product id → (price, special, stock status)."""
    async with pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT d.slug, s.crawled_at, s.provider_product_id, s.price_rec, s.price_rec_special, s.stock_status"
            "  FROM store_product_snapshots s JOIN dispensaries d ON d.id = s.dispensary_id"
        )
        rows = await cursor.fetchall()
    by_crawl: dict[str, dict[Any, dict[str, tuple[Any, ...]]]] = {}
    for slug, at, product, *state in rows:
        by_crawl.setdefault(slug, {}).setdefault(at, {})[product] = tuple(state)
    return {slug: [crawls[at] for at in sorted(crawls)] for slug, crawls in by_crawl.items()}


def snapshot_of(row: Row) -> tuple[Any, ...]:
    """One product of one crawl as expected."""
    prices = [o.price_rec for o in row.options if o.price_rec is not None]
    specials = [o.special_rec for o in row.options if o.special_rec is not None]
    return min(prices, default=None), min(specials, default=None), row.stock


async def assert_catalogue(pool: Pool, states: dict[str, dict[str, Known]]) -> None:
    """Every product of every store is exactly what the simulator expects."""
    found = await catalogue(pool)
    assert found.keys() == states.keys()
    for slug, products in states.items():
        assert found[slug].keys() == products.keys(), slug
        for product_id, known in products.items():
            stored, shown = found[slug][product_id], expected(known)
            different = {name: (stored[name], shown[name]) for name in shown if stored[name] != shown[name]}
            assert different == {}, (slug, product_id, different)
