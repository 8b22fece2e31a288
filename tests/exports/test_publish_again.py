"""Publishing again: what did not change is not read, and whatever changed is found."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from menuwatch.catalog import packing
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.clock import SystemClock
from menuwatch.db import partitions
from menuwatch.db.pool import Connection
from menuwatch.exports.dataset import DATASET
from menuwatch.matching.engine import match_all
from menuwatch.ops import publish as publishing
from menuwatch.ops.publish import Published
from menuwatch.pipeline.context import HandlerContext
from menuwatch.pipeline.rebuild import rebuild
from menuwatch.pipeline.store_merge import merge_stores
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.platforms.model import Normalized
from tests.api.shop import START, Shop, at, item
from tests.exports.dataset_reader import MONTH, Dataset, lake, market, normal

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


async def _publish(shop: Shop, root: Path) -> Published:
    async with shop.pool.connection() as conn:
        return await publishing.publish(
            conn, ParquetPartitions(shop.archive.storage), publishing.open_destination(str(root), None), title="Menus",
            licence=None, keep_versions=2, now=NOW,
        )  # fmt: skip


async def _rows(shop: Shop, query: str, values: Any = None) -> list[Any]:
    async with shop.pool.connection() as conn:
        return await (await conn.execute(query, values)).fetchall()


async def _market(shop: Shop) -> list[int]:
    """Four months of three stores and a fourth one that can be merged with the first, matched; returns the stores."""
    await market(shop)
    fir = await shop.store("fir", state="NV")
    for hours in (0.5, MONTH + 0.5, 2 * MONTH + 0.5):
        await shop.crawl(fir, hours, [item("fir-1", "Fir", options=[("1g", 10 + hours, 5)])])
    await match_all(shop.pool)
    return [row[0] for row in await _rows(shop, "SELECT id FROM dispensaries ORDER BY id")]


def _files(root: Path) -> dict[str, list[str]]:
    return Dataset(root).everything()


async def _same_as_a_complete_one(shop: Shop, root: Path, complete: Path) -> Published:
    """Publishes again, and all of it elsewhere: the same files."""
    again = await _publish(shop, root)
    full = await _publish(shop, complete)
    Dataset(root).check()
    assert _files(root) == _files(complete)
    assert again.rows == full.rows
    assert full.rows_read >= sum(full.rows.values()), "nothing is known there"
    return again


async def test_what_did_not_change_is_not_read(shop: Shop, tmp_path: Path) -> None:
    root = tmp_path / "dataset"
    await _market(shop)
    first = await _publish(shop, root)
    assert first.rows_read == sum(first.rows.values()) > 600
    again = await _publish(shop, root)
    assert (again.rows_read, again.changed, again.written, again.rows) == (0, False, 0, first.rows)
    await shop.execute("UPDATE catalog_products SET local_image_path = 'images/a.webp'")
    assert (await _publish(shop, root)).rows_read == 0, "it is not published"


async def test_a_crawl_has_only_its_own_months_and_states_read(shop: Shop, tmp_path: Path) -> None:
    root = tmp_path / "dataset"
    elm = (await _market(shop))[1]
    await _publish(shop, root)
    before = Dataset(root)
    (menu,) = await _rows(
        shop, "SELECT array_agg(provider_product_id) FROM catalog_products WHERE dispensary_id = %s AND present", [elm]
    )
    await shop.crawl(elm, 3 * MONTH + 5, [item(one, f"Item {one}", options=[("1g", 99, 1)]) for one in menu[0]])
    done = await _publish(shop, root)
    after = Dataset(root)
    new = {path for paths in _files(root).values() for path in paths} - {
        path for paths in before.everything().values() for path in paths
    }
    assert {path.rpartition("-")[0] for path in new} == {
        "data/price_history/NM/current", "data/price_history/NM/2026-06", "data/changes/NM/2026-06", "data/menus/all",
        "data/products/all", "data/stores/all",
    }  # fmt: skip
    sizes = {file["path"]: file["rows"] for one in after.package["resources"] for file in one["files"]}
    assert done.rows_read == sum(sizes[path] for path in new)
    assert done.rows_read < sum(done.rows.values()) - 300
    with lake(root) as db:
        for table in DATASET:
            names = ", ".join(column.name for column in table.columns)
            listed = db.execute(f"SELECT {names} FROM lake.{table.name}").fetchall()
            assert normal(listed) == normal(after.rows(table.name, names)), table.name


class _Corrected(Dutchie):
    """A normalizer that was corrected."""

    normalizer_version = Dutchie.normalizer_version + 1

    def normalize(self, items: Any, /) -> Normalized:
        made = super().normalize(items)
        products = tuple(msgspec.structs.replace(product, thc=None) for product in made.products)
        return Normalized(products=products, warnings=made.warnings)


def _context(shop: Shop, platform: Dutchie) -> HandlerContext:
    def no_session(**_: Any) -> Any:
        raise AssertionError("a rebuild never touches the network")

    return HandlerContext(
        pool=shop.pool, clock=SystemClock(), archive=shop.archive, platforms={"dutchie": platform}, open_session=no_session,
        suspect_share=0.4, blocked_wait=timedelta(seconds=1),
    )  # fmt: skip


async def _rebuild(shop: Shop, stores: list[int]) -> None:
    assert not (await rebuild(_context(shop, _Corrected()), stores[0])).same


async def _rebuild_since(shop: Shop, stores: list[int]) -> None:
    assert not (await rebuild(_context(shop, _Corrected()), stores[1], since=at(2 * MONTH))).same


async def _merge(shop: Shop, stores: list[int]) -> None:
    await merge_stores(shop.pool, shop.archive, shop.platforms, stores[3], stores[0])


async def _expire(shop: Shop, stores: list[int]) -> None:
    async with shop.pool.connection() as conn:
        assert await partitions.drop_expired(conn, "product_history", at(MONTH * 2).replace(day=1, hour=0))


async def _pack(shop: Shop, stores: list[int]) -> None:
    await shop.execute("UPDATE product_history SET quantity = 77 WHERE ended_at < %s", [at(MONTH * 2)])
    async with shop.pool.connection() as conn:
        packed = await packing.pack(
            conn, ParquetPartitions(shop.archive.storage), START.replace(month=6, day=1, hour=0), now=NOW
        )
    assert sum(month.states for month in packed) > 50


async def _lose_a_packed_month(shop: Shop, stores: list[int]) -> None:
    await _pack(shop, stores)
    archived = ParquetPartitions(shop.archive.storage)
    archived.remove(archived.files()[0])


def _sql(statement: str) -> Callable[[Shop, list[int]], Awaitable[None]]:
    async def run(shop: Shop, stores: list[int]) -> None:
        async with shop.pool.connection() as conn:
            assert (await conn.execute(statement, {"stores": stores})).rowcount != 0

    return run


LATE = {
    "a rebuild": _rebuild,
    "a rebuild of later crawls": _rebuild_since,
    "merged stores": _merge,
    "months past their time": _expire,
    "packed months": _pack,
    "a packed month that is lost": _lose_a_packed_month,
    "an emptied month": _sql("TRUNCATE product_history_2026_03"),
    "a corrected state": _sql("UPDATE product_history SET stock_status = 'unknown' WHERE ended_at < '2026-05-01'"),
    "a removed state": _sql(
        "DELETE FROM product_history WHERE (product_id, ended_at) = (SELECT product_id, min(ended_at) FROM product_history"
        " GROUP BY 1 ORDER BY 1 LIMIT 1)"
    ),
    "a present state": _sql("UPDATE catalog_products SET quantity = 99, changed_at = now() WHERE state_from < '2026-05-01'"),
    "its options": _sql("UPDATE catalog_products SET variants = '[{\"option\": \"2g\", \"price_rec\": 5}]'"),
    "a renamed product": _sql("UPDATE catalog_products SET name = 'Other' WHERE dispensary_id = (%(stores)s::int[])[1]"),
    "a moved product": _sql(
        "WITH one AS (SELECT min(id) AS id FROM catalog_products WHERE dispensary_id = (%(stores)s::int[])[1]),"
        " h AS (UPDATE product_history SET dispensary_id = (%(stores)s::int[])[2] FROM one WHERE product_id = one.id)"
        " UPDATE catalog_products p SET dispensary_id = (%(stores)s::int[])[2] FROM one WHERE p.id = one.id"
    ),
    "another state": _sql("UPDATE dispensaries SET state = 'NV' WHERE state = 'AZ'"),
    "another name": _sql("UPDATE dispensaries SET name = 'Other' WHERE state = 'AZ'"),
    "a removed store": _sql("DELETE FROM dispensaries WHERE state = 'AZ'"),
    "a match": _sql("DELETE FROM product_matches WHERE product_id = (SELECT min(product_id) FROM product_matches)"),
    "swapped matches": _sql(
        "UPDATE product_matches m SET canonical_product_id = o.canonical_product_id FROM product_matches o"
        " WHERE o.canonical_product_id <> m.canonical_product_id AND o.product_id <> m.product_id"
        " AND m.product_id IN (SELECT min(product_id) FROM product_matches UNION SELECT max(product_id) FROM product_matches)"
        " AND o.product_id IN (SELECT min(product_id) FROM product_matches UNION SELECT max(product_id) FROM product_matches)"
    ),
    "a brand": _sql("UPDATE brands SET name = 'Other' WHERE id = (SELECT min(id) FROM brands)"),
    "a merged product": _sql(
        "UPDATE canonical_products SET merged_into = (SELECT min(id) FROM canonical_products)"
        " WHERE id = (SELECT max(id) FROM canonical_products)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LATE)
async def test_late_changes_are_found(shop: Shop, tmp_path: Path, name: str) -> None:
    root = tmp_path / "dataset"
    stores = await _market(shop)
    first = await _publish(shop, root)
    before = _files(root)
    await LATE[name](shop, stores)
    again = await _same_as_a_complete_one(shop, root, tmp_path / "complete")
    assert _files(root) != before
    assert again.rows_read > 0 or again.rows != first.rows
    assert (await _publish(shop, root)).rows_read == 0


async def test_packed_months_are_equal_and_read_once(shop: Shop, tmp_path: Path) -> None:
    root = tmp_path / "dataset"
    stores = await _market(shop)
    first = await _publish(shop, root)
    before = _files(root)
    async with shop.pool.connection() as conn:
        await packing.pack(
            conn, ParquetPartitions(shop.archive.storage), START.replace(month=6, day=1, hour=0), now=NOW
        )
    moved = await _publish(shop, root)
    assert (moved.changed, _files(root)) == (False, before)
    assert (await _publish(shop, root)).rows_read == 0
    await shop.crawl(stores[0], 3 * MONTH + 9, [item("new", "New")])
    await _same_as_a_complete_one(shop, root, tmp_path / "complete")
    assert set(before["price_history"]) & set(_files(root)["price_history"])
    assert first.version == 1


async def test_a_transaction_that_ends_after_a_publish_is_in_the_next_one(shop: Shop, tmp_path: Path) -> None:
    root = tmp_path / "dataset"
    await _market(shop)
    change = (
        "UPDATE product_history SET stock = (replace(stock::text, ', 5', ', 77'))::json WHERE ended_at < '2026-05-01'"
    )
    other: Connection
    async with shop.pool.connection() as other:
        async with other.transaction():
            await other.execute(change)
            await _publish(shop, root)
            assert not await _altered(root)
        again = await _same_as_a_complete_one(shop, root, tmp_path / "complete")
    assert again.rows_read > 0
    assert await _altered(root)


async def _altered(root: Path) -> int:
    rows = await asyncio.to_thread(Dataset(root).rows, "price_history", "quantity")
    return sum(quantity == 77 for (quantity,) in rows)


async def test_a_transaction_that_is_rolled_back_changes_nothing(shop: Shop, tmp_path: Path) -> None:
    root = tmp_path / "dataset"
    await _market(shop)
    await _publish(shop, root)
    async with shop.pool.connection() as conn, conn.transaction(force_rollback=True):
        await conn.execute("UPDATE product_history SET stock_status = 'unknown'")
    assert (await _publish(shop, root)).rows_read == 0
    async with shop.pool.connection() as conn, conn.transaction():
        async with conn.transaction(force_rollback=True):
            await conn.execute("UPDATE product_history SET stock_status = 'unknown' WHERE ended_at < '2026-05-01'")
        await conn.execute("UPDATE product_history SET stock_status = 'oos' WHERE ended_at < '2026-05-01'")
    assert (await _same_as_a_complete_one(shop, root, tmp_path / "complete")).rows_read > 0


async def test_a_file_that_is_lost_is_written_again(shop: Shop, tmp_path: Path) -> None:
    root = tmp_path / "dataset"
    await _market(shop)
    await _publish(shop, root)
    lost, cut = Dataset(root).files("price_history")[:2]
    (root / lost).unlink()
    (root / cut).write_bytes(b"PAR1")
    again = await _publish(shop, root)
    assert (again.version, again.changed, again.written) == (1, False, 2)
    Dataset(root).check()
    sources = root / "versions/1/sources.json"
    assert (await _publish(shop, root)).rows_read == 0
    for broken in ("", "[]", '{"x": 1}'):
        sources.write_text(broken)
        again = await _publish(shop, root)
        assert (again.changed, again.rows_read) == (False, sum(again.rows.values()))
    assert (await _publish(shop, root)).rows_read == 0


async def test_every_column_of_a_product_but_its_image_is_noted(shop: Shop) -> None:
    rows = await _rows(
        shop,
        "SELECT a.attname FROM pg_attribute a JOIN pg_trigger g ON g.tgname = 'catalog_products_revised_by_update'"
        " WHERE a.attrelid = g.tgrelid AND a.attnum > 0 AND NOT a.attisdropped AND a.attnum <> ALL (g.tgattr::int2[])",
    )
    assert rows == [("local_image_path",)]
