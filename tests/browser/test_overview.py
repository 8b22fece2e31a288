"""The overview: it says how it stands, what needs somebody, and where that is seen to."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Any

from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Look, Served


def test_the_overview_is_looked_at(look: Look) -> None:
    look("/admin/", "overview")


def test_a_proxy_that_goes_down_shows_with_the_way_to_it(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/")
    expect(page.locator("#health")).to_be_visible()
    assert not page.get_by_text(re.compile(r"prox(y is|ies are|ies is) inactive")).count()
    (proxy,) = server.sql(
        "INSERT INTO proxies (host, port, protocol, is_active) VALUES ('127.0.0.9', 9, 'http', false) RETURNING id"
    )[0]
    try:
        said = page.get_by_role("listitem").filter(has_text=re.compile(r"1 of \d proxies is inactive"))
        expect(said).to_be_visible(timeout=15_000)
        expect(said.get_by_role("link")).to_have_attribute("href", "/admin/proxies")
    finally:
        server.sql("DELETE FROM proxies WHERE id = %s", [proxy])


def test_charts_have_axes_tooltip_zoom_and_a_table(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/?hours=12")
    ((failed,),) = server.sql(
        "SELECT count(*) FROM task_history WHERE status = 'failed' AND completed_at > now() - interval '11 hours'"
    )
    plot = page.get_by_role("img", name="Tasks enqueued and finished per 15 min")
    expect(plot.locator("canvas")).to_be_visible()
    page.locator("#chart-throughput-table summary").click()
    cells = page.locator("#chart-throughput-table tbody tr td:nth-child(3)").all_inner_texts()
    assert sum(int(one.replace(",", "")) for one in cells) == failed
    expect(page.locator("#chart-throughput-table tbody tr").first).to_contain_text("incomplete")

    over = plot.locator(".u-over")
    box = over.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    expect(plot.locator(".chart-tip")).to_contain_text("Completed")
    expect(page.locator("#chart-wait .chart-tip")).to_be_visible()

    # Dragging zooms every chart of the page, also after an update of the page.
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, middle, steps=4)
    page.mouse.up()
    reset = page.get_by_role("button", name="Reset zoom")
    expect(reset).to_have_count(3)
    page.keyboard.press("r")
    expect(page.locator("main")).not_to_have_attribute("aria-busy", "true")
    expect(reset).to_have_count(3)
    expect(page).to_have_url(re.compile(r"/admin/\?hours=12$"))
    reset.first.click()
    expect(reset).to_have_count(0)


def test_a_click_in_a_chart_lists_the_tasks_of_the_interval(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/?hours=24")
    (start,) = server.sql(
        "SELECT extract(epoch FROM date_bin('30 minutes', completed_at, '2000-01-01Z'))::bigint FROM task_history"
        " WHERE completed_at BETWEEN now() - interval '20 hours' AND now() - interval '31 minutes' ORDER BY completed_at LIMIT 1"
    )[0]
    ((tasks,),) = server.sql(
        "SELECT count(*) FROM task_history WHERE completed_at >= to_timestamp(%(at)s) AND completed_at < to_timestamp(%(at)s + 1800)",
        {"at": start},
    )
    data = page.locator("#chart-throughput-data").text_content()
    times = json.loads(data or "")["times"]
    share = (start + 900 - times[0]) / (times[-1] + 1800 - times[0])
    over = page.locator("#chart-throughput .u-over")
    box = over.bounding_box()
    assert box is not None
    over.click(position={"x": box["width"] * share, "y": box["height"] / 2})
    expect(page).to_have_url(re.compile("/admin/tasks"))
    expect(page.locator("tbody a.row")).to_have_count(min(tasks, 50))


def test_charts_are_in_the_chosen_zone_and_split_by_role(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/?hours=3")
    page.locator("#chart-throughput-table summary").click()
    newest = page.locator("#chart-throughput-table tbody time").first
    over = page.locator("#chart-throughput .u-over")
    tip = page.locator("#chart-throughput .chart-tip")

    def pointed() -> str:
        box = over.bounding_box()
        assert box is not None
        # The middle of the eleventh of 37 intervals.
        page.mouse.move(box["x"] + box["width"] * 10.5 / 37, box["y"] + 20)
        page.mouse.move(box["x"] + box["width"] * 10.5 / 37, box["y"] + 21)
        return tip.locator("div").first.inner_text()

    in_utc, at = newest.inner_text(), pointed()
    assert at.endswith(" UTC")
    page.keyboard.press("z")
    expect(page.locator("#chart-throughput-table th [data-zone]")).to_have_text("MST")
    # Phoenix is seven hours behind UTC all year.
    seven = timedelta(hours=7)
    assert datetime.fromisoformat(newest.inner_text()) == datetime.fromisoformat(in_utc) - seven
    here = pointed()
    assert here.endswith(" MST")
    assert datetime.fromisoformat(here[:16]) == datetime.fromisoformat(at[:16]) - seven
    page.keyboard.press("z")
    page.get_by_role("navigation", name="Charts by").get_by_role("link", name="role").click()
    expect(page).to_have_url(re.compile(r"hours=3&by=role$"))
    expect(page.get_by_role("img", name="Tasks finished per 5 min, by role")).to_be_visible()
    expect(page.locator("#chart-throughput .u-legend")).to_contain_text("payload_fetch")


def test_without_scripts_the_table_says_what_the_chart_shows(
    browser: Browser, login_state: Any, server: Served
) -> None:
    context = browser.new_context(storage_state=login_state, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{server.address}/admin/?hours=1")
    expect(page.locator("#chart-throughput")).to_be_hidden()
    page.locator("#chart-throughput-table summary").click()
    expect(page.locator("#chart-throughput-table tbody tr")).to_have_count(61)
    page.get_by_role("link", name="24 h", exact=True).click()
    expect(page.locator("#chart-throughput-table tbody tr")).to_have_count(49)
    context.close()
