"""Brands and categories of a large catalog are counted by maintenance, and the counts are those of a small one."""

from __future__ import annotations

from menuwatch.catalog import service as products
from menuwatch.db.pool import Pool

_ITEMS = [
    # store, brand, category, in stock
    (1, "Zeta", "Flower", True),
    (1, "Zeta", "Flower", False),
    (1, "Zeta", "Edible", None),
    (1, None, "Flower", True),
    (2, "Zeta", None, True),
    (2, "Flower", "Flower", True),
    (2, None, None, False),
]


async def test_they_are_those_of_the_products(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute("INSERT INTO dispensaries (name, name_raw) VALUES ('a', 'a'), ('b', 'b')")
        for number, item in enumerate(_ITEMS):
            stock = {True: "in_stock", False: "oos", None: "unknown"}[item[3]]
            await conn.execute(
                "INSERT INTO catalog_products (dispensary_id, provider, provider_product_id, content_hash, first_seen_at, state_from,"
                " changed_at, name_raw, name, variants, extra, stock_status, brand_name, category, is_in_stock)"
                " VALUES (%s, 'dutchie', %s, '\\x00', now(), now(), now(), 'n', 'n', '[]', '{}', %s, %s, %s, %s)",
                (item[0], number, stock, *item[1:]),
            )
        await conn.execute("ANALYZE catalog_products")
        counted = [await products.list_brands(conn), await products.list_categories(conn)]
        assert [(one.name, one.products, one.in_stock, one.stores) for one in counted[0]] == [
            ("Flower", 1, 1, 1),
            ("Zeta", 4, 2, 2),
        ]
        assert [(one.name, one.products, one.in_stock, one.stores) for one in counted[1]] == [
            ("Edible", 1, 0, 1),
            ("Flower", 4, 3, 2),
        ]
        await conn.execute("SELECT refresh_catalog_totals(0)")
        assert (await (await conn.execute("SELECT count(*) FROM catalog_totals")).fetchone()) == (4,)
        assert [await products.list_brands(conn), await products.list_categories(conn)] == counted
