"""The screens of the catalogue without a browser: roles, addresses of nothing, wrong filters, and what can be asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from menuwatch.analytics.refresh import refresh
from menuwatch.analytics.service import Report
from menuwatch.dashboard.navigation import SCREENS
from menuwatch.db.pool import Pool
from tests.browser import history_data
from tests.browser.history_data import Planted

SAME = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def desert(sql: Callable[..., list[tuple[Any, ...]]], pool: Pool) -> Planted:
    """A store of twenty days."""
    return history_data.plant(sql)


def words(answer: httpx.Response) -> str:
    """A page's text, as it is read."""
    return " ".join(re.sub(r"<[^>]+>", " ", answer.text).split())


async def test_lists_of_nothing_say_what_comes_next(admin: httpx.AsyncClient) -> None:
    for path in ("/stores", "/products", "/payloads", "/images"):
        answer = await admin.get(f"/admin{path}")
        assert answer.status_code == 200
        assert re.search(r'class="empty"', answer.text), path


async def test_what_does_not_exist_is_a_404(admin: httpx.AsyncClient) -> None:
    for path in (
        "stores/77",
        "stores/77/menu",
        "products/77",
        "payloads/77",
        "payloads/77/data",
        "payloads/77/diff",
        "payloads/77/replay",
    ):
        answer = await admin.get(f"/admin/{path}")
        assert answer.status_code == 404, path
        assert "77 does not exist" in words(answer), path
    for path in ("stores/0", "products/9223372036854775808", "payloads/-1", "stores/x"):
        assert (await admin.get(f"/admin/{path}")).status_code == 404, path


WRONG = {
    "/products?min=cheap": "enter an amount such as 25 or 12.50",
    "/products?min=NaN": "enter an amount such as 25 or 12.50",
    "/products?min=9&max=3": "less than 9",
    "/products?store=nowhere": "does not exist: enter its name",
    "/products?stock=some": "is not one of in_stock, oos, unknown",
    "/products?sort=id": "is not one of name, price, -price, updated",
    "/stores?freshness=rotten": "is not one of fresh, late",
    "/payloads?status=lost": "is not one of ok, partial, quarantined, rejected",
    "/payloads?store=nowhere": "does not exist: enter its name",
}


async def test_a_wrong_filter_is_said_and_kept(admin: httpx.AsyncClient, desert: Planted) -> None:
    for address, said in WRONG.items():
        answer = await admin.get(f"/admin{address}")
        assert answer.status_code == 422, address
        assert said in words(answer), address
        typed = address.split("=")[-1]
        assert f'value="{typed}"' in answer.text or f"&#39;{typed}&#39;" in answer.text, address


async def test_an_unknown_filter_of_the_changes_is_said_and_not_ignored(
    admin: httpx.AsyncClient, desert: Planted
) -> None:
    refused = await admin.get("/admin/changes?days=30")
    assert refused.status_code == 400
    assert (
        "unknown parameter &#39;days&#39;; use one of: brand, canonical_product, category, kind, percent, since, state, store"
        in refused.text
    )
    assert (await admin.get("/admin/changes?since=30d&rows=100&cursor=")).status_code == 200


UNKNOWN = {
    "/analytics/coverage?brnd=x": "&#39;brnd&#39;; use one of: brand, canonical_product, category, format, from, state, to",
    "/analytics/cheapest-basket?items=1": "&#39;items&#39;; use one of: format, item, medical, miles, near",
    "/products?price_min=3": "&#39;price_min&#39;; use one of: brand, canonical_product, category, max, min, on, q, special",
    "/products/export?format=csv&colour=red": "&#39;colour&#39;; use one of: brand",
    "/exports?colour=red": "&#39;colour&#39;; use one of: since, state, store, until",
    "/audit/export?format=csv&user=1": "&#39;user&#39;; use one of: action, actor, format, id, kind, since, until",
    "/tasks?<b>=1": "&#39;&lt;b&gt;&#39;; use one of: ",
    "/schedules?q=1": "&#39;q&#39;; this screen has no parameters",
    "/products?from=2026-11-01": "&#39;from&#39;; use one of: brand",
}


async def test_unknown_parameters_of_screens_are_named(admin: httpx.AsyncClient) -> None:
    for address, said in UNKNOWN.items():
        refused = await admin.get(f"/admin{address}")
        assert refused.status_code == 400, address
        assert f"unknown parameter {said}" in refused.text, address


