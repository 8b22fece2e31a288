"""Ways from page to page: after each the page is live, its top is seen, and its message does not push it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Served, agree, axe, fits, shot

_FAILED = """
INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, priority, attempt, retry_count, max_retries,
                          postpone_count, role, platform, status, worker_id, error_message, payload)
SELECT nextval('task_ids'), now(), now(), now(), now(), 0, 1, 0, 3, 0, 'analytics_refresh', 'dutchie', 'failed', 'kryll-0',
       'test_navigation failed', jsonb_build_object('why', 'test_navigation', 'n', n) FROM generate_series(1, 2) n
"""
_ADD = "INSERT INTO worker_tasks (role, payload) VALUES ('analytics_refresh', '{\"why\": \"test_navigation\"}') RETURNING id"


def _retry(page: Page, server: Served) -> str:
    server.sql(_FAILED)
    page.goto(f"{server.address}/admin/failures?role=analytics_refresh")
    page.locator("tbody tr", has_text="test_navigation").get_by_role("link", name=re.compile("^Retry")).click()
    page.get_by_role("button", name="Retry 2 tasks").click()
    return "/admin/tasks"


def _enqueue(page: Page, server: Served) -> str:
    ((slug,),) = server.sql(
        "SELECT slug FROM dispensaries WHERE platform_dispensary_id IS NOT NULL ORDER BY id LIMIT 1"
    )
    page.goto(f"{server.address}/admin/job-queue/enqueue?role=product_discovery&scope=store&store={slug}")
    page.get_by_role("button", name="Enqueue 1 task").click()
    return "/admin/job-queue"


def _import(page: Page, server: Served) -> str:
    page.goto(f"{server.address}/admin/proxies/import")
    page.get_by_label("Proxies").fill("\n".join(f"198.51.100.{n}:80:u:p" for n in range(100, 160)))
    page.get_by_role("button", name="Preview").click()
    page.get_by_label("Test in background").check()
    page.get_by_role("button", name="Import 60 proxies").click()
    return "/admin/proxies"


def _add_store(page: Page, server: Served) -> str:
    page.goto(f"{server.address}/admin/stores/new")
    page.get_by_label("Menu URL").fill("https://dutchie.com/dispensary/navigated-here")
    page.get_by_role("button", name="Add store").click()
    return "/admin/stores/"


@pytest.mark.parametrize("way", [_retry, _enqueue, _import, _add_store], ids=lambda way: way.__name__[1:])
def test_a_form_leads_to_a_page_that_is_live(page: Page, server: Served, way: Callable[[Page, Served], str]) -> None:
    try:
        path = way(page, server)
        expect(page).to_have_url(re.compile(re.escape(path)))
        expect(page.locator("#toasts").get_by_role("status")).to_be_visible()
        assert page.evaluate("scrollY") == 0
        expect(page.locator("#live")).to_have_text("Live")
        # It asks for itself again when something happens: the badge alone proves nothing.
        if path in ("/admin/tasks", "/admin/job-queue"):
            with page.expect_response(lambda answer: "x-fragment" in answer.request.headers, timeout=15_000):
                server.sql(_ADD)
    finally:
        server.sql(
            "SELECT cancel_tasks(array_agg(t.id)) FROM task_live t LEFT JOIN dispensaries d ON d.id = t.dispensary_id"
            " WHERE t.payload ->> 'why' = 'test_navigation' OR t.role = 'product_discovery' OR d.slug = 'navigated-here'"
        )
        server.sql(
            "DELETE FROM task_live WHERE dispensary_id = (SELECT id FROM dispensaries WHERE slug = 'navigated-here')"
        )
        server.sql("DELETE FROM task_history WHERE payload ->> 'why' = 'test_navigation'")
        server.sql("DELETE FROM dispensaries WHERE slug = 'navigated-here'")
        server.sql("DELETE FROM proxies WHERE host LIKE '198.51.100.1%%'")


def test_links_and_back(page: Page, server: Served) -> None:
    """List → page → back is live, and at the old position; so is a further page of the list and the way back from it."""
    page.set_viewport_size({"width": 1280, "height": 400})
    page.goto(f"{server.address}/admin/tasks")
    expect(page.locator("#live")).to_have_text("Live")
    first = page.locator("tbody a.row").first.inner_text()
    page.get_by_role("link", name="Next page").scroll_into_view_if_needed()
    at = page.evaluate("scrollY")
    assert at > 0
    page.get_by_role("link", name="Next page").click()
    expect(page.locator("tbody a.row").first).not_to_have_text(first)
    assert page.evaluate("scrollY") == 0
    assert page.evaluate("document.activeElement.tagName") == "H1"
    page.go_back()
    expect(page.locator("tbody a.row").first).to_have_text(first)
    page.wait_for_function("at => Math.abs(scrollY - at) < 3", arg=at)
    ((number,),) = server.sql(_ADD)
    row = page.locator(f"#task-{number}")
    row.wait_for(timeout=15_000)
    page.evaluate("scrollTo(0, 100)")
    at = page.evaluate("scrollY")
    assert at > 0
    row.click()
    expect(page.locator("h1")).to_have_text(f"Task {number}")
    expect(page.locator("#live")).to_have_text("Live")
    assert page.evaluate("scrollY") == 0
    page.go_back()
    expect(page.locator("h1")).to_have_text("Tasks")
    page.wait_for_function("at => Math.abs(scrollY - at) < 3", arg=at)
    expect(page.locator("#live")).to_have_text("Live")
    with page.expect_response(lambda answer: "x-fragment" in answer.request.headers, timeout=15_000):
        server.sql(_ADD)
    server.sql("SELECT cancel_tasks(array_agg(id)) FROM task_live WHERE payload ->> 'why' = 'test_navigation'")


def test_a_page_that_listens_to_nothing_is_not_called_live(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/stores/new")
    expect(page.locator("#live")).to_be_hidden()
    # A refused form stays with what was typed: nothing changes it, so it is not live either.
    ((store,),) = server.sql("SELECT min(id) FROM dispensaries")
    page.goto(f"{server.address}/admin/stores/{store}")
    expect(page.locator("#live")).to_have_text("Live")
    page.get_by_label("Crawl interval (hours)").fill("0")
    page.get_by_role("button", name="Save").click()
    page.locator("[aria-invalid=true]").first.wait_for()
    expect(page.locator("#live")).to_be_hidden()
    assert page.evaluate("document.activeElement.getAttribute('aria-invalid')") == "true"


def test_a_message_does_not_push_the_page_and_is_closed(page: Page, server: Served) -> None:
    server.sql(_ADD)
    ((number,),) = server.sql("SELECT max(id) FROM task_live WHERE payload ->> 'why' = 'test_navigation'")
    page.goto(f"{server.address}/admin/tasks/{number}")
    before = page.locator("h1").bounding_box()
    page.get_by_label("Priority").fill("3")
    page.get_by_role("button", name="Change").click()
    message = page.get_by_role("status")
    expect(message).to_contain_text("to 3")
    assert page.locator("h1").bounding_box() == before
    assert not axe(page)
    shot(page, "toast")
    page.set_viewport_size({"width": 390, "height": 800})
    assert fits(page)
    message.get_by_role("button", name="Dismiss").click()
    expect(message).to_have_count(0)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_contain_text(f"task {number}")
    assert not axe(page)
    shot(page, "dialog")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert server.sql("SELECT state FROM task_live WHERE id = %s", [number]) != []
    page.get_by_role("button", name="Cancel").click()
    agree(page, to=str(number))
    expect(page.locator("h1 + .badge")).to_have_text("cancelled")


def test_a_server_that_cannot_answer_does_not_take_the_page_away(
    page: Page, server: Served, complaints: list[str]
) -> None:
    page.goto(f"{server.address}/admin/tasks")
    expect(page.locator("#live")).to_have_text("Live")
    page.route("**/admin/tasks", lambda route: route.fulfill(status=503, content_type="text/html", body="<p>away</p>"))
    server.sql(_ADD)
    expect(page.locator("#live")).to_contain_text("Stale since", timeout=15_000)
    expect(page.locator("h1")).to_have_text("Tasks")
    page.unroute("**/admin/tasks")
    server.sql("SELECT cancel_tasks(array_agg(id)) FROM task_live WHERE payload ->> 'why' = 'test_navigation'")
    expect(page.locator("#live")).to_have_text("Live", timeout=15_000)
    complaints.clear()


def test_times_in_utc_and_in_local_time(page: Page, server: Served) -> None:
    """The browser of the tests is in Phoenix, seven hours behind UTC."""
    ((moment,),) = server.sql(
        "SELECT to_char(max(created_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24') FROM task_history WHERE status = 'completed'"
    )
    ((local,),) = server.sql(
        "SELECT to_char(max(created_at) AT TIME ZONE 'America/Phoenix', 'YYYY-MM-DD HH24') FROM task_history"
        " WHERE status = 'completed'"
    )
    page.goto(f"{server.address}/admin/schedules")
    one = page.locator("main time").first
    expect(one).to_have_attribute("title", re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$"))
    page.locator("#zone").click()
    expect(one).to_have_attribute("title", re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d MST$"))
    page.reload()
    expect(one).to_have_attribute("title", re.compile("MST$"))
    ((number,),) = server.sql("SELECT id FROM task_history WHERE status = 'completed' ORDER BY created_at DESC LIMIT 1")
    page.goto(f"{server.address}/admin/tasks/{number}")
    expect(page.locator("main")).to_contain_text(local)
    page.keyboard.press("z")
    expect(page.locator("main")).to_contain_text(moment)


def test_the_palette_finds_opens_and_remembers(page: Page, server: Served) -> None:
    ((store, name),) = server.sql(
        "SELECT id, name FROM dispensaries WHERE platform_dispensary_id IS NOT NULL ORDER BY id LIMIT 1"
    )
    page.goto(f"{server.address}/admin/account")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Search and commands")
    expect(palette.get_by_role("link", name="Schedules", exact=True)).to_be_visible()
    page.keyboard.type(name)
    expect(palette.get_by_role("link").first).to_contain_text(name)
    assert not axe(page)
    shot(page, "palette")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{server.address}/admin/stores/{store}")
    page.keyboard.press("Control+k")
    expect(palette.locator("h2").first).to_have_text("Recent")
    expect(palette.get_by_role("link").first).to_have_text(name)
    ((host,),) = server.sql("SELECT host FROM hosts WHERE paused_at IS NULL ORDER BY host LIMIT 1")
    page.keyboard.type(f"pause {host}")
    palette.get_by_role("link", name=f"Pause host {host}").click()
    expect(page).to_have_url(re.compile("/pause$"))
    page.set_viewport_size({"width": 390, "height": 800})
    page.get_by_role("button", name=re.compile("^Commands")).click()
    assert fits(page)


def test_an_action_of_the_palette_is_done(page: Page, server: Served) -> None:
    server.sql(
        "INSERT INTO worker_registry (worker_id, friendly_name, pod, host, status, last_heartbeat_at) "
        "VALUES ('palette-1', 'Palette', 'P', 'p', 'active', now() + interval '1 hour')"
    )
    try:
        page.goto(f"{server.address}/admin/workers/palette-1")
        page.keyboard.press("Control+k")
        page.keyboard.type("pause palette")
        page.get_by_role("button", name="Pause worker Palette").click()
        expect(page.get_by_role("status")).to_contain_text("Pause sent to Palette")
        assert server.sql("SELECT command FROM worker_commands WHERE worker_id = 'palette-1'") == [("pause",)]
        expect(page.locator("dialog[open]")).to_have_count(0)
    finally:
        server.sql("DELETE FROM worker_registry WHERE worker_id = 'palette-1'")


def test_counts_in_the_navigation_are_live_and_names_fold_away(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/tasks")
    expect(page.locator("#live")).to_have_text("Live")
    count = page.locator("nav [data-count='/failures'] .n")
    before = int(count.text_content() or 0)
    try:
        server.sql(_FAILED)
        server.sql(_ADD)
        expect(count).to_have_text(str(before + 1), timeout=15_000)
    finally:
        server.sql("SELECT cancel_tasks(array_agg(id)) FROM task_live WHERE payload ->> 'why' = 'test_navigation'")
        server.sql("DELETE FROM task_history WHERE payload ->> 'why' = 'test_navigation'")
    page.get_by_role("button", name="Collapse").click()
    page.reload()
    expect(page.get_by_role("link", name="Failures")).to_be_visible()
    box = page.locator("header.side").bounding_box()
    assert box is not None
    assert box["width"] < 80
    assert not axe(page)
    shot(page, "navigation-folded")
    page.locator("#fold").click()
    expect(page.locator("#fold")).to_have_text("Collapse")
