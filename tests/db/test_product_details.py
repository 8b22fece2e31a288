"""Batches, lab values and sold counts: what the catalog stores of them, and when a change makes a row of history."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from psycopg.rows import dict_row

from menuwatch.catalog.history import list_details
from menuwatch.catalog.service import Span, get_product
from menuwatch.db.pool import Pool
from menuwatch.ops.janitor import Janitor
from menuwatch.ops.retention import Retention
from tests.market import START, add_store, crawl, item

BATCH = {
    "batch_id": "B-1",
    "package_tag": "1A40D0300001",
    "tested_on": "2026-01-05",
    "packaged_on": "2026-01-08",
    "expires_on": "2027-01-08",
    "certificate_url": "https://lab.test/b-1.pdf",
}
TERPENES = {"Myrcene": 0.81, "Limonene": 0.4}


def at(number: int) -> Any:
    """Time of the crawl of that number."""
    return START + timedelta(hours=number)


async def _rows(pool: Pool, query: str, *values: Any) -> list[dict[str, Any]]:
    async with pool.connection() as conn, conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(query, values)  # type: ignore[arg-type]
        return await cur.fetchall()


async def _live(pool: Pool, *menus: bytes | None) -> list[dict[str, int]]:
    """One store with one product; a crawl per menu, None for one without it. Returns the counts of each crawl."""
    counts = []
    async with pool.connection() as conn:
        await conn.execute("SELECT ensure_product_history_partition(%s)", [START])
        store = await add_store(conn)
        for number, one in enumerate(menus):
            applied = await crawl(conn, store, number, [item("other")] if one is None else [one, item("other")])
            counts.append(applied.counts())
    return counts


async def _past(pool: Pool) -> list[dict[str, Any]]:
    return await _rows(pool, "SELECT * FROM product_detail_history ORDER BY ended_at")


async def _details(pool: Pool) -> list[dict[str, Any]]:
    return await _rows(
        pool,
        "SELECT d.* FROM product_details d JOIN catalog_products p ON p.id = d.product_id"
        " WHERE p.provider_product_id = 'a' ORDER BY seen_from",
    )


async def test_a_product_holds_its_batch_lab_values_and_sold_count(pool: Pool) -> None:
    await _live(pool, item("a", batch=BATCH, terpenes=TERPENES, cannabinoids={"THCA": "21.50"}, sold=12))
    (row,) = await _rows(pool, "SELECT * FROM store_products WHERE provider_product_id = 'a'")
    assert row["batch"] == BATCH
    assert row["terpenes"] == [{"name": n, "value": v, "unit": "%"} for n, v in TERPENES.items()]
    assert row["quantity_sold"] == 12
    (other,) = await _rows(pool, "SELECT * FROM store_products WHERE provider_product_id = 'other'")
    assert (other["batch"], other["terpenes"], other["cannabinoids"], other["quantity_sold"]) == (
        None,
        None,
        None,
        None,
    )
    async with pool.connection() as conn:
        detail = await get_product(conn, row["id"])
    assert b"21.50" in bytes(detail.cannabinoids), "numbers stay exact"
    assert await _past(pool) == [], "what holds now is the product's row"


async def test_unchanged_details_write_nothing(pool: Pool) -> None:
    said = {"batch": BATCH, "terpenes": TERPENES, "sold": 3}
    counts = await _live(
        pool, item("a", **said), item("a", **said), item("a", note="other bytes", **said), item("a", price="9", **said)
    )
    assert [count["changed"] for count in counts] == [0, 0, 0, 1]
    assert await _past(pool) == []
    (now,) = await _details(pool)
    assert (now["seen_from"], now["ended_at"]) == (at(0), None)


@pytest.mark.parametrize(
    "new",
    [
        {"batch": {**BATCH, "batch_id": "B-2"}, "terpenes": TERPENES},
        {"batch": BATCH, "terpenes": {**TERPENES, "Myrcene": 0.9}},
        {"batch": BATCH, "terpenes": TERPENES, "cannabinoids": {"THCA": 20}},
        {"terpenes": TERPENES},
    ],
)
async def test_another_batch_or_lab_value_is_a_change_but_no_state(pool: Pool, new: dict[str, Any]) -> None:
    counts = await _live(
        pool, item("a", batch=BATCH, terpenes=TERPENES), item("a", batch=BATCH, terpenes=TERPENES), item("a", **new)
    )
    assert (counts[2]["changed"], counts[2]["price_changes"], counts[2]["stock_changes"]) == (1, 0, 0)
    assert await _rows(pool, "SELECT * FROM product_history") == []
    (past,) = await _past(pool)
    assert (past["seen_from"], past["ended_at"], past["details_kept"], past["batch"]) == (at(0), at(2), False, BATCH)
    before, now = await _details(pool)
    assert before["batch"] == BATCH
    assert before["terpenes"][0]["value"] == 0.81
    assert (now["seen_from"], now["ended_at"], now["batch"]) == (at(2), None, new.get("batch"))
    (row,) = await _rows(pool, "SELECT updated_at FROM store_products WHERE provider_product_id = 'a'")
    assert row["updated_at"] == at(2)


async def test_a_sold_count_alone_is_no_change_and_its_row_is_small(pool: Pool) -> None:
    counts = await _live(
        pool,
        item("a", batch=BATCH, terpenes=TERPENES, sold=10),
        item("a", batch=BATCH, terpenes=TERPENES, sold=12),
        item("a", batch=BATCH, terpenes=TERPENES, sold=15),
        item("a", batch={**BATCH, "batch_id": "B-2"}, terpenes=TERPENES, sold=16),
        item("a", batch={**BATCH, "batch_id": "B-2"}, terpenes=TERPENES, sold=17),
    )
    assert [count["changed"] for count in counts] == [0, 0, 0, 1, 0]
    assert [count["unchanged"] for count in counts] == [0, 2, 2, 1, 2]
    (row,) = await _rows(pool, "SELECT updated_at, quantity_sold FROM store_products WHERE provider_product_id = 'a'")
    assert row == {"updated_at": at(3), "quantity_sold": 17}
    assert [(past["quantity_sold"], past["details_kept"], past["terpenes"] is None) for past in await _past(pool)] == [
        (10, True, True), (12, True, True), (15, False, False), (16, True, True),
    ]  # fmt: skip
    found = await _details(pool)
    assert [
        (d["seen_from"], d["ended_at"], d["quantity_sold"], d["batch"]["batch_id"], len(d["terpenes"])) for d in found
    ] == [
        (at(0), at(1), 10, "B-1", 2),
        (at(1), at(2), 12, "B-1", 2),
        (at(2), at(3), 15, "B-1", 2),
        (at(3), at(4), 16, "B-2", 2),
        (at(4), None, 17, "B-2", 2),
    ]


async def test_times_in_which_the_menu_says_nothing_have_no_row(pool: Pool) -> None:
    await _live(
        pool,
        item("a"),
        item("a", terpenes=TERPENES),
        item("a"),
        item("a", sold=4),
        item("a", sold=5, terpenes=TERPENES),
    )
    found = [
        (d["seen_from"], d["ended_at"], d["quantity_sold"], d["terpenes"] is not None) for d in await _details(pool)
    ]
    assert found == [(at(1), at(2), None, True), (at(3), at(4), 4, False), (at(4), None, 5, True)]


async def test_a_sold_count_that_ends_with_nothing_else_said_stays_apart_from_later_lab_values(pool: Pool) -> None:
    await _live(pool, item("a", sold=4), item("a"), item("a", terpenes=TERPENES))
    first, last = await _details(pool)
    assert (first["quantity_sold"], first["terpenes"], first["ended_at"]) == (4, None, at(1))
    assert (last["seen_from"], last["quantity_sold"]) == (at(2), None)


async def test_absence_changes_no_details(pool: Pool) -> None:
    await _live(pool, item("a", batch=BATCH, sold=5), None, None, None, None, item("a", batch=BATCH, sold=5))
    assert [(d["seen_from"], d["ended_at"]) for d in await _details(pool)] == [(at(0), None)]


async def test_history_of_details_is_paged_and_cut_by_time(pool: Pool) -> None:
    await _live(pool, *(item("a", batch=BATCH, sold=number) for number in range(6)))
    async with pool.connection() as conn:
        ((number,),) = await (
            await conn.execute("SELECT id FROM catalog_products WHERE provider_product_id = 'a'")
        ).fetchall()
        page = await list_details(conn, number, Span(), limit=2)
        rest = await list_details(conn, number, Span(), after=page[-1].from_, limit=10)
        assert [row.quantity_sold for row in (*page, *rest)] == [5, 4, 3, 2, 1, 0]
        cut = await list_details(conn, number, Span(since=at(1), until=at(3)))
        assert [row.quantity_sold for row in cut] == [2, 1]


async def test_hostile_values_are_stored_or_refused_alone(pool: Pool) -> None:
    many = {f"Terpene {number}": number / 1000 for number in range(5000)}
    url = "javascript:alert('\\x00\\t')\n\x00"
    counts = await _live(
        pool, item("a", terpenes={"My\x00rcene\t\\": 1, **many}, batch={"certificate_url": url}, sold=2**63 - 1)
    )
    assert counts[0]["new"] == 2
    (row,) = await _rows(pool, "SELECT * FROM store_products WHERE provider_product_id = 'a'")
    assert row["terpenes"][0]["name"] == "My�rcene\t\\"
    assert len(row["terpenes"]) == 5001
    assert row["batch"] == {"certificate_url": url.replace("\x00", "�")}
    assert row["quantity_sold"] == 2**63 - 1


async def test_a_count_too_large_for_its_column_is_refused_alone(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute("SELECT ensure_product_history_partition(%s)", [START])
    import msgspec

    from menuwatch.catalog import bad_row_isolation
    from menuwatch.catalog.apply import MenuToApply
    from tests.market import Reader, add_payload

    async with pool.connection() as conn:
        store = await add_store(conn)
        async with conn.transaction():
            payload = await add_payload(conn, store, START, 2)
            items = [msgspec.Raw(item("a", sold=2**63)), msgspec.Raw(item("b"))]
            menu = MenuToApply(
                dispensary_id=store, provider="dutchie", payload_id=payload, crawled_at=START, previous=None, items=items,
                trusted=True,
            )  # fmt: skip
            applied = await bad_row_isolation.apply_menu(conn, menu, Reader())
    assert applied.new == 1
    assert applied.warnings[0].fatal


async def test_details_go_with_their_months_and_their_store(pool: Pool) -> None:
    await _live(pool, item("a", batch=BATCH, sold=1))
    async with pool.connection() as conn:
        for ago in (0, 2, 14, 60):
            await conn.execute("SELECT ensure_product_history_partition(now() - make_interval(months => %s))", [ago])
            await conn.execute(
                "INSERT INTO product_detail_history (product_id, seen_from, ended_at, quantity_sold, details_kept)"
                " SELECT min(id), t - interval '1 hour', t, %s, true FROM catalog_products,"
                " (SELECT now() - make_interval(months => %s)) x(t)"
                " GROUP BY t",
                [ago, ago],
            )
    await Janitor(pool, retention=Retention(states=timedelta(days=365))).step()
    assert [row["quantity_sold"] for row in await _past(pool)] == [2, 0]
    async with pool.connection() as conn:
        await conn.execute("DELETE FROM dispensaries")
    assert await _past(pool) == []