async def test_an_unknown_parameter_is_named_after_the_login_only(admin: httpx.AsyncClient) -> None:
    answer = await admin.get("/admin/schedules?colour=red", headers={"Authorization": ""})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/admin/login?next=%2Fadmin%2Fschedules%3Fcolour%3Dred"


async def test_changes_are_listed_since_an_age_a_day_or_a_time(admin: httpx.AsyncClient, desert: Planted) -> None:
    """The plant's changes are within its twenty days."""
    for since in ("all", "90d", "13w", "2000-01-01", "2000-01-01T00:00:00Z"):
        page = await admin.get("/admin/changes", params={"since": since})
        assert "No changes in this period" not in page.text, since
        assert f'<option value="{since}" selected>' in page.text, since
    future = await admin.get("/admin/changes?since=2999-01-01")
    assert future.status_code == 422
    assert "Period: &#39;2999-01-01&#39; is in the future: give a time no later than now" in words(future)
    for since in ("foo", "7", "0000-01-01", "999999w"):
        page = await admin.get("/admin/changes", params={"since": since})
        assert page.status_code == 422, since
        assert f"Period: &#39;{since}&#39; is not a time: give a date (2026-11-20)" in words(page), since


INVALID = {
    "coverage?state=Texas": "State: unknown state &#39;Texas&#39;: use two letters such as AZ or ON; did you mean TX?</p>",
    "by-day?from=yesterday": "From: &#39;yesterday&#39; is not a date: use the form 2026-11-21",
    "by-day?from=20261103": "From: &#39;20261103&#39; is not a date: use the form 2026-11-21",
    "by-day?from=2026-11-03&to=2026-11-01": "To: 2026-11-01 is before the first day, 2026-11-03",
    "discounts?category=weed": "Category: &#39;weed&#39; is not one of accessory",
    "stores?brand=x": "Brand: this report cannot be filtered by it",
    "distribution?canonical_product=x": "Canonical product ID: must be a whole number from 1 to",
    "?state=XX": "State: unknown state &#39;XX&#39;",
    "price-index?days=7": "Time: &#39;7&#39; is not one of 30, 90, 365",
    "price-index?category=weed": "Category: &#39;weed&#39; is not one of accessory",
    "lowest-prices?state=unknown": "State: this list leaves out stores without a known state; choose a state",
    "lowest-prices?canonical_product=0": "Canonical product ID: 0 is too small",
    "cheapest-basket?item=flower&near=x&miles=0": "Miles: enter a distance up to 500 miles",
    "cheapest-basket?item=flower&near=35,-106&medical=on": "Prices for patients: &#39;on&#39; is not one of true, false",
}


async def test_an_invalid_filter_of_a_report_is_an_error_that_names_it(
    viewer: httpx.AsyncClient, desert: Planted, pool: Pool
) -> None:
    await refresh(pool)
    for address, said in INVALID.items():
        page = await viewer.get(f"/admin/analytics{'' if address.startswith('?') else '/'}{address}")
        assert page.status_code == 422, address
        (notice,) = re.findall(r'<div class="notice bad faults" role="alert">(.*?)</div>', page.text, re.DOTALL)
        assert said in re.sub("</?strong>", "", notice), address
        assert "<tbody>" not in page.text, address
        if not address.startswith(("?", "price-index")):
            file = await viewer.get(f"/admin/analytics/{address}&format=csv")
            assert file.status_code == 400, address
            assert file.headers["content-type"].startswith("text/html"), address


async def test_tabs_keep_the_state_where_the_report_has_it(
    viewer: httpx.AsyncClient, desert: Planted, pool: Pool
) -> None:
    await refresh(pool)
    page = (await viewer.get("/admin/analytics/price-per-gram?state=unknown")).text
    links = {unescape(one) for one in re.findall(r'href="(/admin/analytics/[^"]*)"', page)}
    assert {"/admin/analytics/lowest-prices", "/admin/analytics/price-dispersion?state=unknown"} <= links
    for link in links:
        assert (await viewer.get(link)).status_code == 200, link


async def test_a_state_without_stores_is_no_error(viewer: httpx.AsyncClient, desert: Planted, pool: Pool) -> None:
    await refresh(pool)
    page = await viewer.get("/admin/analytics/discounts?state=tx")
    assert page.status_code == 200
    assert '<option value="TX" selected>TX</option>' in page.text
    assert "is not an option" not in page.text
    assert "No known stores: Texas." in words(page)


