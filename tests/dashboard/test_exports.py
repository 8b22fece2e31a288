"""Exports of the dashboard hold exactly what the lists show, and the screen of changes filters as it says."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, datetime
from decimal import Decimal

import httpx
import pytest
from pyarrow import parquet

from menuwatch.catalog import changes
from menuwatch.catalog.changes import ChangeFilter
from menuwatch.db.pool import Pool
from menuwatch.exports.tables import TABLES, ExportTable
from tests.browser import history_data
from tests.browser.history_data import Planted, Words
from tests.dashboard.conftest import Sql
from tests.exports.test_history_cli import CHANGE_HEADER, MATCH_EVENT_HEADER

SAME = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def desert(sql: Sql, pool: Pool) -> Planted:
    return history_data.plant(sql)


def rows_of(answer: httpx.Response) -> list[dict[str, str]]:
    assert answer.status_code == 200, answer.text
    return list(csv.DictReader(io.StringIO(answer.text)))


async def test_products_are_exported_with_the_filters(admin: httpx.AsyncClient, desert: Planted, sql: Sql) -> None:
    other = history_data.plant(sql, Words(slug="second"))
    assert len(rows_of(await admin.get("/admin/products/export?format=csv"))) == 2
    answer = await admin.get("/admin/products/export", params={"format": "csv", "store": str(other.store)})
    assert [row["product_id"] for row in rows_of(answer)] == [str(other.product)]
    name = answer.headers["content-disposition"]
    assert re.search(r'filename="menuwatch-products-\d{4}-\d\d-\d\dT\d{4}Z\.csv"', name)
    answer = await admin.get("/admin/products/export", params={"format": "parquet", "store": str(other.store)})
    assert parquet.read_table(io.BytesIO(answer.content)).num_rows == 1
    answer = await admin.get("/admin/products/export", params={"format": "jsonl", "q": "nothing of the kind"})
    assert answer.content == b""
    assert (await admin.get("/admin/products/export?format=xlsx")).status_code == 400
    assert (await admin.get("/admin/products/export?store=nowhere")).status_code == 400


async def test_changes_are_exported_as_they_are_listed(admin: httpx.AsyncClient, desert: Planted, sql: Sql) -> None:
    every = "SELECT count(*) FROM product_changes"
    ((total,),) = sql(every)
    assert total > 2
    answer = await admin.get("/admin/changes/export?since=all")
    assert answer.text.partition("\n")[0] == CHANGE_HEADER
    assert len(rows_of(answer)) == total
    merged = await admin.get("/admin/changes/export?since=all&kind=merged")
    assert merged.text.partition("\n")[0] == MATCH_EVENT_HEADER
    drops = rows_of(await admin.get("/admin/changes/export?since=all&kind=price_drop"))
    price = "effective_price(price_rec_{0}, price_rec_special_{0}, price_med_{0}, price_med_special_{0})"
    before, after = price.format("before"), price.format("after")
    ((fell,),) = sql(f"{every} WHERE {after} < {before}")
    assert len(drops) == fell > 0
    for percent in ("5", "20", "50"):
        ((much,),) = sql(f"{every} WHERE {after} < {before} AND ({before} - {after}) / {before} >= {percent} / 100.0")
        answer = await admin.get(
            "/admin/changes/export", params={"since": "all", "kind": "price_drop", "percent": percent}
        )
        assert len(rows_of(answer)) == much


async def test_the_screen_of_changes(admin: httpx.AsyncClient, desert: Planted, sql: Sql) -> None:
    page = await admin.get("/admin/changes?since=all&kind=price_rise")
    assert "▲" in page.text
    assert "▼" not in page.text
    assert 'class="after better"' not in page.text, "a price that rises is not green"
    page = await admin.get("/admin/changes?since=all&kind=price_drop")
    assert 'class="after better"' in page.text
    assert f'href="/admin/alerts/new?product={desert.product}"' in page.text
    assert "<path d=" in page.text
    assert "No changes in this period" in (await admin.get("/admin/changes?state=TX")).text
    assert (await admin.get("/admin/changes?store=nowhere")).status_code == 422


async def test_new_and_gone_products(admin: httpx.AsyncClient, desert: Planted, sql: Sql) -> None:
    link = f'href="/admin/products/{desert.product}"'
    for kind in ("new", "gone"):
        assert link not in (await admin.get(f"/admin/changes?kind={kind}&since=all")).text
    sql("UPDATE catalog_products SET first_seen_at = now() - interval '1 day', changed_at = now() - interval '1 hour'")
    assert link in (await admin.get("/admin/changes?kind=new&since=7d")).text
    sql("UPDATE catalog_products SET last_seen_at = now() - interval '2 hours', present = false, state_seen_to = NULL")
    assert link in (await admin.get("/admin/changes?kind=gone&since=7d")).text
    (row,) = rows_of(await admin.get("/admin/changes/export?kind=gone&since=7d"))
    assert row["product_id"] == str(desert.product)


async def test_tasks_and_the_audit_log_are_exported(admin: httpx.AsyncClient, desert: Planted, sql: Sql) -> None:
    for role in ("payload_fetch", "product_discovery"):
        sql("INSERT INTO worker_tasks (role, dispensary_id) VALUES (%s, %s)", [role, desert.store])
    tasks = rows_of(await admin.get("/admin/tasks/export", params={"q": "role:product_discovery"}))
    assert [(row["role"], row["status"]) for row in tasks] == [("product_discovery", "pending")]
    assert (await admin.get("/admin/tasks/export", params={"q": "role:nothing"})).status_code == 400
    url = "https://dutchie.com/dispensary/another"
    await admin.post(f"/admin/stores/{desert.store}/edit", data={"menu_url": url}, headers=SAME)
    params = {"format": "jsonl", "action": "store_menu_url_set"}
    answer = await admin.get("/admin/audit/export", params=params)
    (entry,) = [json.loads(line) for line in answer.text.splitlines()]
    assert entry["subject_id"] == str(desert.store)


async def test_the_screen_offers_every_table(admin: httpx.AsyncClient, desert: Planted) -> None:
    page = (await admin.get("/admin/exports")).text
    for table in ExportTable:
        assert re.search(rf'/admin/exports/{table}\?[^"]*format=csv', page), table
        file = await admin.get(f"/admin/exports/{table}", params={"format": "csv"})
        assert file.status_code == 200
        assert file.text.partition("\n")[0].split(",") == [column.name for column in TABLES[table]]


async def test_a_day_is_exported(admin: httpx.AsyncClient, desert: Planted, sql: Sql) -> None:
    ((day, number),) = sql(
        "SELECT (changed_at AT TIME ZONE 'UTC')::date, count(*) FROM product_changes GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1"
    )
    page = await admin.get(f"/admin/exports?since={day}&until={day}")
    link = re.search(rf'href="(/admin/exports/changes\?[^"]*since={day}[^"]*)"', page.text)
    assert link is not None
    answer = await admin.get(link[1].replace("&amp;", "&"))
    assert f'filename="menuwatch-changes-{day}.csv"' in answer.headers["content-disposition"]
    rows = rows_of(answer)
    assert len(rows) == number
    assert {datetime.fromisoformat(row["changed_at"]).astimezone(UTC).date() for row in rows} == {day}
    wrong = await admin.get("/admin/exports?since=2026-11-20&until=2026-11-19")
    assert wrong.status_code == 422
    assert "before the first day" in wrong.text


async def test_a_state_is_one_that_is_known(admin: httpx.AsyncClient, desert: Planted, sql: Sql) -> None:
    for state in ("Ł", "A\r\nX: y", "nowhere"):
        answer = await admin.get("/admin/exports/changes", params={"state": state})
        assert (answer.status_code, "is not one of" in answer.text) == (400, True)
    sql("UPDATE dispensaries SET state = 'Łódź' WHERE id = %s", [desert.store])
    answer = await admin.get("/admin/exports/changes", params={"state": "Łódź", "since": "2026-01-01"})
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == 'attachment; filename="menuwatch-changes-d_2026-01-01.csv"'


async def test_an_audit_export_takes_the_permission_of_the_audit(viewer: httpx.AsyncClient, desert: Planted) -> None:
    assert (await viewer.get("/admin/audit/export")).status_code == 403
    assert (await viewer.get("/admin/exports/products")).status_code in (200, 403)


async def test_the_api_and_the_feed_take_the_size_of_a_change(desert: Planted, pool: Pool, sql: Sql) -> None:
    price = "effective_price(price_rec_{0}, price_rec_special_{0}, price_med_{0}, price_med_special_{0})"
    before, after = price.format("before"), price.format("after")
    ((much,),) = sql(f"SELECT count(*) FROM product_changes WHERE abs({after} - {before}) / {before} >= 0.2")
    where = ChangeFilter(percent=Decimal(20))
    async with pool.connection() as conn:
        listed = await changes.list_changes(conn, where, limit=500, patience=10)
        assert len(listed.items) == much > 0
        page = await changes.read_feed(conn, where, limit=500)
        assert {(one.product_id, one.changed_at) for one in page.items} <= {
            (one.product_id, one.changed_at) for one in listed.items
        }
