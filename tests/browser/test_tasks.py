"""The tasks in a browser: searched with completion, seen one by one, retried and cancelled, many at once."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served, axe, shot

MINE = '{"why": "test_tasks"}'


def test_the_screens(look: Look, faces: Served) -> None:
    (failed,) = [row[0] for row in faces.sql("SELECT max(id) FROM task_history WHERE status = 'failed'")]
    look("/admin/tasks?q=state:failed", "tasks")
    look(f"/admin/tasks/{failed}", "task")
    look("/admin/tasks/bulk?act=retry&all=1&q=502", "tasks-bulk")


def test_a_wrong_search_keeps_what_was_typed(page: Page, faces: Served) -> None:
    page.goto(f"{faces.address}/admin/tasks")
    field = page.get_by_role("combobox", name="Search")
    field.fill("role:payload_ftch")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("there is no role 'payload_ftch'")
    expect(field).to_have_value("role:payload_ftch")
    expect(field).to_have_attribute("aria-invalid", "true")
    assert not axe(page)
    shot(page, "tasks-wrong")


def test_the_search_is_completed_and_the_address_is_what_is_seen(page: Page, faces: Served) -> None:
    page.goto(f"{faces.address}/admin/tasks")
    field = page.get_by_role("combobox", name="Search")
    field.focus()
    field.press_sequentially("sta")
    option = page.get_by_role("option")
    expect(option).to_have_count(1)
    expect(option).to_contain_text("state:")
    page.keyboard.press("ArrowDown")
    expect(option).to_have_attribute("aria-selected", "true")
    assert not axe(page)
    shot(page, "tasks-completion")
    page.keyboard.press("Enter")
    expect(field).to_have_value("state:")
    field.press_sequentially("fai")
    expect(page.get_by_role("option", name="failed")).to_be_visible()
    page.get_by_role("option", name="failed").click()
    expect(field).to_have_value("state:failed ")
    expect(page.get_by_role("listbox")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_be_hidden()
    expect(field).to_have_value("state:failed ")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"q=state%3Afailed"))
    expect(page.locator(".tabs a[aria-current]")).to_contain_text("Failed")
    page.locator(".tabs a", has_text="Completed").click()
    expect(page).to_have_url(re.compile(r"q=state%3Acompleted$"))
    expect(page.locator("tbody tr").first).to_contain_text("completed")
    page.go_back()
    expect(page.locator(".tabs a[aria-current]")).to_contain_text("Failed")


@pytest.fixture
def mine(faces: Served) -> list[int]:
    """Two tasks of this test: analytics that wait for another century."""
    return [
        int(row[0])
        for row in faces.sql(
            "INSERT INTO worker_tasks (role, payload, scheduled_for) SELECT 'analytics_refresh', "
            "jsonb_build_object('why', 'test_tasks', 'n', n), '2100-01-01' FROM generate_series(1, 2) n RETURNING id"
        )
    ]


def test_many_are_cancelled_after_a_look_and_one_is_retried(page: Page, faces: Served, mine: list[int]) -> None:
    page.goto(f"{faces.address}/admin/tasks?q=args.why:test_tasks state:pending")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_role("checkbox", name="Tick all of this page").check()
    page.locator("#bulk").get_by_role("button", name="Cancel…").click()
    expect(page.locator("h1")).to_have_text("Cancel 2 tasks?")
    page.get_by_role("button", name="Cancel 2 tasks").click()
    expect(page.get_by_role("status")).to_contain_text("2 tasks cancelled")
    states = "SELECT array_agg(status) FROM worker_tasks WHERE id = ANY (%s)"
    assert faces.sql(states, [mine])[0][0] == ["cancelled", "cancelled"]
    page.goto(f"{faces.address}/admin/tasks/{mine[0]}")
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_role("status")).to_contain_text("this is the new task")
    page.get_by_label("Priority").fill("-7")
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_role("status")).to_contain_text("is -7 now")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("h1 + .badge")).to_have_text("cancelled")


def test_a_view_is_saved_and_forgotten(page: Page, faces: Served) -> None:
    page.goto(f"{faces.address}/admin/tasks?q=state:failed 502")
    page.get_by_text("Save this view").click()
    page.get_by_label("Name of the view").fill("Bad gateways")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("Saved as “Bad gateways”")
    page.goto(f"{faces.address}/admin/tasks")
    page.get_by_role("link", name="Bad gateways").click()
    expect(page.get_by_role("combobox", name="Search")).to_have_value("state:failed 502")
    shot(page, "tasks-view")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Forget the view Bad gateways").click()
    expect(page.get_by_role("link", name="Bad gateways")).to_have_count(0)


def test_a_task_that_is_gone_is_a_helpful_404(page: Page, faces: Served) -> None:
    answer = page.goto(f"{faces.address}/admin/tasks/999999999")
    assert answer is not None
    assert answer.status == 404
    expect(page.locator("main")).to_contain_text("the newest is")
    assert not axe(page)


def test_what_people_guess_is_the_search(page: Page, faces: Served) -> None:
    page.goto(f"{faces.address}/admin/tasks?state=failed&role=payload_fetch")
    expect(page.get_by_label("Search", exact=True)).to_have_value("state:failed role:payload_fetch")
    expect(page.locator("main h1")).to_have_text("Tasks")