async def test_every_screen_that_asks_for_a_store_takes_its_name(
    admin: httpx.AsyncClient, desert: Planted, sql: Callable[..., list[tuple[Any, ...]]]
) -> None:
    sql("UPDATE dispensaries SET name = 'Green Lantern Midtown' WHERE id = %s", [desert.store])
    listed = await admin.get("/admin/products", params={"store": "green lantern midtown"})
    assert f"/admin/products/{desert.product}" in listed.text
    listed = await admin.get("/admin/payloads", params={"store": "Green Lantern Midtown"})
    assert f"/admin/payloads/{desert.quarantined}" in listed.text
    answer = await admin.get("/admin/jump", params={"q": "Green Lantern Midtown"})
    assert answer.headers["location"] == f"/admin/stores/{desert.store}"
    answer = await admin.get("/admin/tasks", params={"q": 'store:"Green Lantern Midtown"'})
    assert "does not exist" not in answer.text
    rule = {"name": "drop", "condition": "price_below", "amount": "5", "store": "Green Lantern Midtown"}
    assert (await admin.post("/admin/alerts/new", data=rule, headers=SAME)).status_code == 303
    assert sql("SELECT dispensary_id FROM alert_rules") == [(desert.store,)]
    preview = {"role": "payload_fetch", "scope": "store", "store": "Green Lantern Midtown"}
    answer = await admin.get("/admin/job-queue/enqueue", params=preview)
    assert answer.status_code == 200
    assert "does not exist" not in answer.text


async def test_a_moment_that_is_none_is_said(admin: httpx.AsyncClient, desert: Planted) -> None:
    for at, said in (
        ("soon", "enter a time such as 2026-11-21T18:00"),
        ("2099-01-01T00:00", "the time is in the future"),
        ("2999-01-01T00:00", "the year must be from 2000 to 2100"),
    ):
        answer = await admin.get(f"/admin/stores/{desert.store}/menu?at={at}")
        assert answer.status_code == 422
        assert said in words(answer)


async def test_a_cursor_that_is_none_begins_anew(admin: httpx.AsyncClient, desert: Planted) -> None:
    for path in ("/stores", "/products", "/payloads", "/images"):
        for cursor in ("nonsense", "WzEsMl0", "%00"):
            assert (await admin.get(f"/admin{path}?cursor={cursor}")).status_code == 200


async def test_nul_in_a_search_finds_nothing_and_harms_nothing(admin: httpx.AsyncClient, desert: Planted) -> None:
    for path in ("/stores?q=%00a", "/products?q=%00a", "/products?brand=%00", "/payloads?store=1%00"):
        assert (await admin.get(f"/admin{path}")).status_code in (200, 422)


async def test_a_viewer_sees_no_button_and_may_press_none(
    viewer: httpx.AsyncClient, desert: Planted, sql: Callable[..., list[tuple[Any, ...]]]
) -> None:
    for path in (
        "/stores",
        f"/stores/{desert.store}",
        f"/products/{desert.product}",
        f"/payloads/{desert.quarantined}",
        "/images",
    ):
        answer = await viewer.get(f"/admin{path}")
        assert answer.status_code == 200
        main = answer.text[answer.text.index('id="main"') :]
        assert 'method="post"' not in main, path
        assert "/replay" not in main, path
        assert "/stores/new" not in main, path
    for path in (
        "/stores/new", "/stores/discover", f"/stores/{desert.store}", f"/stores/{desert.store}/crawl",
        f"/payloads/{desert.quarantined}/replay", f"/payloads/{desert.quarantined}/release", "/images/retry",
    ):  # fmt: skip
        assert (await viewer.post(f"/admin{path}", headers=SAME)).status_code == 403, path
    assert (await viewer.get(f"/admin/payloads/{desert.quarantined}/replay")).status_code == 403
    assert sql("SELECT count(*) FROM task_live") == [(0,)]


