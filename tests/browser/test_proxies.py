"""Proxies in the browser: looked at, tested through a real proxy, and a list that is brought in."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served, axe, shot


def test_the_screens(look: Look, faces: Served) -> None:
    look("/admin/proxies", "proxies")
    ((proxy_id,),) = faces.sql("SELECT min(id) FROM proxies WHERE is_active")
    look(f"/admin/proxies/{proxy_id}", "proxy")
    look("/admin/proxies/add", "proxy-add")


def test_one_is_tested_through_the_real_thing(page: Page, faces: Served) -> None:
    ((proxy_id, before),) = faces.sql("SELECT id, success_count FROM proxies WHERE is_active ORDER BY id LIMIT 1")
    page.goto(f"{faces.address}/admin/proxies/{proxy_id}")
    page.get_by_role("button", name="Test now").click()
    expect(page.get_by_role("status")).to_contain_text(
        re.compile(rf"Proxy {proxy_id} works\. It reached \S+: HTTP \d+ \([\d,]+ ms\)\."), timeout=20_000
    )
    expect(page.locator(".notice.good")).to_be_visible()
    assert faces.sql("SELECT success_count FROM proxies WHERE id = %s", [proxy_id]) == [(before,)], (
        "a test counts nothing"
    )


def test_a_list_is_looked_at_brought_in_and_removed(page: Page, faces: Served) -> None:
    page.goto(f"{faces.address}/admin/proxies")
    page.get_by_role("link", name="Import a list").click()
    page.get_by_label("Proxies").fill("198.51.100.77:80:u:planted-secret\nnot a proxy\nsocks5://198.51.100.78:1080")
    page.get_by_role("button", name="Look at the list").click()
    expect(page.get_by_text("http://u@198.51.100.77:80")).to_be_visible()
    expect(page.locator("tr", has_text="holds no spaces")).to_be_visible()
    assert "planted-secret" not in page.content()
    assert not axe(page)
    shot(page, "proxies-import")
    page.get_by_label("Leave the tests to the workers").check()
    page.get_by_role("button", name="Bring in 2 proxies").click()
    expect(page.get_by_role("status")).to_contain_text("2 added; 1 line left out")
    page.get_by_label("Address or place").fill("198.51.100.7")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_label("All on this page").check()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("status")).to_contain_text("2 proxies removed")
    assert faces.sql("SELECT 1 FROM proxies WHERE host LIKE '198.51.100.7%%'") == []
