"""Pages are live, and it does not matter which server answers: a change shows within two seconds while one reads and types, and two
servers behind a plain balancer are as good as one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.balancer import Balancer, balanced
from tests.browser.conftest import NEW_PASSWORD, Served, watch
from tests.conftest import ROOT

SECONDS = 4.0
"""Two seconds on an idle machine (test_front.py), and as much again for a busy one."""

_ADD = """
INSERT INTO worker_tasks (role, priority, payload)
VALUES ('analytics_refresh', 900, jsonb_build_object('why', %s::text, 'at', clock_timestamp())) RETURNING id
"""
_CLAIM = "SELECT id FROM claim_task('analytics_refresh', 'kryll-1')"
_FINISH = """
SELECT finish_tasks('kryll-1', array_agg(id), array_agg(attempt), array_agg('done'::text), array_agg(NULL::text),
                    array_agg('{}'::jsonb), array_agg(0::float8), array_agg(now()), array_agg(1::float8)) FROM task_live WHERE id = %s
"""


def test_a_task_that_changes_shows_while_one_types_and_reads(page: Page, server: Served) -> None:
    ((number,),) = server.sql(_ADD, ["test_live"])
    page.set_viewport_size({"width": 1280, "height": 500})
    page.goto(f"{server.address}/admin/tasks")
    expect(page.locator("#live")).to_have_text("Live")
    row = page.locator("tbody tr", has=page.locator(f"#task-{number}"))
    expect(row).to_contain_text("pending")
    search = page.get_by_role("combobox", name="Search")
    search.focus()
    search.press_sequentially("role:payl")
    assert server.sql(_CLAIM) == [(number,)]
    claimed = time.monotonic()
    expect(row).to_contain_text("claimed", timeout=15_000)
    assert time.monotonic() - claimed < SECONDS
    expect(search).to_be_focused()
    expect(search).to_have_value("role:payl")
    link = page.locator("tbody a.row").nth(4)
    link.focus()
    name = link.get_attribute("id")
    page.evaluate("scrollTo(0, 150)")
    at = page.evaluate("scrollY")
    assert at > 0
    server.sql(_FINISH, [number])
    finished = time.monotonic()
    expect(row).to_contain_text("completed", timeout=15_000)
    assert time.monotonic() - finished < SECONDS
    assert page.evaluate("document.activeElement.id") == name
    assert page.evaluate("scrollY") == at
    expect(search).to_have_value("role:payl")
    server.sql("DELETE FROM task_history WHERE id = %s", [number])


@pytest.fixture
def balancer(server: Served) -> Iterator[Balancer]:
    """The run's server and a second one on the same database, behind a balancer that knows nothing of sessions."""
    environ = {**os.environ, "DATABASE_URL": server.database, "STORAGE_PATH": f"{server.home}/storage"}
    second = subprocess.Popen(
        [sys.executable, "-m", "menuwatch.cli.main", "server", "--port", "0"],
        cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert second.stdout is not None
        said = next((found for line in second.stdout if (found := re.search(r"listening on (http://\S+)", line))), None)
        assert said is not None, "the second server did not start"
        places = [urlsplit(server.address), urlsplit(said[1])]
        with balanced([(str(place.hostname), int(place.port or 0)) for place in places]) as made:
            yield made
    finally:
        second.terminate()
        second.communicate(timeout=30)


def test_two_servers_behind_a_balancer_are_as_good_as_one(
    browser: Browser, server: Served, login_state: object, balancer: Balancer
) -> None:
    address = f"http://127.0.0.1:{balancer.port}"
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    complaints: list[str] = []
    watch(page, complaints)
    page.goto(f"{address}/admin/tasks")
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(NEW_PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("h1")).to_have_text("Tasks")
    first = page.locator("tbody a.row").first.inner_text()
    page.get_by_role("link", name="Next page").click()
    expect(page).to_have_url(re.compile("cursor="))
    expect(page.locator("tbody a.row").first).not_to_have_text(first)
    page.get_by_role("link", name="First page").click()
    expect(page.locator("tbody a.row").first).to_have_text(first)

    ((number,),) = server.sql(_ADD, ["two servers"])
    page.goto(f"{address}/admin/tasks/{number}")
    page.get_by_label("Priority").fill("905")
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_role("status")).to_contain_text("from 900 to 905")

    for turn in range(12):
        if balancer.who("/admin/live") == {0, 1} and turn > 1:
            break
        page.goto(f"{address}/admin/tasks?q=args.why:%22two%20servers%22")
        expect(page.locator("#live")).to_have_text("Live")
        server.sql(_ADD, ["two servers"])
        # A change before the stream's first look at the database is shown by the refresh every 30 s.
        expect(page.locator("tbody tr")).to_have_count(turn + 2, timeout=40_000)
        # A page may take an even number of requests, and its stream the same server each time: one more every other time.
        if turn % 2:
            page.request.get(f"{address}/healthz")
    assert balancer.who("/admin/live") == {0, 1}, balancer.served
    assert balancer.who("/admin/tasks") == {0, 1}
    assert not complaints, complaints
    context.close()
    server.sql("SELECT cancel_tasks(array_agg(id)) FROM task_live WHERE payload ->> 'why' = 'two servers'")