async def test_discovery_is_asked_for(admin: httpx.AsyncClient, sql: Callable[..., list[tuple[Any, ...]]]) -> None:
    answer = await admin.post(
        "/admin/stores/discover", data={"platform": "dutchie", "state_code": "Atlantis", "city": ""}, headers=SAME
    )
    assert answer.status_code == 422
    assert "unknown state" in words(answer)
    assert 'value="Atlantis"' in answer.text
    answer = await admin.post(
        "/admin/stores/discover", data={"platform": "dutchie", "state_code": "az", "city": "Mesa"}, headers=SAME
    )
    assert answer.status_code == 303
    assert sql("SELECT role, payload FROM worker_tasks") == [("store_discovery", {"state": "AZ", "city": "Mesa"})]


async def test_an_interval_that_cannot_be_is_said(
    admin: httpx.AsyncClient, desert: Planted, sql: Callable[..., list[tuple[Any, ...]]]
) -> None:
    for hours in ("", "often", "0", "-4", "NaN", "1000", "1e9", "1e999999999"):
        form = {"enabled": "on", "interval_hours": hours, "version": "on:6"}
        answer = await admin.post(f"/admin/stores/{desert.store}", data=form, headers=SAME)
        assert answer.status_code == 422, hours
        assert 'aria-invalid="true"' in answer.text, hours
    assert sql("SELECT crawl_interval_hours::int FROM dispensaries WHERE id = %s", [desert.store]) == [(6,)]


async def test_every_change_of_a_store_is_in_the_audit(
    admin: httpx.AsyncClient, desert: Planted, sql: Callable[..., list[tuple[Any, ...]]]
) -> None:
    form = {"interval_hours": "2.5", "version": "on:6"}
    answer = await admin.post(f"/admin/stores/{desert.store}", data=form, headers=SAME)
    assert answer.status_code == 303
    assert sql("SELECT crawl_enabled, crawl_interval_hours::float FROM dispensaries WHERE id = %s", [desert.store]) == [
        (False, 2.5)
    ]
    assert [row[0] for row in sql("SELECT action FROM audit_log ORDER BY id")] == [
        "store_disabled",
        "store_interval_set",
    ]
    stale = await admin.post(
        f"/admin/stores/{desert.store}", data={"interval_hours": "3", "version": "on:6"}, headers=SAME
    )
    assert stale.status_code == 412
    assert "Crawling enabled no no Crawled every 2 h 30 min 3 h" in words(stale)


async def test_a_payload_without_its_file_is_shown_and_says_so(admin: httpx.AsyncClient, desert: Planted) -> None:
    assert (await admin.get(f"/admin/payloads/{desert.payload}")).status_code == 200
    told = await admin.get(f"/admin/payloads/{desert.payload}/data")
    assert (told.status_code, "menuwatch verify --repair" in words(told)) == (500, True)
    tried = await admin.get(f"/admin/payloads/{desert.quarantined}/replay")
    assert tried.status_code == 200
    assert (await admin.get(f"/admin/payloads/{desert.payload}/diff")).status_code == 500


async def test_equal_answers_are_marked(admin: httpx.AsyncClient, desert: Planted) -> None:
    # Of the planted answers each two that follow each other have the same hash.
    answer = await admin.get(f"/admin/payloads?store={desert.store}")
    assert answer.text.count(">identical<") in (24, 25)
    assert answer.text.count(">quarantined<") >= 1


async def test_pages_of_payloads_reach_the_end(admin: httpx.AsyncClient, desert: Planted) -> None:
    seen: list[str] = []
    address = f"/admin/payloads?store={desert.store}"
    while address:
        answer = await admin.get(address)
        seen += re.findall(r'class="row" href="/admin/payloads/(\d+)"', answer.text)
        following = re.search(r'rel="next" href="([^"]+)"', answer.text)
        address = following.group(1).replace("&amp;", "&") if following else ""
    assert len(seen) == len(set(seen)) == 69


async def test_contents_are_in_units_that_people_write(
    admin: httpx.AsyncClient, desert: Planted, sql: Callable[..., list[tuple[Any, ...]]]
) -> None:
    rows = [("A", "PERCENTAGE"), ("B", "MILLIGRAMS"), ("C", "MILLIGRAMS_PER_GRAM"), ("D", "MILLIGRAMS_PER_ML")]
    found = json.dumps([{"name": name, "value": 1.47, "unit": unit} for name, unit in rows])
    ((product,),) = sql(
        "UPDATE catalog_products SET cannabinoids = %s WHERE id = (SELECT min(id) FROM catalog_products) RETURNING id",
        [found],
    )
    assert "A 1.47 % B 1.47 mg C 1.47 mg/g D 1.47 mg/ml" in words(await admin.get(f"/admin/products/{product}"))


