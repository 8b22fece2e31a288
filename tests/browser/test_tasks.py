"""The tasks in a browser: searched with completion, seen one by one, retried and cancelled, many at once."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served, agree, axe, shot

MINE = '{"why": "test_tasks"}'


def test_the_screens(look: Look, server: Served) -> None:
    (failed,) = [row[0] for row in server.sql("SELECT max(id) FROM task_history WHERE status = 'failed'")]
    look("/admin/tasks?q=state:failed", "tasks")
    look(f"/admin/tasks/{failed}", "task")
    look("/admin/tasks/bulk?act=retry&all=1&q=502", "tasks-bulk")


def test_a_wrong_search_keeps_what_was_typed(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/tasks")
    field = page.get_by_role("combobox", name="Search")
    field.fill("role:payload_ftch")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("unknown role 'payload_ftch'")
    expect(field).to_have_value("role:payload_ftch")
    expect(field).to_have_attribute("aria-invalid", "true")
    said, main = page.locator("#q-wrong").bounding_box(), page.locator("main").bounding_box()
    assert said is not None
    assert main is not None
    assert said["width"] > 0.8 * main["width"], "it is not squeezed under the field"
    assert not axe(page)
    shot(page, "tasks-wrong")


def test_names_of_stores_are_whole_where_there_is_room(page: Page, server: Served) -> None:
    """Those of a chain differ at their end."""
    ((number, name),) = server.sql(
        "SELECT id, name FROM dispensaries WHERE id IN (SELECT dispensary_id FROM task_history) ORDER BY id LIMIT 1"
    )
    server.sql("UPDATE dispensaries SET name = 'Mile Marker Newark Rosewood Annex' WHERE id = %s", [number])
    try:
        page.set_viewport_size({"width": 1920, "height": 900})
        page.goto(f"{server.address}/admin/tasks?q=store:{number}")
        cell = page.locator("td.store .clip").first
        expect(cell).to_contain_text("Rosewood Annex")
        page.evaluate("document.fonts.ready")
        assert cell.evaluate("cell => cell.scrollWidth <= cell.clientWidth")
    finally:
        server.sql("UPDATE dispensaries SET name = %s WHERE id = %s", [name, number])


def test_the_search_is_completed_and_the_address_is_what_is_seen(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/tasks")
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
def mine(server: Served) -> list[int]:
    """Two tasks of this test: analytics that wait for another century."""
    return [
        int(row[0])
        for row in server.sql(
            "INSERT INTO worker_tasks (role, payload, scheduled_for) SELECT 'analytics_refresh', "
            "jsonb_build_object('why', 'test_tasks', 'n', n), '2100-01-01' FROM generate_series(1, 2) n RETURNING id"
        )
    ]


def test_many_are_cancelled_after_a_look_and_one_is_retried(page: Page, server: Served, mine: list[int]) -> None:
    page.goto(f"{server.address}/admin/tasks?q=args.why:test_tasks state:pending")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_role("checkbox", name="Select all on this page").check()
    page.locator("#bulk").get_by_role("button", name="Cancel…").click()
    expect(page.locator("h1")).to_have_text("Cancel 2 tasks?")
    page.get_by_role("button", name="Cancel 2 tasks").click()
    expect(page.get_by_role("status")).to_contain_text("2 tasks cancelled")
    states = "SELECT array_agg(status) FROM worker_tasks WHERE id = ANY (%s)"
    assert server.sql(states, [mine])[0][0] == ["cancelled", "cancelled"]
    page.goto(f"{server.address}/admin/tasks/{mine[0]}")
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_role("status")).to_contain_text("this is the new task")
    page.get_by_label("Priority").fill("-7")
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_role("status")).to_contain_text("from 10 to -7")
    page.get_by_role("button", name="Cancel").click()
    agree(page)
    expect(page.locator("h1 + .badge")).to_have_text("cancelled")


def test_a_view_is_saved_and_forgotten(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/tasks?q=state:failed 502")
    page.get_by_text("Save this view").click()
    page.get_by_label("Name of the view").fill("Bad gateways")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("Saved as “Bad gateways”")
    page.goto(f"{server.address}/admin/tasks")
    page.get_by_role("link", name="Bad gateways").click()
    expect(page.get_by_role("combobox", name="Search")).to_have_value("state:failed 502")
    shot(page, "tasks-view")
    page.get_by_role("button", name="Delete the view Bad gateways").click()
    agree(page)
    expect(page.get_by_role("link", name="Bad gateways")).to_have_count(0)


def test_a_task_that_is_gone_is_a_helpful_404(page: Page, server: Served) -> None:
    answer = page.goto(f"{server.address}/admin/tasks/999999999")
    assert answer is not None
    assert answer.status == 404
    expect(page.locator("main")).to_contain_text("the newest is")
    assert not axe(page)


def test_what_people_guess_is_the_search(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/tasks?state=failed&role=payload_fetch")
    expect(page.get_by_label("Search", exact=True)).to_have_value("state:failed role:payload_fetch")
    expect(page.locator("main h1")).to_have_text("Tasks")


def test_tasks_are_sorted_by_finish_time_in_place(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/tasks?q=state:completed")
    ended = [
        row[0]
        for row in server.sql(
            "SELECT id FROM task_history WHERE status = 'completed' ORDER BY completed_at DESC, id DESC"
        )
    ]
    page.evaluate("window.still = true")
    head = page.get_by_role("columnheader", name="Time")
    head.get_by_role("link").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(page.locator("tbody a.row")).to_have_text([str(number) for number in ended[:50]])
    head.get_by_role("link").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(page.locator("tbody a.row").first).to_have_text(str(ended[-1]))
    assert page.evaluate("window.still"), "the page was loaded anew"
    assert not axe(page)
    # Failed tasks have no index by their end: the column says so and cannot be clicked.
    page.goto(f"{server.address}/admin/tasks?q=state:failed")
    expect(head.get_by_role("link")).to_have_count(0)
    expect(page.locator(".sortable")).to_contain_text("Time is sortable for all or completed tasks")
