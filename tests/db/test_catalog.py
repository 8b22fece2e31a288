"""The catalogue against real PostgreSQL: states per change, misses, snapshots."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.rows import dict_row

from menuwatch.catalog.apply import SuspectMenu
from menuwatch.catalog.changes import ChangeFilter, list_changes
from menuwatch.db.pool import Pool, connect
from tests.market import START, add_store, crawl, item


async def _rows(pool: Pool, query: str) -> list[dict[str, Any]]:
    async with pool.connection() as conn, conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(query)  # type: ignore[arg-type]
        return await cur.fetchall()


@pytest.fixture
async def months(pool: Pool) -> Pool:
    """A pool on a database that has a partition for the tests' month."""
    async with pool.connection() as conn:
        await conn.execute("SELECT ensure_product_history_partition(%s)", [START])
    return pool


async def test_a_first_crawl_stores_every_product(months: Pool) -> None:
    async with months.connection() as conn:
        store = await add_store(conn)
        applied = await crawl(conn, store, 0, [item("a", price="12.50"), item("b", qty=0), item("c", qty=None)])
    assert applied.counts() == {
        "products": 3, "new": 3, "changed": 0, "unchanged": 0, "returned": 0, "missing": 0, "out_of_stock": 0,
        "price_changes": 0, "stock_changes": 0,
    }  # fmt: skip
    rows = {row["provider_product_id"]: row for row in await _rows(months, "SELECT * FROM store_products")}
    assert rows["a"]["price_rec"] == Decimal("12.50")
    assert (rows["a"]["is_in_stock"], rows["b"]["is_in_stock"], rows["c"]["is_in_stock"]) == (True, False, None)
    assert all(row["first_seen_at"] == row["last_seen_at"] == START for row in rows.values())
    assert rows["a"]["variants"] == [{"option": "each", "price_rec": 12.5, "quantity": 5, "stock_status": "in_stock"}]


async def test_images_are_read_as_they_were_written(months: Pool) -> None:
    cases: list[tuple[str | None, list[str]]] = [
        (None, []), ("a", ["a"]), ("a", ["a", "b"]), ("a", ["b"]), ("a", []), (None, ["a"]),
    ]  # fmt: skip

    def menu(order: list[tuple[str | None, list[str]]]) -> list[bytes]:
        return [item(str(n), image_url=url, images=images) for n, (url, images) in enumerate(order)]

    async with months.connection() as conn:
        store = await add_store(conn)
        for number, order in enumerate((cases, cases[1:] + cases[:1])):
            applied = await crawl(conn, store, number, menu(order))
            assert applied.changed == (len(cases) if number else 0)
            rows = await _rows(months, "SELECT image_url, images FROM store_products ORDER BY provider_product_id")
            assert [(row["image_url"], row["images"] or []) for row in rows] == order
            assert all(row["images"] != [] for row in rows), "an empty list is read as null"


async def test_an_unchanged_product_writes_nothing(months: Pool) -> None:
    menu = [item("a"), item("b"), item("c", price="3")]
    async with months.connection() as conn:
        store = await add_store(conn)
        await crawl(conn, store, 0, menu)
        before = await _rows(months, "SELECT ctid::text, xmin::text, * FROM catalog_products ORDER BY id")
        assert await _rows(months, "SELECT * FROM product_history") == [], "what is now is the product's row"
        applied = await crawl(conn, store, 1, [menu[2], menu[0], item("b", price="11")])
    assert (applied.unchanged, applied.changed, applied.price_changes) == (2, 1, 1)
    after = await _rows(months, "SELECT ctid::text, xmin::text, * FROM catalog_products ORDER BY id")
    assert [row for row in after if row["provider_product_id"] != "b"] == [
        row for row in before if row["provider_product_id"] != "b"
    ]
    past = await _rows(months, "SELECT * FROM product_history")
    assert [
        (row["product_id"], row["price_rec"], row["seen_from"], row["seen_to"], row["ended_at"]) for row in past
    ] == [(before[1]["id"], 10, START, START, START + timedelta(hours=1))]
    seen = await _rows(months, "SELECT last_seen_at FROM store_products")
    assert {row["last_seen_at"] for row in seen} == {START + timedelta(hours=1)}, "it was seen all the same"


