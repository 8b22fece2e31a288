"""Products: the list with its filters, one with a price that moved, its chart and the table that says the same."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import history_data
from tests.browser.conftest import Look, Served
from tests.browser.history_data import Planted, Words


@pytest.fixture(scope="module")
def desert(server: Served) -> Iterator[Planted]:
    """A store of twenty days."""
    planted = history_data.plant(server.sql, Words(slug="chronicle-of-products"))
    yield planted
    history_data.clear(server.sql, planted)


def test_the_screens(look: Look, server: Served, desert: Planted) -> None:
    look("/admin/products", "products")
    look(f"/admin/products/{desert.product}", "product", wait_for=".chart canvas")
    look(f"/admin/stores/{desert.store}/menu", "menu")


def test_filters_narrow_and_counts_follow(page: Page, server: Served, desert: Planted) -> None:
    page.goto(f"{server.address}/admin/products")
    ((flower,),) = server.sql("SELECT count(*) FROM catalog_products WHERE category_canon = 'flower'")
    choice = page.get_by_label("Category")
    expect(choice.locator("option[value=flower]")).to_have_text(f"flower · {flower}")
    choice.select_option("flower")
    expect(page).to_have_url(re.compile("category=flower"))
    expect(page.locator(".head")).to_contain_text(f"{flower} products")
    page.get_by_label("Special").select_option("yes")
    ((special,),) = server.sql(
        "SELECT count(*) FROM catalog_products WHERE category_canon = 'flower' AND coalesce(price_rec_special < price_rec, false)"
    )
    expect(page.locator(".head")).to_contain_text(re.compile(rf"\b{special} product"))
    page.get_by_label("Price from").fill("9")
    page.get_by_label("Price to").fill("4")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("#w-max")).to_contain_text("less than 9")
    expect(page.get_by_label("Price from")).to_have_value("9")


def test_pages_follow_each_other_and_end(page: Page, server: Served, desert: Planted) -> None:
    page.goto(f"{server.address}/admin/products?sort=-price")
    ((all_of_them,),) = server.sql("SELECT count(*) FROM catalog_products")
    seen: list[str] = []
    while True:
        seen += page.locator("tbody a.row").evaluate_all("all => all.map(one => one.getAttribute('href'))")
        following = page.get_by_role("link", name="Next page")
        if not following.count():
            break
        first = page.locator("tbody a.row").first.get_attribute("href")
        following.click()
        expect(page.locator("tbody a.row").first).not_to_have_attribute("href", first or "")
    assert len(seen) == len(set(seen)) == all_of_them


def test_the_table_says_what_the_chart_shows(page: Page, server: Served, desert: Planted) -> None:
    page.goto(f"{server.address}/admin/products/{desert.product}")
    page.locator("#price-table summary").click()
    rows = page.locator("#price-table tbody tr")
    # Five states were planted, and one time in which nobody looked.
    expect(rows).to_have_count(6)
    prices = [
        " ".join(row.split())
        for row in rows.evaluate_all(
            "all => all.map(r => [...r.cells].slice(2).map(c => c.textContent.trim()).join(' '))"
        )
    ]
    assert prices == [
        "$42.00 $42.00 in stock",
        "$40.00 $32.00 in stock",
        "$45.00 $45.00 out of stock",
        "not observed",
        "$45.00 $36.00 in stock",
        "$45.00 $45.00 in stock",
    ]
    page.get_by_role("link", name="30 days").click()
    expect(page).to_have_url(re.compile("days=30"))
    expect(page.get_by_role("link", name="30 days")).to_have_attribute("aria-current", "true")
    expect(page.locator(".chart canvas").first).to_be_visible()
