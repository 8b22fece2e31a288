"""Hosts in the browser: looked at, a budget set, and a pause that shows at once."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served, agree, axe, clipped, fits


def test_the_screens(look: Look, server: Served) -> None:
    look("/admin/hosts", "hosts")
    ((host,),) = server.sql("SELECT host FROM fetch_attempts GROUP BY host ORDER BY count(*) DESC LIMIT 1")
    look(f"/admin/hosts/{host}", "host")


def test_a_budget_is_set_and_a_host_paused_and_forgotten(page: Page, server: Served) -> None:
    server.sql(
        "INSERT INTO hosts (host, rate, burst, concurrency, min_gap, current_rate) VALUES ('own.example', 2, 4, 6, 0, 2)"
    )
    page.goto(f"{server.address}/admin/hosts")
    page.get_by_role("link", name="own.example", exact=True).click()
    page.get_by_label("Rate, requests per second").fill("0.25")
    page.get_by_role("button", name="Save limits").click()
    expect(page.get_by_role("status")).to_contain_text("they apply to all workers")
    assert server.sql("SELECT rate, burst FROM hosts WHERE host = 'own.example'") == [(0.25, 4)]
    page.get_by_label("Rate, requests per second").fill("often")
    page.get_by_role("button", name="Save limits").click()
    expect(page.locator(".wrong")).to_contain_text("a number from 0.000001 to 1,000,000, not 'often'")
    expect(page.get_by_label("Rate, requests per second")).to_have_value("often")

    page.goto(f"{server.address}/admin/hosts/own.example")
    page.get_by_role("link", name="Pause…").click()
    page.get_by_role("button", name="Pause host").click()
    expect(page.locator("h1 + .badge")).to_have_text("paused")
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(page.locator("h1 + .badge")).not_to_have_text("paused")
    page.get_by_role("button", name="Delete").click()
    agree(page)
    expect(page.get_by_role("status")).to_contain_text("own.example was deleted")
    assert server.sql("SELECT 1 FROM hosts WHERE host = 'own.example'") == []


def test_the_list_is_whole_at_1280_and_sorted(page: Page, server: Served) -> None:
    for n in range(9):
        server.sql(
            "INSERT INTO hosts (host, rate, burst, concurrency, min_gap, current_rate) VALUES (%s, 2, 4, 6, 0, 2)",
            [f"a-host-with-quite-a-long-name-{n}.menus.example:8443"],
        )
    try:
        page.set_viewport_size({"width": 1280, "height": 800})
        page.goto(f"{server.address}/admin/hosts")
        assert clipped(page) == []
        page.locator("th a.sort", has_text="Total").click()
        expect(page.locator("th", has_text="Total")).to_have_attribute("aria-sort", "descending")
        expect(page.locator("tbody tr").first).not_to_contain_text("a-host-with")
        page.get_by_text("Columns").click()
        page.get_by_label("In flight").uncheck()
        expect(page.locator("th", has_text="In flight")).to_be_hidden()
        page.get_by_label("In flight").check()
        for width in (390, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            assert (axe(page), fits(page)) == ([], True), width
    finally:
        server.sql("DELETE FROM hosts WHERE host LIKE 'a-host-with%%'")
        page.set_viewport_size({"width": 1280, "height": 800})


def test_a_host_has_charts_with_its_limit(page: Page, server: Served) -> None:
    ((host,),) = server.sql("SELECT host FROM fetch_attempts GROUP BY host ORDER BY count(*) DESC LIMIT 1")
    page.goto(f"{server.address}/admin/hosts/{host}")
    for name in ("requests", "rate"):
        expect(page.locator(f"#chart-{name} canvas")).to_be_visible()
    expect(page.locator("#chart-rate")).to_contain_text("Limit now")
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert axe(page) == [], width
    page.set_viewport_size({"width": 1280, "height": 800})
