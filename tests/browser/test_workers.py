"""Workers: each is told to pause, go on and leave, with a question where it cannot be taken back."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served


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
def zoe(faces: Served) -> Iterator[str]:
    """A worker of this test's own, which takes no command by itself."""
    faces.sql(
        "INSERT INTO worker_registry (worker_id, friendly_name, pod, host, status, last_heartbeat_at) "
        "VALUES ('zoe', 'Zoe', 'Zulu', 'z', 'active', now() + interval '1 hour')"
    )
    yield "zoe"
    faces.sql("DELETE FROM worker_registry WHERE worker_id = 'zoe'")


def test_a_worker_is_paused_and_resumed_and_shows_what_it_has_not_taken(page: Page, faces: Served, zoe: str) -> None:
    page.goto(f"{faces.address}/admin/workers?pod=Zulu")
    row = page.get_by_role("row").filter(has_text="Zoe")
    row.get_by_role("button", name="Pause Zoe").click()
    expect(page.get_by_role("status")).to_contain_text("Zoe was told to pause.")
    expect(row).to_contain_text("pause sent, not acknowledged yet")
    expect(page).to_have_url(re.compile(r"/admin/workers\?pod=Zulu$"))
    # The worker takes it: the page shows that by itself.
    faces.sql("UPDATE worker_commands SET acknowledged_at = clock_timestamp() WHERE worker_id = 'zoe'")
    faces.sql("UPDATE worker_registry SET status = 'paused' WHERE worker_id = 'zoe'")
    expect(row.get_by_role("button", name="Resume Zoe")).to_be_visible(timeout=4000)
    expect(row).not_to_contain_text("not acknowledged yet")
    row.get_by_role("button", name="Resume Zoe").click()
    expect(row).to_contain_text("resume sent, not acknowledged yet")
    told = faces.sql("SELECT command, created_by FROM worker_commands WHERE worker_id = 'zoe' ORDER BY id")
    assert told == [("pause", "admin"), ("resume", "admin")]


def test_leaving_is_asked_about_first(page: Page, faces: Served, zoe: str) -> None:
    page.goto(f"{faces.address}/admin/workers?pod=Zulu")
    asked: list[str] = []
    page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    page.get_by_role("button", name="Decommission Zoe").click()
    assert "does not come back by itself" in asked[0]
    assert faces.sql("SELECT count(*) FROM worker_commands WHERE worker_id = 'zoe'") == [(0,)]
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Decommission all of Zulu").click()
    expect(page.get_by_role("status")).to_contain_text("1 worker of Zulu told to leave.")
    assert faces.sql("SELECT command FROM worker_commands WHERE worker_id = 'zoe'") == [("decommission",)]


def test_scaling_says_why_it_cannot(page: Page, faces: Served) -> None:
    page.goto(f"{faces.address}/admin/workers")
    for name in ("One fewer", "One more", "Set"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
    expect(page.locator("#why-not")).to_contain_text("nothing that starts and stops workers is connected")