async def test_a_product_shows_its_kiosk_and_its_brand(
    admin: httpx.AsyncClient, sql: Callable[..., list[tuple[Any, ...]]], desert: Planted
) -> None:
    ((number,),) = sql("SELECT id FROM catalog_products ORDER BY id LIMIT 1")
    sql(
        """UPDATE catalog_products SET variants = '[{"option": "1g", "price_rec": 10, "quantity": 8, "stock_status": "in_stock"}]',
                  extra = '{"brand_description": "<b>Grown</b> here.", "kiosk_quantity": {"1g": 11}}' WHERE id = %s""",
        [number],
    )
    answer = await admin.get(f"/admin/products/{number}")
    assert "8 left 11 in the kiosk" in words(answer)
    assert "About the brand &lt;b&gt;Grown&lt;/b&gt; here." in words(answer)


async def test_analytics_shows_brands_and_categories_of_a_state(
    viewer: httpx.AsyncClient, sql: Callable[..., list[tuple[Any, ...]]], pool: Pool
) -> None:
    assert "No categories" in words(await viewer.get("/admin/analytics"))
    sql(
        "INSERT INTO dispensaries (platform_dispensary_id, slug, name, state, last_crawled_at, first_crawled_at)"
        " SELECT s, s, s, s, now(), now() FROM unnest(ARRAY['AZ', 'NM']) s"
    )
    sql("INSERT INTO dispensaries (platform_dispensary_id, slug, name, state) VALUES ('NV', 'NV', 'NV', 'NV')")
    sql(
        "WITH y AS (INSERT INTO raw_crawl_payloads (dispensary_id, platform, status, is_partial, fetched_at, path, bytes, raw_bytes,"
        " sha256, content_sha256) SELECT id, 'dutchie', 'ok', state = 'AZ', now(), state, 1, 1, '', '' FROM dispensaries"
        " WHERE state <> 'NV' RETURNING id, dispensary_id)"
        " UPDATE dispensaries d SET last_payload_id = y.id FROM y WHERE y.dispensary_id = d.id"
    )
    sql(
        "INSERT INTO catalog_products (dispensary_id, provider, provider_product_id, content_hash, first_seen_at, state_from,"
        " changed_at, name_raw, name, brand_name, category_canon, stock_status, is_in_stock, variants, extra)"
        " SELECT d.id, 'dutchie', n, '', now(), now(), now(), 'P', 'P', b, c, 'in_stock', true, '[]', '{}'"
        " FROM (VALUES ('AZ', '1', 'Acme', 'flower'), ('AZ', '2', 'Acme', 'flower'), ('AZ', '3', NULL, 'edible'),"
        " ('AZ', '4', '<b>', 'flower'), ('NM', '5', 'Acme', NULL)) v(s, n, b, c) JOIN dispensaries d ON d.state = v.s"
    )
    await refresh(pool)
    everywhere = words(await viewer.get("/admin/analytics"))
    assert "Based on 2 of 3 known stores; 1 of 2 menus is partial" in everywhere
    assert "flower 3 3 60.0 % 50.0 % 1 of 3" in everywhere
    assert "unknown 1 1 20.0 % 50.0 %" in everywhere
    assert "Acme 3 3 60.0 % 100.0 % 2 of 3" in everywhere
    arizona = words(await viewer.get("/admin/analytics?state=AZ"))
    assert "Based on 1 of 1 known store; 1 of 1 menu is partial" in arizona
    new_mexico = words(await viewer.get("/admin/analytics?state=NM"))
    assert "Based on 1 of 1 known store." in new_mexico
    assert "partial" not in new_mexico
    assert "Based on" not in words(await viewer.get("/admin/analytics?state=NV")), "no menu is known"
    assert "flower 3 3 75.0 % 100.0 % 1 of 1" in arizona
    assert "Acme 2 2 50.0 % 100.0 %" in arizona
    assert "without a brand 1 1 25.0 %" in arizona
    assert "&lt;b&gt; 1 1 25.0 %" in arizona
    assert "unknown state &#39;Q&#39;: use two letters" in words(await viewer.get("/admin/analytics?state=Q"))


