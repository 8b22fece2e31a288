"""The job queue: the picture of pods by mouse and by keyboard, the timeline, and work that is asked for by hand."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served, fits, shot


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


def test_a_pod_shows_its_card_and_is_selected_without_a_mouse(page: Page, faces: Served) -> None:
    page.goto(f"{faces.address}/admin/job-queue")
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


def test_a_pod_that_comes_and_falls_silent_shows_by_itself(page: Page, faces: Served) -> None:
    page.set_viewport_size({"width": 380, "height": 800})
    page.goto(f"{faces.address}/admin/job-queue")
    expect(page.locator("a.pod", has_text="Kryll:")).to_be_visible()
    assert not page.locator("a.pod", has_text="Zulu <b>").count()
    faces.sql(
        "INSERT INTO worker_registry (worker_id, friendly_name, pod, host, status, last_heartbeat_at) "
        "VALUES ('zulu-1', 'Zoe', 'Zulu <b>', 'z', 'active', now() + interval '1 hour')"
    )
    try:
        new = page.locator("a.pod", has_text="Zulu <b>: 1 worker, 0 of 1 slot busy")
        expect(new).to_be_visible(timeout=4000)
        faces.sql(
            "UPDATE worker_registry SET last_heartbeat_at = now() - interval '5 minutes' WHERE worker_id = 'zulu-1'"
        )
        expect(page.locator("a.pod.silent", has_text="1 silent")).to_be_visible(timeout=4000)
        page.get_by_text("Pods as a table").click()
        expect(page.get_by_role("row").filter(has_text="Zulu <b>")).to_contain_text("silent")
        assert fits(page)
    finally:
        faces.sql("DELETE FROM worker_registry WHERE worker_id = 'zulu-1'")


def test_work_is_counted_first_and_then_enqueued(page: Page, faces: Served) -> None:
    (slug, number) = faces.sql(
        "SELECT slug, id FROM dispensaries WHERE platform_dispensary_id IS NOT NULL ORDER BY id LIMIT 1"
    )[0]
    page.goto(f"{faces.address}/admin/job-queue")
    page.get_by_role("link", name="Enqueue work").click()
    page.get_by_label("Work", exact=True).select_option("product_discovery")
    page.get_by_label("For", exact=True).select_option("state")
    expect(page.get_by_label("Store", exact=True)).to_be_hidden()
    page.get_by_label("For", exact=True).select_option("store")
    page.get_by_label("Store", exact=True).fill("no-such-store")
    page.get_by_role("button", name="Count the tasks").click()
    expect(page.get_by_text("no store has the number, slug or id")).to_be_visible()
    expect(page.get_by_label("Store", exact=True)).to_have_value("no-such-store")
    page.get_by_label("Store", exact=True).fill(slug)
    page.get_by_role("button", name="Count the tasks").click()
    expect(page).to_have_url(re.compile(r"role=product_discovery.*store="))
    query = "SELECT id FROM task_live WHERE role = 'product_discovery' AND dispensary_id = %s"
    assert faces.sql(query, [number]) == []
    page.get_by_role("button", name="Enqueue 1 task").click()
    expect(page.get_by_role("status")).to_contain_text("enqueued: product_discovery")
    ((task,),) = faces.sql(query, [number])
    expect(page.get_by_role("link", name="product_discovery")).to_have_attribute("href", f"/admin/tasks/{task}")
    faces.sql("SELECT cancel_tasks(array[%s::bigint])", [task])
