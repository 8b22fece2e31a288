"""Stores: the list, one with weeks of history, adding, crawling now, and two who change one at once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, FloatRect, Locator, Page, expect

from tests.browser import history_data
from tests.browser.conftest import Look, Served, fits, shot
from tests.browser.history_data import Planted, Words
from tests.commands import menuwatch


@pytest.fixture(scope="module")
def desert(server: Served) -> Iterator[Planted]:
    """A store of twenty days."""
    planted = history_data.plant(server.sql, Words(slug="chronicle-of-stores"))
    yield planted
    history_data.clear(server.sql, planted)


def test_the_screens(look: Look, page: Page, server: Served, desert: Planted) -> None:
    look("/admin/stores", "stores")
    look("/admin/stores/new", "stores-new")
    look(f"/admin/stores/{desert.store}", "store")
    # Of 81 crawls, a quarter of a day apart, twelve never were: one stretch of three days, which is more than twice six hours.
    expect(page.locator(".strip .gap")).to_have_count(1)
    expect(page.locator(".strip .gap title")).to_have_text(re.compile("Not observed for 3 d"))
    expect(page.locator(".strip a")).to_have_count(60)
    expect(page.locator(".strip a[aria-label*=quarantined]")).to_have_count(1)
    page.goto(f"{server.address}/admin/stores/{desert.store}/menu?at=2001-01-01T00:00")
    expect(page.locator("main")).to_contain_text("No menu at that time")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/stores/{store}/remove", "store-remove"),
        ("/stores/{store}/merge?into=1", "store-merge"),
        ("/stores/{store}/edit", "store-edit"),
        ("/changes?since=all&kind=price_drop", "changes"),
        ("/changes?since=all&kind=gone", "changes-gone"),
        ("/exports", "exports"),
        ("/analytics/stores", "analytics-stores"),
        ("/analytics/price-per-gram", "analytics-prices"),
    ],
)
def test_the_screens_around_stores(look: Look, desert: Planted, path: str, name: str) -> None:
    look("/admin" + path.format(store=desert.store), name)


def test_reports_are_in_groups_of_one_row(page: Page, server: Served, desert: Planted) -> None:
    groups = page.get_by_role("navigation", name="Groups of reports")
    for width, rows in ((1440, 1), (390, 4)):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{server.address}/admin/analytics?state=AZ")
        for name in ("Market", "Prices", "Specials", "Brands", "Stock", "Coverage"):
            groups.get_by_role("link", name=name, exact=True).click()
            members = page.get_by_role("navigation", name=f"Reports: {name}")
            expect(members.locator("[aria-current=page]")).to_have_count(1)
            assert _rows(groups.get_by_role("link")) == 1
            assert _rows(members.get_by_role("link")) <= rows, name
            assert fits(page)
            shot(page, f"analytics-{name.lower()}-{width}")
        groups.get_by_role("link", name="Prices", exact=True).click()
        page.get_by_role("link", name="Shrinkflation").click()
        expect(page).to_have_url(f"{server.address}/admin/analytics/shrinkflation?state=AZ")
        expect(page.get_by_role("link", name="Shrinkflation")).to_be_in_viewport()


def test_reports_fit_at_1280_px(page: Page, server: Served, desert: Planted) -> None:
    environ = {**os.environ, "DATABASE_URL": server.database, "MENUWATCH_HOME": server.home, "LOG_LEVEL": "error"}
    menuwatch("analytics", "refresh", env=environ).check_returncode()
    page.set_viewport_size({"width": 1280, "height": 900})
    for report in ("coverage", "stores"):
        page.goto(f"{server.address}/admin/analytics/{report}")
        expect(page.get_by_role("columnheader", name="Never started")).to_be_in_viewport(ratio=1)


def test_tabs_and_tools_are_whole_on_a_phone(page: Page, server: Served, desert: Planted) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{server.address}/admin/changes")
    for tab in page.get_by_role("navigation", name="Kind of change").get_by_role("link").all():
        expect(tab).to_be_in_viewport(ratio=1)
    expect(page.locator("#live")).to_be_visible()
    logout = page.get_by_role("region", name="Tools").get_by_role("button", name="Log out")
    assert _middle(logout) == pytest.approx(_middle(page.locator("#theme")), abs=1), "in one row"


@pytest.mark.parametrize("query", ["", "?item=x&near=Santa+Fe,+NM&miles=far"])
def test_fields_of_the_basket_are_in_line(page: Page, server: Served, desert: Planted, query: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{server.address}/admin/analytics/cheapest-basket{query}")
    fields = [page.get_by_label(name, exact=True) for name in ("Items", "Near", "Miles")]
    tops = {round(_box(field)["y"]) for field in fields}
    assert len(tops) == 1
    middle = _middle(fields[1])
    assert abs(_middle(page.get_by_role("button", name="Find")) - middle) <= 1
    assert abs(_middle(page.get_by_label("Prices for patients")) - middle) <= 1


def _box(one: Locator) -> FloatRect:
    box = one.bounding_box()
    assert box is not None
    return box


def _middle(one: Locator) -> float:
    box = _box(one)
    return box["y"] + box["height"] / 2


def _rows(links: Locator) -> int:
    """In how many rows these links are."""
    boxes = [link.bounding_box() for link in links.all()]
    assert len(boxes) > 1
    return len({round(box["y"]) for box in boxes if box is not None})


def test_filters_are_in_the_address(page: Page, server: Served, desert: Planted) -> None:
    page.goto(f"{server.address}/admin/stores")
    page.get_by_label("Name, city or slug").fill("tucson")
    page.get_by_role("button", name="Filter").click()
    expect(page).to_have_url(re.compile(r"/stores\?q=tucson$"))
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("Crawling").select_option("off")
    expect(page.locator(".empty")).to_contain_text("No matching stores")
    expect(page).to_have_url(re.compile(r"q=tucson&crawl=off"))
    page.get_by_role("link", name="Show all stores").click()
    expect(page.locator("tbody tr").nth(3)).to_be_visible()


def test_crawl_now(page: Page, server: Served, desert: Planted) -> None:
    page.goto(f"{server.address}/admin/stores/{desert.store}")
    page.get_by_role("button", name="Crawl now").click()
    expect(page.get_by_role("status")).to_contain_text("Crawl queued ahead of other tasks")
    found = server.sql(
        "SELECT role, priority FROM worker_tasks WHERE dispensary_id = %s AND status = 'pending'", [desert.store]
    )
    assert found == [("payload_fetch", 20)]
    page.get_by_role("button", name="Crawl now").click()
    expect(page.get_by_role("status")).to_contain_text("was already queued")


def test_a_store_is_added_by_its_address(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/stores")
    page.get_by_role("link", name="Add stores").click()
    page.get_by_label("Menu URLs").fill("https://example.org/menu")
    page.get_by_role("button", name="Add stores").click()
    expect(page.locator("#h-menu_url")).to_contain_text("is not a menu URL of a known platform")
    expect(page.get_by_label("Menu URLs")).to_have_value("https://example.org/menu")
    page.get_by_label("Menu URLs").fill("https://dutchie.com/dispensary/added-here")
    page.get_by_role("button", name="Add stores").click()
    expect(page.get_by_role("status")).to_contain_text("Store added")
    ((store, role),) = server.sql(
        "SELECT d.id, t.role FROM dispensaries d JOIN worker_tasks t ON t.dispensary_id = d.id WHERE d.slug = 'added-here'"
    )
    assert role == "entry_point_discovery"
    expect(page).to_have_url(f"{server.address}/admin/stores/{store}")
    server.sql("DELETE FROM task_live WHERE dispensary_id = %s", [store])
    server.sql("DELETE FROM dispensaries WHERE id = %s", [store])


def test_two_who_change_one_at_once(page: Page, context: BrowserContext, server: Served, desert: Planted) -> None:
    address = f"{server.address}/admin/stores/{desert.store}"
    page.goto(address)
    # Whoever is typing is not disturbed by what is new, so this page does not learn what the other one saves.
    page.get_by_label("Crawl interval (hours)").fill("8")
    other = context.new_page()
    other.goto(address)
    other.get_by_label("Crawl interval (hours)").fill("12")
    other.get_by_role("button", name="Save").click()
    expect(other.get_by_role("status")).to_contain_text("every 12 h")
    with page.expect_response(lambda answer: answer.request.method == "POST") as answered:
        page.get_by_role("button", name="Save").click()
    assert answered.value.status == 412
    shown = page.get_by_role("alert")
    expect(shown.get_by_role("row", name="Crawled every")).to_have_text(re.compile(r"Crawled every\s*12 h\s*8 h"))
    expect(page.get_by_label("Crawl interval (hours)")).to_have_value("8")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("every 8 h")
    page.get_by_label("Crawling enabled").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("no longer contacted")
    assert server.sql(
        "SELECT crawl_enabled, crawl_interval_hours::int FROM dispensaries WHERE id = %s", [desert.store]
    ) == [(False, 8)]
    expect(page.get_by_role("button", name="Crawl now")).to_have_count(0)
    server.sql("UPDATE dispensaries SET crawl_enabled = true, crawl_interval_hours = 6 WHERE id = %s", [desert.store])