async def test_the_third_miss_makes_it_out_of_stock_and_its_return_undoes_that(months: Pool) -> None:
    async with months.connection() as conn:
        store = await add_store(conn)
        a, b = item("a", qty=7), item("b")
        await crawl(conn, store, 0, [a, b])
        story = []
        for number in range(1, 6):
            applied = await crawl(conn, store, number, [b])
            (row,) = await _rows(months, "SELECT * FROM store_products WHERE provider_product_id = 'a'")
            story.append(
                (
                    row["consecutive_misses"],
                    row["stock_status"],
                    row["is_in_stock"],
                    row["quantity"],
                    applied.missing,
                    applied.out_of_stock,
                )
            )
            assert row["last_seen_at"] == START
        assert story == [
            (1, "in_stock", True, 7, 1, 0),
            (2, "in_stock", True, 7, 1, 0),
            (3, "oos", False, 0, 1, 1),
            (3, "oos", False, 0, 0, 0),
            (3, "oos", False, 0, 0, 0),
        ]  # fmt: skip
        applied = await crawl(conn, store, 6, [a, b])
    assert (applied.returned, applied.stock_changes, applied.price_changes, applied.unchanged) == (1, 1, 0, 1)
    (row,) = await _rows(months, "SELECT * FROM store_products WHERE provider_product_id = 'a'")
    assert (row["consecutive_misses"], row["stock_status"], row["quantity"]) == (0, "in_stock", 7)
    assert row["last_seen_at"] == START + timedelta(hours=6)
    snapshots = await _rows(
        months, "SELECT crawled_at FROM store_product_snapshots WHERE provider_product_id = 'a' ORDER BY 1"
    )
    assert [s["crawled_at"] - START for s in snapshots] == [timedelta(0), timedelta(hours=6)], "the gap stays a gap"
    changes = await _rows(
        months, "SELECT changed_at, stock_status_before, stock_status_after FROM product_changes ORDER BY 1"
    )
    assert [(c["changed_at"] - START, c["stock_status_before"], c["stock_status_after"]) for c in changes] == [
        (timedelta(hours=3), "in_stock", "oos"),
        (timedelta(hours=6), "oos", "in_stock"),
    ]


async def test_a_short_absence_is_a_gap_and_no_change(months: Pool) -> None:
    async with months.connection() as conn:
        store = await add_store(conn)
        await crawl(conn, store, 0, [item("a"), item("b")])
        await crawl(conn, store, 1, [item("b")])
        applied = await crawl(conn, store, 2, [item("a"), item("b")])
    assert (applied.returned, applied.stock_changes, applied.price_changes) == (1, 0, 0)
    states = await _rows(
        months,
        "SELECT seen_from, seen_to FROM product_states s JOIN catalog_products p ON p.id = s.product_id"
        " WHERE provider_product_id = 'a' ORDER BY 1",
    )
    assert [(s["seen_from"] - START, s["seen_to"]) for s in states] == [
        (timedelta(0), START),
        (timedelta(hours=2), None),
    ]
    assert await _rows(months, "SELECT * FROM product_changes") == []


async def test_the_later_of_two_items_with_one_id_counts(months: Pool) -> None:
    async with months.connection() as conn:
        store = await add_store(conn)
        applied = await crawl(conn, store, 0, [item("a", price="1"), item("b"), item("a", price="2")])
        assert (applied.products, applied.new) == (2, 2)
        # The stored bytes last: the other ones before them do not count.
        applied = await crawl(conn, store, 1, [item("a", price="9"), item("b"), item("a", price="2")])
        assert (applied.products, applied.unchanged, applied.price_changes) == (2, 2, 0)
        # The stored bytes first: they do not count.
        applied = await crawl(conn, store, 2, [item("a", price="2"), item("b"), item("a", price="9")])
        assert (applied.products, applied.unchanged, applied.price_changes) == (2, 1, 1)
    (row,) = await _rows(months, "SELECT price_rec FROM store_products WHERE provider_product_id = 'a'")
    assert row["price_rec"] == 9


