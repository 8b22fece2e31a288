"""Workers: each is told to pause, go on and leave, with a question where it cannot be taken back."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served, agree, axe, clipped, fits


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/admin/workers", "workers"),
        ("/admin/workers?state=silent", "workers-none"),
        ("/admin/workers/kryll-4", "worker"),
    ],
)
def test_the_pages_are_looked_at(look: Look, path: str, name: str) -> None:
    look(path, name)


@pytest.fixture
def zoe(server: Served) -> Iterator[str]:
    """A worker of this test's own, which takes no command by itself."""
    server.sql(
        "INSERT INTO worker_registry (worker_id, friendly_name, pod, host, status, last_heartbeat_at) "
        "VALUES ('zoe', 'Zoe', 'Zulu', 'z', 'active', now() + interval '1 hour')"
    )
    yield "zoe"
    server.sql("DELETE FROM worker_registry WHERE worker_id = 'zoe'")


def test_a_worker_is_paused_and_resumed_and_shows_what_it_has_not_taken(page: Page, server: Served, zoe: str) -> None:
    page.goto(f"{server.address}/admin/workers?pod=Zulu")
    row = page.get_by_role("row").filter(has_text="Zoe")
    row.get_by_role("button", name="Pause Zoe").click()
    expect(page.get_by_role("status")).to_contain_text("Pause sent to Zoe.")
    expect(row).to_contain_text("pause sent, not acknowledged yet")
    expect(page).to_have_url(re.compile(r"/admin/workers\?pod=Zulu$"))
    # The worker takes it: the page shows that by itself.
    server.sql("UPDATE worker_commands SET acknowledged_at = clock_timestamp() WHERE worker_id = 'zoe'")
    server.sql("UPDATE worker_registry SET status = 'paused' WHERE worker_id = 'zoe'")
    expect(row.get_by_role("button", name="Resume Zoe")).to_be_visible(timeout=15_000)
    expect(row).not_to_contain_text("not acknowledged yet")
    row.get_by_role("button", name="Resume Zoe").click()
    expect(row).to_contain_text("resume sent, not acknowledged yet")
    told = server.sql("SELECT command, created_by FROM worker_commands WHERE worker_id = 'zoe' ORDER BY id")
    assert told == [("pause", "admin"), ("resume", "admin")]


def test_leaving_is_asked_about_first(page: Page, server: Served, zoe: str) -> None:
    page.goto(f"{server.address}/admin/workers?pod=Zulu")
    page.get_by_role("button", name="Decommission Zoe").click()
    expect(page.get_by_role("dialog")).to_contain_text("is not restarted automatically")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert server.sql("SELECT count(*) FROM worker_commands WHERE worker_id = 'zoe'") == [(0,)]
    page.get_by_role("button", name="Decommission all of Zulu").click()
    agree(page, to="Zulu")
    expect(page.get_by_role("status")).to_contain_text("Decommission sent to 1 worker of Zulu.")
    assert server.sql("SELECT command FROM worker_commands WHERE worker_id = 'zoe'") == [("decommission",)]


def test_scaling_says_why_it_cannot(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/workers")
    for name in ("−1", "+1", "Set"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
    expect(page.locator("#why-not")).to_contain_text("no supervisor or Kubernetes scaler is connected")


def test_the_list_is_sorted_and_its_columns_are_chosen(page: Page, server: Served) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{server.address}/admin/workers?pod=Kryll")
    names = page.locator("tbody a.row")
    first = names.first.inner_text()
    assert clipped(page) == []
    page.locator("th a.sort", has_text="Worker").click()
    expect(page.locator("th", has_text="Worker")).to_have_attribute("aria-sort", "descending")
    assert names.last.inner_text() == first
    page.get_by_text("Columns").click()
    page.get_by_label("CPU").uncheck()
    page.reload()
    expect(page.locator("th", has_text="CPU")).to_be_hidden()
    page.get_by_text("Columns").click()
    page.get_by_label("CPU").check()
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert (axe(page), fits(page)) == ([], True), width
    page.set_viewport_size({"width": 1280, "height": 800})