REPORT_GROUPS = {
    "Market": {"": "Categories and brands", "by-day": "By day", "new-and-gone": "New and gone"},
    "Prices": {
        "price-per-gram": "Price per gram", "price-index": "Price index", "lowest-prices": "Lowest prices",
        "cheapest-basket": "Cheapest basket", "cheapest-quarter": "Cheapest quarter", "price-dispersion": "Price dispersion",
        "widest-gaps": "Widest gaps", "shrinkflation": "Shrinkflation",
    },
    "Specials": {"discounts": "Discounts", "specials": "Specials", "specials/groups": "Specials by store"},
    "Brands": {"distribution": "Distribution", "distribution/brands": "Brands by location", "by-day/brands": "Brands by day"},
    "Stock": {"out-of-stock": "Out of stock", "out-of-stock/products": "Out longest"},
    "Coverage": {"coverage": "Coverage", "stores": "Freshness"},
}  # fmt: skip


def _links(page: str, label: str) -> list[tuple[str, str | None, str]]:
    """Address, `aria-current` and text of each link of a navigation."""
    (nav,) = re.findall(rf'<nav class="tabs [a-z]+" aria-label="{label}">(.*?)</nav>', page, re.DOTALL)
    found = re.findall(r'<a href="([^"]+)"(?: aria-current="([a-z]+)")?>([^<]+)</a>', nav)
    return [(address, current or None, text) for address, current, text in found]


async def test_reports_of_analytics_are_found_by_group(viewer: httpx.AsyncClient) -> None:
    for group, reports in REPORT_GROUPS.items():
        for path in reports:
            page = (await viewer.get(f"/admin/analytics{path and f'/{path}'}")).text
            assert _links(page, "Groups of reports") == [
                (f"/admin/analytics{first and f'/{first}'}", "true" if name == group else None, name)
                for name, (first, *_) in REPORT_GROUPS.items()
            ], path
            assert _links(page, f"Reports: {group}") == [
                (f"/admin/analytics{one and f'/{one}'}", "page" if one == path else None, text)
                for one, text in reports.items()
            ], path
    page = (await viewer.get("/admin/analytics/discounts?state=AZ")).text
    assert _links(page, "Groups of reports")[1][0] == "/admin/analytics/price-per-gram?state=AZ", "links keep the state"
    assert _links(page, "Reports: Specials")[1][0] == "/admin/analytics/specials?state=AZ"


def test_every_report_is_in_one_group() -> None:
    of_api = {str(report) for report in Report} - {Report.BRANDS, Report.CATEGORIES}
    grouped = [path for reports in REPORT_GROUPS.values() for path in reports]
    assert sorted(grouped) == sorted({*of_api, "", "price-index", "lowest-prices", "cheapest-basket"})


