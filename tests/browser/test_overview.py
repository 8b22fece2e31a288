"""The overview: it says how it stands, what needs somebody, and where that is seen to."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served


def test_the_overview_is_looked_at(look: Look) -> None:
    look("/admin/", "overview")


def test_a_proxy_that_goes_down_shows_with_the_way_to_it(page: Page, faces: Served) -> None:
    page.goto(f"{faces.address}/admin/")
    # The filled server has failures of the last hour, so that it is never called well.
    expect(page.locator("#health")).to_have_text(re.compile(r"need"))
    expect(page.get_by_role("listitem").filter(has_text="12 tasks failed for good in the last hour")).to_be_visible()
    assert not page.get_by_text("is down.").count()
    (proxy,) = faces.sql(
        "INSERT INTO proxies (host, port, protocol, is_active) VALUES ('127.0.0.9', 9, 'http', false) RETURNING id"
    )[0]
    try:
        said = page.get_by_role("listitem").filter(has_text=re.compile(r"1 of \d proxies is down"))
        expect(said).to_be_visible(timeout=4000)
        expect(said.get_by_role("link")).to_have_attribute("href", "/admin/proxies")
    finally:
        faces.sql("DELETE FROM proxies WHERE id = %s", [proxy])


def test_the_chart_has_its_numbers_beside_it(page: Page, faces: Served) -> None:
    page.goto(f"{faces.address}/admin/?hours=12")
    (failed,) = faces.sql(
        "SELECT count(*) FROM task_history WHERE status = 'failed' AND completed_at > now() - interval '11 hours'"
    )[0]
    picture = page.get_by_role("img", name="In the last 12 hours")
    expect(picture).to_have_accessible_name(re.compile(f"and {failed} failed"))
    page.get_by_text("In numbers").click()
    cells = page.locator("#flow-table tbody tr td:nth-child(4)").all_inner_texts()
    assert sum(int(one.replace(",", "")) for one in cells) == failed
    page.get_by_role("link", name="24 h").click()
    expect(page).to_have_url(re.compile(r"hours=24"))
    expect(page.get_by_role("img", name="In the last 24 hours")).to_be_visible()