async def test_a_malformed_item_is_a_warning_and_no_miss(months: Pool) -> None:
    menu = [item(str(i)) for i in range(10)]
    async with months.connection() as conn:
        store = await add_store(conn)
        await crawl(conn, store, 0, menu)
        applied = await crawl(conn, store, 1, [b'{"id": "0", "name": "no price"}', *menu[1:], item("new")])
    assert [(w.product_id, w.field, w.fatal) for w in applied.warnings] == [("0", "price", True)]
    assert (applied.new, applied.missing, applied.unchanged) == (1, 0, 9)
    (row,) = await _rows(months, "SELECT * FROM store_products WHERE provider_product_id = '0'")
    assert row["consecutive_misses"] == 0


async def test_an_item_without_an_id_puts_misses_off_for_a_week(months: Pool) -> None:
    menu = [item(str(i)) for i in range(10)]
    nameless = b'{"name": "who is it"}'
    story = []
    async with months.connection() as conn:
        store = await add_store(conn)
        await crawl(conn, store, 0, menu)
        for number in (1, 2, 3, 4, 24 * 7, 24 * 7 + 1, 24 * 7 + 2, 24 * 7 + 3, 24 * 7 + 4):
            applied = await crawl(conn, store, number, [nameless, *menu[1:]])
            (row,) = await _rows(months, "SELECT * FROM store_products WHERE provider_product_id = '0'")
            story.append((applied.missing, row["consecutive_misses"], row["stock_status"]))
            assert row["last_seen_at"] == START, "nobody saw it"
    assert story[:5] == [(0, 0, "in_stock")] * 5, "it may be the one without an id"
    assert story[5:] == [(1, 1, "in_stock"), (1, 2, "in_stock"), (1, 3, "oos"), (0, 3, "oos")]
    snapshots = await _rows(months, "SELECT 1 FROM store_product_snapshots WHERE provider_product_id = '0'")
    assert len(snapshots) == 1


async def test_an_item_without_an_id_neither_adds_to_misses_nor_takes_them_back(months: Pool) -> None:
    menu = [item(str(i)) for i in range(10)]
    nameless = b'{"name": "who is it"}'
    story = []
    async with months.connection() as conn:
        store = await add_store(conn)
        for number, items in enumerate(
            [menu, menu[1:], menu[1:], [nameless, *menu[1:]], [nameless, *menu[1:]], menu[1:]]
        ):
            await crawl(conn, store, number, items)
            (row,) = await _rows(months, "SELECT * FROM store_products WHERE provider_product_id = '0'")
            story.append((row["consecutive_misses"], row["stock_status"]))
    assert story == [(0, "in_stock"), (1, "in_stock"), (2, "in_stock"), (2, "in_stock"), (2, "in_stock"), (3, "oos")]


