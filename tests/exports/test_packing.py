"""Cold history in files: the same answers before and after, and nothing lost whatever breaks."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import psycopg
import pyarrow
import pytest
from pyarrow import parquet

from menuwatch.catalog import history, packing
from menuwatch.catalog import service as products
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.catalog.packing import NotPacked
from menuwatch.core.errors import Refused
from menuwatch.exports.tables import ExportTable, Format
from menuwatch.ops import export
from menuwatch.ops.export import ExportRequest
from menuwatch.pipeline import rebuild
from menuwatch.storage.base import Storage
from tests.api.shop import START, Shop, at, item
from tests.workers.waiting import until

T = TypeVar("T")

MONTHS = 24 * 31
"""Hours: the crawl that many later is in the next month, and so on."""


@pytest.fixture
def archived(tmp_path: Path) -> ParquetPartitions:
    return ParquetPartitions(tmp_path / "archived")


async def _story(shop: Shop) -> tuple[int, list[int]]:
    """Four months; `a` changes at every crawl, `b` once, `c` never, `d` is gone for a while, and then for good."""
    store = await shop.store(state="AZ")
    for crawl in range(8):
        hours = (crawl // 2) * MONTHS + crawl % 2
        await shop.execute("SELECT ensure_product_history_partition(%s)", [at(hours)])
        menu = [item("a", options=[("1g", f"{10 + crawl}.50", 20 - crawl)]), item("c")]
        menu.append(item("b", options=[("1g", 10 if crawl < 5 else 12, 3)]))
        if crawl in (0, 1, 3):
            menu.append(item("d", thc=20 + crawl))
        await shop.crawl(store, hours, menu)
    async with shop.pool.connection() as conn:
        cursor = await conn.execute("SELECT id FROM catalog_products ORDER BY provider_product_id")
        return store, [row[0] for row in await cursor.fetchall()]


async def _pack(shop: Shop, archived: ParquetPartitions, month: int, **more: Any) -> list[packing.PackedMonth]:
    before = START.replace(month=month, day=1, hour=0)
    async with shop.pool.connection() as conn:
        return await packing.pack(conn, archived, before, now=START.replace(month=11), **more)


async def _everything(shop: Shop, ids: list[int]) -> list[Any]:
    return [
        found
        for product in ids
        for path in ("history", "snapshots")
        for found in [await shop.ask(f"/api/products/{product}/{path}", params={"limit": 100})]
    ]


async def _states(shop: Shop) -> list[tuple[Any, ...]]:
    async with shop.pool.connection() as conn:
        return await (await conn.execute("SELECT * FROM product_states ORDER BY product_id, seen_from")).fetchall()


async def test_answers_are_the_same_whatever_is_packed(shop: Shop) -> None:
    _, ids = await _story(shop)
    archived = ParquetPartitions(shop.archive.storage)
    before = await _everything(shop, ids)
    assert len(before[0]["items"]) == 8
    everything = await _states(shop)

    done = await _pack(shop, archived, 5)
    assert [(one.month, one.states, one.dropped) for one in done] == [("2026-03", 2, True), ("2026-04", 3, True)]
    assert await _everything(shop, ids) == before
    page = await shop.ask(f"/api/products/{ids[0]}/history", params={"limit": 3, "until": at(MONTHS + 1).isoformat()})
    assert [row["prices"][0]["price_rec"] for row in page["items"]] == [12.5, 11.5, 10.5]
    span = {"since": at(MONTHS / 2).isoformat(), "until": at(MONTHS + 1).isoformat()}
    page = await shop.ask(f"/api/products/{ids[0]}/history", params=span)
    assert [row["prices"][0]["price_rec"] for row in page["items"]] == [12.5, 11.5], (
        "11.5 was seen last a fortnight before"
    )
    changes = await shop.walk("/api/changes", since=at(2 * MONTHS).isoformat())
    assert len(changes) == 4 + 1 + 1, "what changed since is told against what it was before"

    assert await _pack(shop, archived, 5) == [], "again there is nothing to do"
    assert sum(one.states for one in await _pack(shop, archived, 7)) == 6
    assert await _everything(shop, ids) == before

    # The next crawl is compared with what stayed.
    await shop.crawl(
        1, 3 * MONTHS + 2, [item("a", options=[("1g", "17.50", 13)]), item("b", options=[("1g", 12, 3)]), item("c")]
    )
    assert (await _everything(shop, ids))[0]["items"] == before[0]["items"]

    with duckdb.connect() as db:
        found = db.execute(
            f"SELECT count(*), min(provider_product_id) FROM read_parquet('{shop.storage}/history/*/*.parquet')"
        ).fetchone()
    assert found == (11, "a")
    assert sum(one.states for one in archived.contents()) == 11
    assert len(await _states(shop)) == len(everything) - 11


async def test_an_empty_partition_goes(shop: Shop, archived: ParquetPartitions) -> None:
    store = await shop.store()
    for crawl in range(3):
        await shop.execute("SELECT ensure_product_history_partition(%s)", [at(crawl * MONTHS)])
        await shop.crawl(store, crawl * MONTHS, [item("a", options=[("1g", 10 + crawl, 5)])])
    done = await _pack(shop, archived, 6)
    assert [(one.month, one.states, one.dropped) for one in done] == [
        ("2026-03", 0, True),
        ("2026-04", 1, True),
        ("2026-05", 1, True),
    ]


def _another_value(file: Path) -> None:
    """A file that can be read and holds something else than was written."""
    table = parquet.read_table(file)
    place = table.schema.get_field_index("quantity")
    parquet.write_table(
        table.set_column(
            place, table.schema.field(place), pyarrow.array([99] * len(table), table.schema.field(place).type)
        ),
        file,
    )


def _one_state_less(file: Path) -> None:
    parquet.write_table(parquet.read_table(file).slice(1), file)


def _cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def _other_bytes(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[4:200] = bytes(196)
    file.write_bytes(data)


@pytest.mark.parametrize("damage", [_another_value, _one_state_less, _cut_off, _other_bytes])
async def test_a_month_whose_file_was_damaged_is_not_touched(
    shop: Shop, archived: ParquetPartitions, damage: Callable[[Path], None], tmp_path: Path
) -> None:
    """The file is damaged once it is written, before it is read back; the next time all goes well."""
    await _story(shop)
    before = await _states(shop)
    damaged: list[str] = []

    def told(month: str, count: int) -> None:
        for file in set(archived.files()) - set(damaged):
            damage(tmp_path / "archived" / file)
            damaged.append(file)

    with pytest.raises(NotPacked, match="nothing was moved"):
        await _pack(shop, archived, 5, on_progress=told)
    assert len(damaged) == 1
    assert await _states(shop) == before
    assert archived.files() == []
    assert sum(one.states for one in await _pack(shop, archived, 5)) == 5


async def test_cut_off_after_the_file_counts_states_once(shop: Shop) -> None:
    _, ids = await _story(shop)
    archived = ParquetPartitions(shop.archive.storage)
    before = await _everything(shop, ids)
    # The database goes at COMMIT: the file is there, and so are the states.
    await shop.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57P01'; END $$"
    )
    await shop.execute(
        "CREATE CONSTRAINT TRIGGER refuse AFTER DELETE ON product_history DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
    with pytest.raises(psycopg.OperationalError):
        await _pack(shop, archived, 5)
    assert len(archived.files()) == 1
    assert await _everything(shop, ids) == before
    await shop.execute("DROP TRIGGER refuse ON product_history")
    assert sum(one.states for one in await _pack(shop, archived, 5)) == 5
    assert await _everything(shop, ids) == before


async def test_what_cannot_be_packed(shop: Shop, archived: ParquetPartitions) -> None:
    async with shop.pool.connection() as conn:
        with pytest.raises(Refused, match="not over yet"):
            await packing.pack(conn, archived, START.replace(month=12, day=1, hour=0), now=START.replace(month=11))
        with pytest.raises(Refused, match="not the start of a month"):
            await packing.pack(conn, archived, START, now=START.replace(month=11))


def _scans(plan: Any) -> list[tuple[str, str | None]]:
    found = [(plan["Node Type"], plan.get("Relation Name"))] if "Relation Name" in plan else []
    return found + [scan for child in plan.get("Plans", ()) for scan in _scans(child)]


async def test_one_product_and_one_store_at_an_instant_are_found_by_index(shop: Shop) -> None:
    """With enough rows that another way would be cheaper if there were no index."""
    store = await shop.store()
    for month in range(3):
        await shop.execute("SELECT ensure_product_history_partition(%s)", [at(month * MONTHS)])
    await shop.execute(
        "INSERT INTO catalog_products (dispensary_id, provider, provider_product_id, content_hash, first_seen_at, state_from,"
        " changed_at, name_raw, name, stock_status, is_in_stock, variants, extra) SELECT %s + n %% 500, 'dutchie', 'p' || n, '',"
        " %s, %s, %s, 'n', 'n', 'in_stock', true, '[]', '{}' FROM generate_series(1, 2000) n",
        [store, at(0), at(0), at(0)],
    )
    await shop.execute(
        "INSERT INTO product_history (product_id, dispensary_id, seen_from, seen_to, ended_at, present, quantity_capped, stock_status,"
        " prices, stock) SELECT id, dispensary_id, t, t, t + interval '3 days', true, false, 'in_stock', '[]', '[]'"
        "   FROM catalog_products, generate_series(0, 24) h, LATERAL (SELECT %s + h * interval '3 days') x(t)",
        [at(0)],
    )
    await shop.execute("ANALYZE")
    full = {"catalog_products", *(f"product_history_2026_{month}" for month in ("03", "04", "05"))}
    queries = history._q
    asked = {"id": 7, "since": None, "until": None, "after": None, "limit": 50, "packed": "[]"}
    moment = {"dispensary_id": store, "instant": at(MONTHS), "packed": "[]"}
    async with shop.pool.connection() as conn:
        for query, values in (
            (queries.product_states, asked),
            (queries.product_states, {**asked, "since": at(MONTHS), "until": at(2 * MONTHS)}),
            (queries.product_snapshots, asked),
            (queries.store_at, moment),
        ):
            cursor = await conn.execute(f"EXPLAIN (FORMAT json) {query}", values)
            (plan,) = (await cursor.fetchone() or ([],))[0]
            scans = [(kind, table) for kind, table in _scans(plan["Plan"]) if table in full]
            assert any(table == "product_history_2026_05" for _, table in scans)
            assert [scan for scan in scans if scan[0] == "Seq Scan"] == [], query


async def test_a_store_at_an_instant(shop: Shop) -> None:
    store, _ = await _story(shop)
    archived = ParquetPartitions(shop.archive.storage)

    async def offered(hours: float) -> list[tuple[str, float]]:
        async with shop.pool.connection() as conn:
            found = await history.list_menu_items(conn, store, at(hours), archived=archived)
        return sorted((item.provider_product_id, float(item.price_rec or 0)) for item in found)

    for packed in (0, 5, 7):
        if packed:
            await _pack(shop, archived, packed)
        assert await offered(-1) == []
        assert await offered(0.5) == [("a", 10.5), ("b", 10), ("c", 40), ("d", 40)]
        assert await offered(MONTHS) == [("a", 12.5), ("b", 10), ("c", 40)], "d was not on that menu"
        assert await offered(3 * MONTHS + 1) == [("a", 17.5), ("b", 12), ("c", 40)]


@pytest.mark.parametrize("what", [ExportTable.SNAPSHOTS, ExportTable.STATES, ExportTable.CHANGES])
async def test_exports_are_the_same_whatever_is_packed(shop: Shop, what: ExportTable) -> None:
    store, _ = await _story(shop)
    other = await shop.store("other", state="NM")
    await shop.crawl(other, 0, [item("x")])
    await shop.crawl(other, MONTHS, [item("x", options=[("1g", 9, 1)])])
    archived = ParquetPartitions(shop.archive.storage)

    async def lines(**more: Any) -> list[Any]:
        request = ExportRequest(what=what, fmt=Format.JSONL, **more)
        async with shop.pool.connection() as conn:
            async with export.read_snapshot(conn, request, archived):
                found = b"".join([piece async for piece in export.stream(conn, request)])
            hidden = await conn.execute(
                "SELECT relname FROM pg_class WHERE relpersistence = 't' AND relname ~ 'states|snapshots|changes'"
            )
            assert await hidden.fetchall() in ([], [("packed_states",)]), "nothing stands before the lasting tables"
        return [json.loads(line) for line in sorted(found.splitlines())]

    asked: list[dict[str, Any]] = [
        {},
        {"since": at(MONTHS)},
        {"since": at(MONTHS), "until": at(2 * MONTHS + 1)},
        {"stores": [other]},
        {"states": ["AZ"]},
        {"stores": [store], "until": at(MONTHS)},
    ]
    before = [await lines(**more) for more in asked]
    assert len(before[0]) > len(before[3]) > 0
    for month in (5, 7):
        await _pack(shop, archived, month)
        assert [await lines(**more) for more in asked] == before


class Paused(ParquetPartitions):
    """Once, it looks for files and is slow to say what it found, so that somebody can pack meanwhile."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self.looked, self.go = threading.Event(), threading.Event()

    def files(self) -> list[str]:
        found = super().files()
        if not self.looked.is_set():
            self.looked.set()
            assert self.go.wait(30)
        return found


