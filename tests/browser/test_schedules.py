"""The schedules in a browser: looked at, run, changed by two at once, a day planned."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Look, Served, axe, fits, shot


@pytest.fixture
def mine(faces: Served) -> Iterator[int]:
    """A schedule of this test, that has fired and failed."""
    ((number,),) = faces.sql(
        "INSERT INTO task_schedules (name, role, interval_hours, next_run_at, last_run_at, last_error) VALUES ('mine', "
        "'analytics_refresh', 6, now() + interval '5 hours', now() - interval '1 hour', 'the database went away') RETURNING id"
    )
    yield int(number)
    faces.sql("DELETE FROM task_schedules WHERE id = %s", [number])


def test_the_screens(look: Look, faces: Served, mine: int) -> None:
    faces.sql(
        "UPDATE task_schedules SET next_run_at = now() - interval '3 hours', enabled = true WHERE id = %s", [mine]
    )
    faces.sql("UPDATE task_schedules SET enabled = false WHERE id = %s", [mine])
    look("/admin/schedules", "schedules")
    look(f"/admin/schedules/{mine}", "schedule")


def test_run_now_and_switch(page: Page, faces: Served, mine: int) -> None:
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{faces.address}/admin/schedules")
    row = page.locator("tbody tr", has=page.get_by_role("link", name="mine", exact=True))
    row.get_by_role("button", name="Run now: mine").click()
    expect(page.get_by_role("status")).to_contain_text("mine enqueued")
    expect(row.locator("[data-label='Last run']")).to_contain_text("just now")
    row.get_by_role("button", name="Disable mine").click()
    expect(row).to_contain_text("disabled")
    assert faces.sql("SELECT enabled FROM task_schedules WHERE id = %s", [mine]) == [(False,)]
    row.get_by_role("button", name="Enable mine").click()
    expect(page.get_by_role("status")).to_contain_text("mine is enabled")


def test_two_who_change_one_at_once(page: Page, context: BrowserContext, faces: Served, mine: int) -> None:
    other = context.new_page()
    for tab in (page, other):
        tab.goto(f"{faces.address}/admin/schedules/{mine}")
    other.get_by_label("Interval in hours").fill("12")
    other.get_by_role("button", name="Save").click()
    expect(other.get_by_role("status")).to_contain_text("every 12 h")
    page.get_by_label("Priority").fill("7")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("somebody else changed")
    both = page.get_by_role("region", name="Both versions")
    expect(both).to_contain_text("12")
    expect(page.get_by_label("Priority")).to_have_value("7")
    assert not axe(page)
    shot(page, "schedule-stale")
    page.get_by_role("link", name="Keep theirs").click()
    expect(page.get_by_label("Interval in hours")).to_have_value("12")
    other.close()


def test_a_wrong_time_zone_is_said_beside_its_field(page: Page, faces: Served) -> None:
    page.goto(f"{faces.address}/admin/schedules/resync")
    page.get_by_label("Time zone of the hours").fill("America/Nowhere")
    page.get_by_role("button", name="Plan the crawls").click()
    expect(page.locator("#h-timezone")).to_contain_text("does not exist")
    expect(page.get_by_label("Time zone of the hours")).to_have_value("America/Nowhere")
    assert not axe(page)
    page.set_viewport_size({"width": 380, "height": 800})
    shot(page, "schedules-resync-narrow")
    assert fits(page)
    page.goto(f"{faces.address}/admin/schedules/discovery")
    assert not axe(page)
    shot(page, "schedules-discovery-narrow")
    assert fits(page)