def _cells(page: str, label: str) -> set[str]:
    """What a report's table has below that head."""
    found = re.findall(rf'<td data-label="{label}"[^>]*>(.*?)</td>', page, re.DOTALL)
    return {" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in found}


async def test_reports_say_what_they_are_based_on(
    viewer: httpx.AsyncClient, desert: Planted, pool: Pool, sql: Callable[..., list[tuple[Any, ...]]]
) -> None:
    """Two stores are known in the state. Of one there is a menu, of which only a part was recorded."""
    sql(
        "INSERT INTO dispensaries (platform_dispensary_id, slug, name, state)"
        " SELECT 'x', 'x', 'x', state FROM dispensaries WHERE id = %s",
        [desert.store],
    )
    sql("UPDATE raw_crawl_payloads SET is_partial = true WHERE id = %s", [desert.payload])
    sql("UPDATE dispensaries SET last_payload_id = %s WHERE id = %s", [desert.payload, desert.store])
    await refresh(pool)
    for report in ("price-per-gram", "discounts", "out-of-stock"):
        for query in ("", "?state=AZ"):
            page = (await viewer.get(f"/admin/analytics/{report}{query}")).text
            assert _cells(page, "Stores") == {"1 of 2 1 partial"}, (report, query)
            assert _cells(page, "Success"), (report, query)
            assert "Based on 1 of 2 known stores;" in page, (report, query)
            assert " % of the scheduled crawls succeeded." in page, (report, query)
    days = (await viewer.get("/admin/analytics/new-and-gone?state=AZ")).text
    assert _cells(days, "Stores") == {"1 of 2", "1 of 2 1 partial"}, "only on the day of that menu"
    assert _cells((await viewer.get("/admin/analytics/out-of-stock/products")).text, "Partial") == {"yes"}
    assert _cells((await viewer.get("/admin/analytics/stores")).text, "Partial") == {"yes", "no"}
    assert _cells((await viewer.get("/admin/analytics/coverage")).text, "Partial") == {"1"}


async def test_coverage_is_filtered_by_state_and_has_ages_in_hours_and_minutes(
    viewer: httpx.AsyncClient, desert: Planted, pool: Pool, sql: Callable[..., list[tuple[Any, ...]]]
) -> None:
    """The one store with a menu was crawled 2 h 36 min ago; the other state has a store that was never crawled."""
    sql("INSERT INTO dispensaries (platform_dispensary_id, slug, name, state) VALUES ('x', 'x', 'x', 'TX')")
    sql("UPDATE dispensaries SET last_crawled_at = now() - interval '2 hours 36 minutes' WHERE id = %s", [desert.store])
    await refresh(pool)
    page = (await viewer.get("/admin/analytics/coverage?state=AZ")).text
    assert '<option value="AZ" selected>' in page
    assert (_cells(page, "State"), _cells(page, "Median age")) == ({"AZ"}, {"2 h 36 min"})
    assert _cells((await viewer.get("/admin/analytics/coverage?state=TX")).text, "Median age") == {"–"}
    assert _cells((await viewer.get("/admin/analytics/coverage")).text, "State") == {"all states", "AZ", "TX"}


async def test_every_report_of_analytics_has_a_screen(
    viewer: httpx.AsyncClient, desert: Planted, pool: Pool, sql: Callable[..., list[tuple[Any, ...]]]
) -> None:
    reports = [
        "price-per-gram", "discounts", "out-of-stock", "out-of-stock/products", "new-and-gone", "stores", "coverage",
    ]  # fmt: skip
    for report in reports:
        assert "No rows" in words(await viewer.get(f"/admin/analytics/{report}")), report
    await refresh(pool)
    sql("UPDATE dispensaries SET name = 'Renamed <b>' WHERE id = %s", [desert.store])
    for report in reports:
        for query in ("", "?state=AZ", "?state=TX", "?cursor=WzEsMl0"):
            assert (await viewer.get(f"/admin/analytics/{report}{query}")).status_code == 200, (report, query)
    page = await viewer.get("/admin/analytics/stores?state=AZ")
    assert f'href="/admin/stores/{desert.store}"' in page.text
    assert "AZ 1 1" in words(await viewer.get("/admin/analytics/coverage"))
    assert (
        f'href="/admin/products/{desert.product}"' in (await viewer.get("/admin/analytics/out-of-stock/products")).text
    )
    assert (await viewer.get("/admin/analytics/nothing")).status_code == 404


def _addresses(page: str) -> set[str]:
    """Links with parameters on a page, and its GET forms with all their fields."""
    found = {unescape(one) for one in re.findall(r'href="(/admin/[^"]*\?[^"]+)"', page)}
    for attributes, body in re.findall(r"<form ([^>]*)>(.*?)</form>", page, re.DOTALL):
        action = re.search(r'action="(/admin[^"?]*)"', attributes)
        if 'method="get"' in attributes and action:
            names = re.findall(r'<(?:input|select|textarea)[^>]* name="([^"]+)"', body)
            found.add(f"{action[1]}?{'&'.join(f'{name}=' for name in dict.fromkeys(names))}")
    return found


async def test_links_and_forms_of_screens_have_parameters_that_their_screens_know(
    admin: httpx.AsyncClient, desert: Planted, pool: Pool
) -> None:
    await refresh(pool)
    paths = {f"/admin{screen.path}" for screen in SCREENS}
    paths |= {f"/admin/analytics/{path}" for reports in REPORT_GROUPS.values() for path in reports if path}
    tried: set[tuple[str, frozenset[str]]] = set()
    for path in sorted(paths):
        for address in sorted(_addresses((await admin.get(path)).text)):
            parts = urlsplit(address)
            given = parts.path, frozenset(name for name, _ in parse_qsl(parts.query, keep_blank_values=True))
            if given not in tried:
                tried.add(given)
                answer = await admin.get(address)
                # Other refusals are right: a form may lack what a person chooses, and the planted payloads have no files.
                assert "unknown parameter" not in answer.text, (path, address)
                assert answer.status_code not in (404, 405), (path, address)
    assert len(tried) > 100