async def _packed_meanwhile(shop: Shop, month: int, ask: Callable[[ParquetPartitions], Awaitable[T]]) -> T:
    slow = Paused(shop.archive.storage)
    going = asyncio.create_task(ask(slow))
    assert await asyncio.to_thread(slow.looked.wait, 30)
    assert sum(one.states for one in await _pack(shop, ParquetPartitions(shop.archive.storage), month)) > 0
    slow.go.set()
    return await going


async def test_whoever_reads_while_a_month_is_packed_misses_nothing(shop: Shop, tmp_path: Path) -> None:
    store, ids = await _story(shop)
    archived = ParquetPartitions(shop.archive.storage)

    async def states(archived: ParquetPartitions) -> list[Any]:
        async with shop.pool.connection() as conn:
            return (await history.get_history(conn, ids[0], products.Span(), archived=archived)).states

    async def offered(archived: ParquetPartitions) -> list[Any]:
        async with shop.pool.connection() as conn:
            return (await history.get_menu(conn, store, at(MONTHS + 1), archived=archived)).items

    async def exported(archived: ParquetPartitions) -> list[Any]:
        request, out = ExportRequest(what=ExportTable.STATES, fmt=Format.JSONL), tmp_path / "out.jsonl"
        async with shop.pool.connection() as conn:
            await export.to_file(conn, request, out, archived, overwrite=True)
        return [json.loads(line) for line in sorted(out.read_text().splitlines())]

    right = await exported(archived), await states(archived), await offered(archived)
    # The first month that is ever packed, then another, then the last.
    assert await _packed_meanwhile(shop, 4, exported) == right[0]
    assert await _packed_meanwhile(shop, 5, states) == right[1]
    assert await _packed_meanwhile(shop, 6, offered) == right[2]
    assert await _packed_meanwhile(shop, 7, exported) == right[0]


async def test_no_month_is_packed_while_a_store_is_rebuilt(shop: Shop, archived: ParquetPartitions) -> None:
    await _story(shop)
    async with shop.pool.connection() as conn, conn.transaction():
        await conn.execute(rebuild._q.keep_from_packing)
        going = asyncio.create_task(_pack(shop, archived, 5))

        async def waits() -> bool:
            cursor = await conn.execute(
                "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"
            )
            return await cursor.fetchone() == (True,)

        await until(waits)
        assert archived.contents() == []
    assert sum(one.states for one in await going) == 5
