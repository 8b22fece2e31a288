"""The schedules in a browser: looked at, run, changed by two at once, a day planned."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Look, Served, agree, axe, fits, shot


@pytest.fixture
def mine(server: Served) -> Iterator[int]:
    """A schedule of this test, that has fired and failed."""
    ((number,),) = server.sql(
        "INSERT INTO task_schedules (name, role, interval_hours, next_run_at, last_run_at, last_error) VALUES ('mine', "
        "'analytics_refresh', 6, now() + interval '5 hours', now() - interval '1 hour', 'the database went away') RETURNING id"
    )
    yield int(number)
    server.sql("DELETE FROM task_schedules WHERE id = %s", [number])


def test_the_screens(look: Look, server: Served, mine: int) -> None:
    server.sql(
        "UPDATE task_schedules SET next_run_at = now() - interval '3 hours', enabled = true WHERE id = %s", [mine]
    )
    server.sql("UPDATE task_schedules SET enabled = false WHERE id = %s", [mine])
    look("/admin/schedules", "schedules")
    look(f"/admin/schedules/{mine}", "schedule")


def test_run_now_and_switch(page: Page, server: Served, mine: int) -> None:
    page.goto(f"{server.address}/admin/schedules")
    row = page.locator("tbody tr", has=page.get_by_role("link", name="mine", exact=True))
    row.get_by_role("button", name="Run now: mine").click()
    agree(page, to="Run mine now?")
    expect(page.get_by_role("status")).to_contain_text("mine enqueued")
    expect(row.locator("[data-label='Last run']")).to_contain_text("just now")
    row.get_by_role("button", name="Disable mine").click()
    agree(page)
    expect(row).to_contain_text("disabled")
    assert server.sql("SELECT enabled FROM task_schedules WHERE id = %s", [mine]) == [(False,)]
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_contain_text("mine is enabled")


def test_a_form_that_gets_no_answer_says_so(page: Page, server: Served, mine: int, complaints: list[str]) -> None:
    page.goto(f"{server.address}/admin/schedules/{mine}")
    page.get_by_label("Priority").fill("7")
    page.route("**/admin/schedules/*", lambda route: route.abort())
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("No response from the server. Check whether the change was made")
    shot(page, "no-response")
    page.unroute("**/admin/schedules/*")
    page.route(
        "**/admin/schedules/*", lambda route: route.fulfill(status=502, content_type="text/html", body="<p>x</p>")
    )
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Unexpected response (HTTP 502).")
    expect(page.get_by_label("Priority")).to_have_value("7")
    page.unroute("**/admin/schedules/*")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("mine saved")
    complaints.clear()


def test_two_who_change_one_at_once(page: Page, context: BrowserContext, server: Served, mine: int) -> None:
    other = context.new_page()
    for tab in (page, other):
        tab.goto(f"{server.address}/admin/schedules/{mine}")
    other.get_by_label("Interval in hours").fill("12")
    other.get_by_role("button", name="Save").click()
    expect(other.get_by_role("status")).to_contain_text("every 12 h")
    page.get_by_label("Priority").fill("7")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("another user changed this schedule")
    both = page.get_by_role("region", name="Both versions")
    expect(both).to_contain_text("12")
    expect(page.get_by_label("Priority")).to_have_value("7")
    assert not axe(page)
    shot(page, "schedule-stale")
    page.get_by_role("link", name="Discard mine").click()
    expect(page.get_by_label("Interval in hours")).to_have_value("12")
    other.close()


def test_a_wrong_time_zone_is_said_beside_its_field(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/schedules/resync")
    page.get_by_label("Time zone").fill("America/Nowhere")
    page.get_by_role("button", name="Plan crawls").click()
    expect(page.locator("#h-timezone")).to_contain_text("unknown time zone")
    expect(page.get_by_label("Time zone")).to_have_value("America/Nowhere")
    assert not axe(page)
    page.set_viewport_size({"width": 380, "height": 800})
    shot(page, "schedules-resync-narrow")
    assert fits(page)
    page.goto(f"{server.address}/admin/schedules/discovery")
    assert not axe(page)
    shot(page, "schedules-discovery-narrow")
    assert fits(page)
