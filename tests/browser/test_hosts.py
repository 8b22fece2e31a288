"""Hosts in the browser: looked at, a budget set, and a pause that shows at once."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served


def test_the_screens(look: Look, faces: Served) -> None:
    look("/admin/hosts", "hosts")
    ((host,),) = faces.sql("SELECT host FROM fetch_attempts GROUP BY host ORDER BY count(*) DESC LIMIT 1")
    look(f"/admin/hosts/{host}", "host")


def test_a_budget_is_set_and_a_host_paused_and_forgotten(page: Page, faces: Served) -> None:
    faces.sql("INSERT INTO hosts (host, rate, burst, concurrency, min_gap, pace) VALUES ('own.example', 2, 4, 6, 0, 2)")
    page.goto(f"{faces.address}/admin/hosts")
    page.get_by_role("link", name="own.example").click()
    page.get_by_label("Rate, requests a second").fill("0.25")
    page.get_by_role("button", name="Set the budget").click()
    expect(page.get_by_role("status")).to_contain_text("in force for all workers")
    assert faces.sql("SELECT rate, burst FROM hosts WHERE host = 'own.example'") == [(0.25, 4)]
    page.get_by_label("Rate, requests a second").fill("often")
    page.get_by_role("button", name="Set the budget").click()
    expect(page.locator(".wrong")).to_contain_text("a number from 0.000001 to 1,000,000, not 'often'")
    expect(page.get_by_label("Rate, requests a second")).to_have_value("often")

    page.goto(f"{faces.address}/admin/hosts/own.example")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("h1 + .badge")).to_have_text("paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("h1 + .badge")).to_have_text(re.compile("slower|open"))
    page.get_by_role("button", name="Forget").click()
    expect(page.get_by_role("status")).to_contain_text("own.example is forgotten")
    assert faces.sql("SELECT 1 FROM hosts WHERE host = 'own.example'") == []
