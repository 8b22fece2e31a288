"""The job queue: the picture of pods by mouse and by keyboard, the timeline, and work that is asked for by hand."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import Look, Served, axe, fits, shot


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/admin/job-queue?pod=Kryll", "job-queue"),
        ("/admin/job-queue/timeline", "job-queue-timeline"),
        ("/admin/job-queue/enqueue?role=payload_fetch&scope=due", "job-queue-enqueue"),
        ("/admin/job-queue/enqueue?role=payload_fetch&scope=state", "job-queue-enqueue-wrong"),
    ],
)
def test_the_pages_are_looked_at(look: Look, path: str, name: str) -> None:
    look(path, name)


def test_a_pod_shows_its_card_and_is_selected_without_a_mouse(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/job-queue")
    pod = page.locator("a.pod", has_text="Kryll:")
    card = pod.locator(".pod-card-box")
    expect(card).to_be_hidden()
    pod.hover()
    expect(card).to_be_visible()
    expect(card).to_contain_text("memory at 97 % of 2,048 MB")
    for width in (1280, 380):
        page.set_viewport_size({"width": width, "height": 800})
        pod.hover()
        box, view = card.bounding_box(), page.locator("svg.pods").bounding_box()
        assert box is not None
        assert view is not None
        assert view["x"] <= box["x"]
        assert box["x"] + box["width"] <= view["x"] + view["width"] <= width
        assert card.evaluate("box => box.scrollWidth <= box.clientWidth")
        for one in page.locator("a.hub circle, a.pod circle.track, a.pod .name").all():
            other = one.bounding_box()
            assert other is None or other["y"] + other["height"] <= box["y"], "the card covers something"
    page.set_viewport_size({"width": 1280, "height": 800})
    page.locator("h1").hover()
    expect(card).to_be_hidden()
    # By the keyboard: the hub comes first, then the pods in their order.
    page.locator("a.hub").focus()
    page.keyboard.press("Tab")
    expect(page.locator("a.pod", has_text="Aethelgard:").locator(".pod-card-box")).to_be_visible()
    page.keyboard.press("Tab")
    expect(card).to_be_visible()
    page.evaluate("window.still = true")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/admin/job-queue\?pod=Kryll$"))
    expect(page.get_by_role("heading", name="Running on Kryll")).to_be_visible()
    assert page.evaluate("window.still"), "the page was loaded anew"
    expect(page.locator("section:has(#held) li")).to_have_count(1)
    assert pod.get_attribute("aria-current") == "true"
    shot(page, "job-queue-selected")
    page.get_by_role("link", name="Show all pods").click()
    expect(page).to_have_url(re.compile(r"/admin/job-queue$"))
    expect(page.locator("section:has(#held) li")).to_have_count(3)


def test_a_pod_that_comes_and_falls_silent_shows_by_itself(page: Page, server: Served) -> None:
    page.set_viewport_size({"width": 380, "height": 800})
    page.goto(f"{server.address}/admin/job-queue")
    expect(page.locator("a.pod", has_text="Kryll:")).to_be_visible()
    expect(page.locator("#live")).to_have_text("Live")
    assert not page.locator("a.pod", has_text="Zulu <b>").count()
    server.sql(
        "INSERT INTO worker_registry (worker_id, friendly_name, pod, host, status, last_heartbeat_at) "
        "VALUES ('zulu-1', 'Zoe', 'Zulu <b>', 'z', 'active', now() + interval '1 hour')"
    )
    try:
        new = page.locator("a.pod", has_text="Zulu <b>: 1 worker, 0 of 1 slot busy")
        expect(new).to_be_visible(timeout=15_000)
        server.sql(
            "UPDATE worker_registry SET last_heartbeat_at = now() - interval '5 minutes' WHERE worker_id = 'zulu-1'"
        )
        expect(page.locator("a.pod.silent", has_text="1 silent")).to_be_visible(timeout=15_000)
        page.get_by_text("Pods as a table").click()
        expect(page.get_by_role("row").filter(has_text="Zulu <b>")).to_contain_text("silent")
        assert fits(page)
    finally:
        server.sql("DELETE FROM worker_registry WHERE worker_id = 'zulu-1'")


def test_work_is_counted_first_and_then_enqueued(page: Page, server: Served) -> None:
    (slug, number) = server.sql(
        "SELECT slug, id FROM dispensaries WHERE platform_dispensary_id IS NOT NULL ORDER BY id LIMIT 1"
    )[0]
    page.goto(f"{server.address}/admin/job-queue")
    page.get_by_role("link", name="Enqueue work").click()
    page.get_by_label("Work", exact=True).select_option("product_discovery")
    page.get_by_label("For", exact=True).select_option("state")
    expect(page.get_by_label("Store", exact=True)).to_be_hidden()
    page.get_by_label("For", exact=True).select_option("store")
    page.get_by_label("Store", exact=True).fill("no-such-store")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("store 'no-such-store' does not exist")).to_be_visible()
    expect(page.get_by_label("Store", exact=True)).to_have_value("no-such-store")
    page.get_by_label("Store", exact=True).fill(slug)
    page.get_by_role("button", name="Preview").click()
    expect(page).to_have_url(re.compile(r"role=product_discovery.*store="))
    query = "SELECT id FROM task_live WHERE role = 'product_discovery' AND dispensary_id = %s"
    assert server.sql(query, [number]) == []
    page.get_by_role("button", name="Enqueue 1 task").click()
    expect(page.get_by_role("status")).to_contain_text("enqueued: product_discovery")
    ((task,),) = server.sql(query, [number])
    expect(page.get_by_role("link", name="product_discovery")).to_have_attribute("href", f"/admin/tasks/{task}")
    server.sql("SELECT cancel_tasks(array[%s::bigint])", [task])


def test_the_card_of_a_pod_shows_all_its_lines(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/job-queue")
    page.locator("a.pod").first.focus()
    box = page.locator("a.pod .pod-card-box").first
    expect(box).to_be_visible()
    assert box.evaluate("box => box.scrollHeight <= box.clientHeight + 1")


def _lane(page: Page, name: str) -> Locator:
    return page.locator(f'#timeline td.lane[data-name="{name}"]')


def test_a_bar_says_what_it_is_and_opens_its_task(page: Page, server: Served) -> None:
    ((task, store),) = server.sql(
        "SELECT h.id, d.name FROM task_history h JOIN dispensaries d ON d.id = h.dispensary_id"
        " WHERE h.status = 'failed' AND h.worker_id = 'kryll-2'"
    )
    page.goto(f"{server.address}/admin/job-queue/timeline")
    card = page.locator(".lane-card")
    expect(card).to_be_hidden()
    lane = _lane(page, "Kryll 3")
    failed = lane.locator("path.failed")
    lane.scroll_into_view_if_needed()
    box = failed.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    for said in (f"Task {task}", "failed", "payload_fetch", store, "Kryll 3", "Took", "UTC"):
        expect(card).to_contain_text(said)
    assert not axe(page)
    # Beside the bars there is nothing to say.
    page.mouse.move(box["x"] - 40, box["y"] + box["height"] / 2)
    expect(card).to_be_hidden()
    # An update of the page leaves the card where it is.
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.keyboard.press("r")
    expect(page.locator("main")).not_to_have_attribute("aria-busy", "true")
    expect(card).to_contain_text(f"Task {task}")
    shot(page, "job-queue-timeline-card")
    page.mouse.down()
    page.mouse.up()
    expect(page).to_have_url(re.compile(rf"/admin/tasks/{task}$"))


def test_bars_are_reached_by_the_keyboard(page: Page, server: Served) -> None:
    tasks = [
        row[0]
        for row in server.sql(
            "SELECT id FROM worker_tasks WHERE worker_id = 'kryll-0' AND started_at IS NOT NULL ORDER BY started_at, id"
        )
    ]
    assert len(tasks) > 1
    page.goto(f"{server.address}/admin/job-queue/timeline")
    card = page.locator(".lane-card")
    _lane(page, "Kryll 1").focus()
    page.keyboard.press("ArrowRight")
    expect(card).to_contain_text(f"Task {tasks[0]}")
    page.keyboard.press("ArrowRight")
    expect(card).to_contain_text(f"Task {tasks[1]}")
    page.keyboard.press("Home")
    expect(card).to_contain_text(f"Task {tasks[0]}")
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    page.keyboard.press("End")
    expect(card).to_contain_text(f"Task {tasks[-1]}")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/admin/tasks/{tasks[-1]}$"))
    page.go_back()
    _lane(page, "Kryll 1").focus()
    page.keyboard.press("+")
    expect(page).to_have_url(re.compile(r"since=.*until="))


def test_dragging_zooms_and_the_address_can_be_shared(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/job-queue/timeline?pod=Kryll")
    expect(page.locator("#live")).to_be_visible()
    box = _lane(page, "Kryll 3").locator("svg").bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    before = json.loads(page.locator("#timeline-data").text_content() or "")
    page.mouse.move(box["x"] + box["width"] * 0.7, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, y, steps=4)
    expect(page.locator(".lane-drag")).to_be_visible()
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"pod=Kryll&since=[^&]+&until=[^&]+$"))
    expect(page.locator(".lead")).to_contain_text("Tasks of each worker from")
    expect(page.locator("#live")).to_be_hidden()
    after = json.loads(page.locator("#timeline-data").text_content() or "")
    assert abs(after["span"] - before["span"] * 0.2) < before["span"] * 0.01
    assert abs(after["since"] - before["since"] - before["span"] * 0.7) < before["span"] * 0.01
    # Whoever gets the address sees the same.
    page.goto(page.url)
    assert json.loads(page.locator("#timeline-data").text_content() or "")["since"] == after["since"]
    # The axis is in the zone that is chosen; Phoenix is seven hours behind UTC all year.
    first = page.locator("#timeline .axis time").first
    hour, minute = map(int, first.inner_text().split(":"))
    page.keyboard.press("z")
    expect(first).to_have_text(f"{(hour - 7) % 24:02}:{minute:02}")
    expect(page.locator("#timeline .axis [data-zone]")).to_have_text("MST")
    page.keyboard.press("z")
    page.get_by_role("link", name="3 h", exact=True).click()
    expect(page).to_have_url(re.compile(r"timeline\?pod=Kryll&hours=3$"))
    expect(page.locator("#live")).to_be_visible()


def test_the_timeline_goes_on_by_itself(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/job-queue/timeline")
    expect(page.locator("#live")).to_have_text("Live")
    events = page.locator("section", has=page.get_by_role("heading", name="Events"))
    server.sql(
        "INSERT INTO host_events (host, kind, reason) VALUES ('new.example', 'circuit_opened', 'refused by a test')"
    )
    try:
        expect(events.get_by_role("link", name="new.example")).to_be_visible(timeout=15_000)
        mark = page.locator("svg.events a[href$='/hosts/new.example']")
        expect(mark).to_have_count(1)
    finally:
        server.sql("DELETE FROM host_events WHERE host = 'new.example'")


def test_without_scripts_links_zoom_and_tables_say_the_same(browser: Browser, login_state: Any, server: Served) -> None:
    context = browser.new_context(storage_state=login_state, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{server.address}/admin/job-queue/timeline")
    ((task,),) = server.sql("SELECT id FROM task_history WHERE status = 'failed' AND worker_id = 'aethelgard-1'")
    expect(
        page.get_by_role("region", name="Table of longest tasks").get_by_role("link", name=str(task))
    ).to_have_attribute("href", f"/admin/tasks/{task}")
    page.get_by_role("link", name="1 task of Kryll 3").click()
    expect(page.locator("tbody a.row")).to_have_count(1)
    page.go_back()
    page.get_by_role("link", name="Zoom in").click()
    expect(page).to_have_url(re.compile(r"since=.*until="))
    page.get_by_role("link", name="Earlier").click()
    expect(page.get_by_role("link", name="Later")).to_be_visible()
    context.close()