async def test_a_product_that_cannot_be_read_is_there_all_the_same(months: Pool) -> None:
    menu = [item(str(i)) for i in range(10)]
    broken = b'{"id": "0", "name": "no price"}'
    crawls = [menu, menu[1:], menu[1:], [broken, *menu[1:]], menu[1:], menu]
    story = []
    async with months.connection() as conn:
        store = await add_store(conn)
        for number, items in enumerate(crawls):
            await crawl(conn, store, number, items)
            (row,) = await _rows(months, "SELECT * FROM store_products WHERE provider_product_id = '0'")
            story.append(
                (row["consecutive_misses"], row["stock_status"], (row["last_seen_at"] - START) // timedelta(hours=1))
            )
    assert story == [
        (0, "in_stock", 0),
        (1, "in_stock", 0),
        (2, "in_stock", 0),
        (0, "in_stock", 3),
        (1, "in_stock", 3),
        (0, "in_stock", 5),
    ]
    seen = await _rows(
        months, "SELECT crawled_at FROM store_product_snapshots WHERE provider_product_id = '0' ORDER BY 1"
    )
    assert [(s["crawled_at"] - START) // timedelta(hours=1) for s in seen] == [0, 5], (
        "no price is claimed that was not read"
    )


async def test_what_is_gone_unreadable_and_gone_again_went_once(months: Pool) -> None:
    menu = [item(str(i)) for i in range(10)]
    broken = b'{"id": "0", "name": "no price"}'
    rest = menu[1:]
    crawls = [menu, rest, rest, rest, [broken, *rest], rest, rest, rest, rest, menu]
    story = []
    async with months.connection() as conn:
        store = await add_store(conn)
        for number, items in enumerate(crawls):
            applied = await crawl(conn, store, number, items)
            (row,) = await _rows(months, "SELECT * FROM catalog_products WHERE provider_product_id = '0'")
            began = (row["state_from"] - START) // timedelta(hours=1)
            story.append((row["consecutive_misses"], row["present"], began, row["stock_status"], applied.out_of_stock))
    assert story == [
        (0, True, 0, "in_stock", 0),
        (1, True, 0, "in_stock", 0),
        (2, True, 0, "in_stock", 0),
        (3, False, 3, "oos", 1),
        (0, False, 3, "oos", 0),
        (1, False, 3, "oos", 0),
        (2, False, 3, "oos", 0),
        (3, False, 3, "oos", 0),
        (3, False, 3, "oos", 0),
        (0, True, 9, "in_stock", 0),
    ]
    past = await _rows(
        months,
        "SELECT s.* FROM product_history s JOIN catalog_products p ON p.id = s.product_id"
        " WHERE p.provider_product_id = '0' ORDER BY s.seen_from",
    )
    # Only what was seen is a state of the past: one that was gone all the time is not present a second time.
    assert [
        ((row["seen_from"] - START) // timedelta(hours=1), row["stock_status"]) for row in past if row["present"]
    ] == [(0, "in_stock")]


async def test_a_part_of_a_menu_counts_no_miss(months: Pool) -> None:
    async with months.connection() as conn:
        store = await add_store(conn)
        await crawl(conn, store, 0, [item("a"), item("b")])
        for number in range(1, 5):
            applied = await crawl(conn, store, number, [item("a")], whole=False)
            assert applied.missing == 0
        (row,) = await _rows(months, "SELECT * FROM store_products WHERE provider_product_id = 'b'")
        assert (row["consecutive_misses"], row["stock_status"], row["last_seen_at"]) == (0, "in_stock", START)
        applied = await crawl(conn, store, 5, [item("a"), item("b")])
        assert (applied.returned, applied.price_changes, applied.stock_changes) == (1, 0, 0)


async def test_an_empty_menu_is_suspect_until_a_person_releases_it(months: Pool) -> None:
    async with months.connection() as conn:
        store = await add_store(conn)
        await crawl(conn, store, 0, [item("a")])
        with pytest.raises(SuspectMenu, match="no item"):
            await crawl(conn, store, 1, [])
        applied = await crawl(conn, store, 1, [], trusted=True)
    assert (applied.products, applied.missing) == (0, 1)


async def test_of_two_copies_the_readable_one_counts(months: Pool) -> None:
    others = [item(str(i)) for i in range(10)]
    async with months.connection() as conn:
        store = await add_store(conn)
        applied = await crawl(conn, store, 0, [item("a", price="4"), *others, b'{"id": "a", "name": "no price"}'])
    assert applied.new == 11
    (row,) = await _rows(months, "SELECT price_rec FROM store_products WHERE provider_product_id = 'a'")
    assert row["price_rec"] == 4


async def test_history_outlives_its_payloads_and_goes_with_its_store(months: Pool) -> None:
    async with months.connection() as conn:
        store, other = await add_store(conn), await add_store(conn, "store-2")
        for number in range(3):
            await crawl(conn, store, number, [item("a", price=str(number))])
            await crawl(conn, other, number, [item("a", price=str(number))])
        await conn.execute("DELETE FROM raw_crawl_payloads")
        assert len(await _rows(months, "SELECT * FROM store_product_snapshots")) == 6
        await conn.execute("DELETE FROM dispensaries WHERE id = %s", [store])
        rows = await _rows(months, "SELECT DISTINCT dispensary_id FROM store_product_snapshots")
        assert rows == [{"dispensary_id": other}]
        assert len(await _rows(months, "SELECT * FROM product_states")) == 3


async def test_partitions_made_at_once_are_made_once(database_url: str) -> None:
    async def ensure() -> bool:
        async with await connect(database_url) as conn:
            row = await (await conn.execute("SELECT ensure_product_history_partition('2020-05-05Z')")).fetchone()
            assert row is not None
            return bool(row[0])

    made = await asyncio.gather(*(ensure() for _ in range(8)))
    assert sorted(made) == [False] * 7 + [True]


async def test_many_malformed_items_are_a_changed_schema(months: Pool) -> None:
    async with months.connection() as conn:
        store = await add_store(conn)
        await crawl(conn, store, 0, [item(str(i)) for i in range(10)])
        before = await _rows(months, "SELECT * FROM store_products ORDER BY id")
        with pytest.raises(SuspectMenu, match="of 10 items cannot be read, first: price: is missing"):
            await crawl(conn, store, 1, [b'{"id": "x"}', b'{"id": "y"}', b"{}", *(item(str(i)) for i in range(7))])
    assert await _rows(months, "SELECT * FROM store_products ORDER BY id") == before


async def test_another_normalizer_version_reads_every_item_anew(months: Pool) -> None:
    async with months.connection() as conn:
        store = await add_store(conn)
        await crawl(conn, store, 0, [item("a")], version=1)
        hashes = await _rows(months, "SELECT content_hash FROM catalog_products")
        applied = await crawl(conn, store, 1, [item("a")], version=2)
        assert applied.unchanged == 1, "the same item gives the same product"
    assert await _rows(months, "SELECT content_hash FROM catalog_products") != hashes


async def test_hostile_names_are_stored_as_they_are(months: Pool) -> None:
    names = [
        "tab\there",
        "line\nbreak\rreturn",
        "back\\slash \\N \\.",
        "Δ9–THC  “quoted” 'x'",
        "nul\x00byte",
        "\\u0000",
        "emoji 🌿",
    ]
    async with months.connection() as conn:
        store = await add_store(conn)
        await crawl(conn, store, 0, [item(str(i), name=name, description=name) for i, name in enumerate(names)])
        await crawl(
            conn, store, 1, [item(str(i), name=name, description=name, price="11") for i, name in enumerate(names)]
        )
    rows = await _rows(months, "SELECT name_raw, description FROM store_products ORDER BY provider_product_id")
    expected = [name.replace("\x00", "\ufffd") for name in names]
    assert [row["name_raw"] for row in rows] == expected
    assert [row["description"] for row in rows] == expected


async def test_potency_alone_begins_a_new_state(months: Pool) -> None:
    async with months.connection() as conn:
        store = await add_store(conn)
        await crawl(conn, store, 0, [item("a", thc=20.5)])
        applied = await crawl(conn, store, 1, [item("a", thc=21)])
    assert (applied.changed, applied.price_changes, applied.stock_changes) == (1, 0, 0)
    states = await _rows(months, "SELECT thc_lo, seen_to FROM product_states ORDER BY seen_from")
    assert [(s["thc_lo"], s["seen_to"]) for s in states] == [(Decimal("20.5"), START), (Decimal(21), None)]
    assert await _rows(months, "SELECT * FROM product_changes") == []


_menu = st.dictionaries(
    st.sampled_from("abcd"),
    st.tuples(st.sampled_from(["1", "2"]), st.sampled_from([None, 0, 1, 25])),
    min_size=0,
    max_size=4,
)


class _Model:
    """The rules of history in a few lines of Python: what every view must say after any series of crawls."""

    def __init__(self) -> None:
        self.current: dict[str, tuple[str, int | None, str, int]] = {}
        self.snapshots: set[tuple[int, str, str, int | None]] = set()
        self.totals = {"price_changes": 0, "stock_changes": 0, "out_of_stock": 0}

    def crawl(self, number: int, menu: dict[str, tuple[str, int | None]]) -> None:
        for product, (price, qty) in menu.items():
            status = "unknown" if qty is None else "in_stock" if qty else "oos"
            old = self.current.get(product)
            if old is not None:
                self.totals["price_changes"] += old[0] != price
                self.totals["stock_changes"] += (old[1], old[2]) != (qty, status)
                self.totals["out_of_stock"] += old[2] != "oos" and status == "oos"
            self.current[product] = (price, qty, status, 0)
            self.snapshots.add((number, product, price, qty))
        for product in self.current.keys() - menu.keys():
            price, qty, status, misses = self.current[product]
            if misses == 3:
                continue
            if misses == 2:
                self.totals["out_of_stock"] += status != "oos"
                self.totals["stock_changes"] += (qty, status) != (0, "oos")
                self.current[product] = (price, 0, "oos", 3)
            else:
                self.current[product] = (price, qty, status, misses + 1)


def test_any_series_of_crawls_agrees_with_the_model(database_url: str) -> None:
    serial = iter(range(1_000_000))

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(_menu, min_size=1, max_size=7))
    def check(crawls: list[dict[str, tuple[str, int | None]]]) -> None:
        asyncio.run(_agree(database_url, f"store-{next(serial)}", crawls))

    check()


async def _agree(url: str, name: str, crawls: list[dict[str, tuple[str, int | None]]]) -> None:
    model = _Model()
    totals = {"price_changes": 0, "stock_changes": 0, "out_of_stock": 0}
    async with await connect(url) as conn:
        await conn.execute("SELECT ensure_product_history_partition(%s)", [START])
        store = await add_store(conn, name)
        for number, menu in enumerate(crawls):
            model.crawl(number, menu)
            items = [item(i, price=p, qty=q) for i, (p, q) in menu.items()]
            applied = await crawl(conn, store, number, items, trusted=not items)
            assert applied.products == len(menu)
            for key in totals:
                totals[key] += applied.counts()[key]
        assert totals == model.totals
        cursor = await conn.execute(
            "SELECT provider_product_id, price_rec::text, quantity, stock_status, consecutive_misses"
            "  FROM store_products WHERE dispensary_id = %s",
            [store],
        )
        assert {row[0]: row[1:] for row in await cursor.fetchall()} == model.current
        cursor = await conn.execute(
            "SELECT crawled_at, provider_product_id, price_rec::text, quantity FROM store_product_snapshots WHERE dispensary_id = %s",
            [store],
        )
        rows = [((at - START) // timedelta(hours=1), *rest) for at, *rest in await cursor.fetchall()]
        assert len(rows) == len(set(rows))
        assert set(rows) == model.snapshots
        cursor = await conn.execute("SELECT sum(products) FROM store_crawls WHERE dispensary_id = %s", [store])
        assert (await cursor.fetchone() or (0,))[0] == len(rows), "a crawl's products are its snapshots"
        changes = (await list_changes(conn, ChangeFilter(stores=[store]), limit=100_000, patience=3600)).items
        assert sum(change.price_changed for change in changes) == model.totals["price_changes"]
        assert sum(change.stock_changed for change in changes) == model.totals["stock_changes"]
