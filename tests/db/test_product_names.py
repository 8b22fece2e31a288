"""Names of products are known once each, so that a part of one is found without reading all products."""

from __future__ import annotations

import pytest

from menuwatch.catalog import service as products
from menuwatch.catalog import store as catalog
from menuwatch.catalog.service import Order, ProductFilter
from menuwatch.db.pool import Connection, Pool

_NEW = (
    "INSERT INTO catalog_products (dispensary_id, provider, provider_product_id, content_hash, first_seen_at, state_from, changed_at,"
    " name_raw, name, stock_status, price_rec, variants, extra)"
    " SELECT 1, 'dutchie', n, '\\x00', now(), now(), now(), n, n, 'unknown', length(n), '[]', '{}' FROM unnest(%s::text[]) n"
)


async def _found(conn: Connection, text: str, order: Order = Order.NAME) -> list[str]:
    page = await products.list_products(conn, ProductFilter(q=text), order=order)
    return [product.name for product in page.items]


async def test_a_part_of_a_name_is_found_at_once_and_after_maintenance(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute("INSERT INTO dispensaries (name, name_raw) VALUES ('s', 's')")
        await conn.execute(_NEW.encode(), (["Blue Dream", "BLUE Cheese", "50% Off_Kush", "Käse", "x" * 9000],))
        for _ in range(2):
            assert await _found(conn, "lue ") == ["BLUE Cheese", "Blue Dream"]
            assert await _found(conn, "lue ", Order.PRICE) == ["Blue Dream", "BLUE Cheese"]
            assert await _found(conn, "0% o") == ["50% Off_Kush"]
            assert await _found(conn, "f_K") == ["50% Off_Kush"]
            assert await _found(conn, "KÄS") == ["Käse"]
            assert await _found(conn, "xxxx") == ["x" * 9000]
            assert await _found(conn, "b") == ["BLUE Cheese", "Blue Dream"]
            assert await _found(conn, "blue_") == await _found(conn, "nothing") == []
            await catalog.fold_names(conn)
        cursor = await conn.execute("SELECT count(*), (SELECT count(*) FROM catalog_new_names) FROM catalog_names")
        assert await cursor.fetchone() == (5, 0)


async def test_many_names_are_folded_by_several_statements(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "NAMES_AT_ONCE", 2)
    async with pool.connection() as conn:
        await conn.execute("INSERT INTO dispensaries (name, name_raw) VALUES ('s', 's')")
        await conn.execute(_NEW.encode(), (["Blue Dream", "Haze", "Kush", "Diesel", "Skunk"],))
        assert await catalog.fold_names(conn) == 5
        assert await _found(conn, "lue ") == ["Blue Dream"]
        assert await _found(conn, "kun") == ["Skunk"]
        cursor = await conn.execute("SELECT count(*), (SELECT count(*) FROM catalog_new_names) FROM catalog_names")
        assert await cursor.fetchone() == (5, 0)


@pytest.mark.parametrize("most", [30, 10])
async def test_pages_are_the_same_however_many_names_match(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(products, "_NAMES_IN_ORDER", most)
    names = [f"{word} Kush {n}" for n in range(7) for word in ("ash", "Birch", "cedar")]
    async with pool.connection() as conn:
        await conn.execute("INSERT INTO dispensaries (name, name_raw) VALUES ('s', 's')")
        await conn.execute(_NEW.encode(), ([*names, "Haze"],))
        await conn.execute("UPDATE catalog_products SET name = 'cedar Kush 0' WHERE name = 'cedar Kush 1'")
        looked_up = await products._names_with(conn, ProductFilter(q="kush"), most)
        assert (looked_up is None) == (most < len(names))
        found: list[str] = []
        page = await products.list_products(conn, ProductFilter(q="kush"), limit=4)
        while True:
            found += [product.name for product in page.items]
            if page.next is None:
                break
            page = await products.list_products(conn, ProductFilter(q="kush"), after=page.next, limit=4)
    assert found == sorted(["cedar Kush 0" if name == "cedar Kush 1" else name for name in names], key=str.lower)


async def test_a_menu_looks_no_name_up(pool: Pool) -> None:
    async def scans(conn: Connection) -> tuple[int, int]:
        await conn.execute("SELECT pg_stat_force_next_flush()")
        row = await (
            await conn.execute(
                "SELECT pg_stat_get_numscans('catalog_names'::regclass)::int,"
                " pg_stat_get_numscans('catalog_names_name'::regclass)::int FROM pg_stat_clear_snapshot()"
            )
        ).fetchone()
        assert row is not None
        return int(row[0]), int(row[1])

    async with pool.connection() as conn:
        await conn.execute("INSERT INTO dispensaries (name, name_raw) VALUES ('s', 's')")
        await conn.execute(_NEW.encode(), (["Blue Dream", "Haze"],))
        await catalog.fold_names(conn)
        before = await scans(conn)
        await conn.execute(_NEW.encode(), (["blue dream", "Diesel"],))
        await conn.execute("UPDATE catalog_products SET name = 'Kush' WHERE name = 'Haze'")
        assert await scans(conn) == before
        assert await (await conn.execute("SELECT count(*) FROM catalog_names")).fetchone() == (2,)
        assert await scans(conn) == (before[0] + 1, before[1]), "a scan is counted"


async def test_names_that_are_known_stay_once(pool: Pool) -> None:
    async def names(conn: Connection) -> list[str]:
        cursor = await conn.execute("SELECT name FROM catalog_names ORDER BY name")
        return [row[0] for row in await cursor.fetchall()]

    async with pool.connection() as conn:
        await conn.execute("INSERT INTO dispensaries (name, name_raw) VALUES ('s', 's')")
        await conn.execute(_NEW.encode(), (["Blue Dream", "Haze"],))
        assert await catalog.fold_names(conn) == 2
        await conn.execute("UPDATE catalog_products SET name = name, price_rec = 1")
        assert await catalog.fold_names(conn) == 0
        await conn.execute("UPDATE catalog_products SET name = 'blue dream' WHERE name = 'Haze'")
        await conn.execute(_NEW.encode(), (["HAZE", "haze"],))
        assert await catalog.fold_names(conn) == 2
        assert await names(conn) == ["blue dream", "haze"]
        await conn.execute("UPDATE catalog_products SET name = 'Ghost Train' WHERE name = 'blue dream'")
        assert await _found(conn, "train") == ["Ghost Train"]
        assert sorted(await _found(conn, "haze")) == ["HAZE", "haze"]
        assert await catalog.fold_names(conn) == 1
        assert await names(conn) == ["blue dream", "ghost train", "haze"]
