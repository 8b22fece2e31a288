"""Proxies in the browser: looked at, tested through a real proxy, and a list that is brought in."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served, agree, axe, clipped, fits, shot


def test_the_screens(look: Look, server: Served) -> None:
    look("/admin/proxies", "proxies")
    ((proxy_id,),) = server.sql("SELECT min(id) FROM proxies WHERE is_active")
    look(f"/admin/proxies/{proxy_id}", "proxy")
    look("/admin/proxies/add", "proxy-add")
    look("/admin/proxies/bulk?act=disable&all=1", "proxies-bulk")


def test_one_is_tested_through_the_real_thing(page: Page, server: Served) -> None:
    ((proxy_id, before),) = server.sql("SELECT id, success_count FROM proxies WHERE is_active ORDER BY id LIMIT 1")
    page.goto(f"{server.address}/admin/proxies/{proxy_id}")
    page.get_by_role("button", name="Test now").click()
    expect(page.get_by_role("status")).to_contain_text(
        re.compile(rf"Proxy {proxy_id} works\. It reached \S+: HTTP \d+ \([\d.]+ m?s\)\."), timeout=20_000
    )
    expect(page.locator(".notice.good")).to_be_visible()
    assert server.sql("SELECT success_count FROM proxies WHERE id = %s", [proxy_id]) == [(before,)], (
        "a test counts nothing"
    )


def test_a_list_is_looked_at_brought_in_and_removed(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/proxies")
    page.get_by_role("link", name="Import a list").click()
    page.get_by_label("Proxies").fill("198.51.100.77:80:u:planted-secret\nnot a proxy\nsocks5://198.51.100.78:1080")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("http://u@198.51.100.77:80")).to_be_visible()
    expect(page.locator("tr", has_text="must not contain spaces")).to_be_visible()
    assert "planted-secret" not in page.content()
    assert not axe(page)
    shot(page, "proxies-import")
    page.get_by_label("Test in background").check()
    page.get_by_role("button", name="Import 2 proxies").click()
    expect(page.get_by_role("status")).to_contain_text("2 added; 1 line skipped")
    page.get_by_label("Address or location").fill("198.51.100.7")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_label("All on this page").check()
    page.get_by_role("button", name="Remove").click()
    agree(page, to="2 selected proxies")
    expect(page.get_by_role("status")).to_contain_text("2 proxies removed")
    assert server.sql("SELECT 1 FROM proxies WHERE host LIKE '198.51.100.7%%'") == []


def test_all_matching_are_tagged_and_removed_after_a_preview(page: Page, server: Served) -> None:
    server.sql(
        "INSERT INTO proxies (host, port, is_active) SELECT '198.51.100.9', n, false FROM generate_series(1, 60) n"
    )
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{server.address}/admin/proxies?q=198.51.100.9&rows=25")
    expect(page.locator(".pager")).to_contain_text("1–25 of 60 proxies")
    assert clipped(page) == []
    page.get_by_role("link", name="Tag all…").click()
    page.get_by_label("Tag").fill("Spare")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("h1")).to_have_text("Tag 60 proxies?")
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert (axe(page), fits(page)) == ([], True), width
    shot(page, "proxies-bulk-tag")
    page.get_by_role("button", name="Tag 60 proxies").click()
    expect(page.get_by_role("status")).to_contain_text("60 proxies tagged.")
    page.goto(f"{server.address}/admin/proxies?tag=spare")
    page.get_by_role("link", name="Remove all…").click()
    server.sql("UPDATE proxies SET tags = '{}' WHERE host = '198.51.100.9' AND port <= 10")
    page.get_by_role("button", name="Remove 60 proxies").click()
    expect(page.get_by_role("alert")).to_contain_text("nothing was done")
    page.get_by_role("button", name="Remove 50 proxies").click()
    expect(page.get_by_role("status")).to_contain_text("50 proxies removed.")
    assert server.sql("DELETE FROM proxies WHERE host = '198.51.100.9' RETURNING port <= 10") == [(True,)] * 10


def test_a_proxy_has_charts(page: Page, server: Served) -> None:
    ((proxy_id,),) = server.sql("SELECT proxy_id FROM fetch_attempts GROUP BY 1 ORDER BY count(*) DESC LIMIT 1")
    page.goto(f"{server.address}/admin/proxies/{proxy_id}")
    for name in ("requests", "latency"):
        expect(page.locator(f"#chart-{name} canvas")).to_be_visible()
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert axe(page) == [], width
    page.set_viewport_size({"width": 1280, "height": 800})
