"""The log of a task and of a worker: what is seen, that it shows its end, and that new lines come by themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served

_LINES = """
INSERT INTO log_lines (worker_id, seq, at, level, action, message, details)
SELECT 'lou', %(first)s + n, now(), CASE WHEN n = 7 THEN 'error' ELSE 'info' END, 'spoken', 'line ' || %(first)s + n || '.',
       CASE WHEN n = 7 THEN '{"exception": "Traceback (most recent call last):"}' ELSE '{"pages": 3}' END::json
  FROM generate_series(1, %(count)s) n
"""


@pytest.fixture
def lou(server: Served) -> Iterator[str]:
    """A worker of this test's own with 250 lines."""
    server.sql(
        "INSERT INTO worker_registry (worker_id, friendly_name, pod, host, status, last_heartbeat_at) "
        "VALUES ('lou', 'Lou', 'Lima', 'l', 'active', now() + interval '1 hour')"
    )
    server.sql(_LINES, {"first": 0, "count": 250})
    yield "lou"
    server.sql("DELETE FROM worker_registry WHERE worker_id = 'lou'")
    server.sql("DELETE FROM log_lines WHERE worker_id = 'lou'")


def test_the_logs_are_looked_at(look: Look, page: Page, server: Served) -> None:
    ((task, worker),) = server.sql(
        "SELECT task_id, worker_id FROM log_lines WHERE level = 'error' AND task_id IS NOT NULL ORDER BY at LIMIT 1"
    )
    look(f"/admin/tasks/{task}", "task-log")
    expect(page.locator("#logs")).to_contain_text("1,200 log lines of its workers were dropped while it ran")
    page.get_by_text("Traceback", exact=True).click()
    expect(page.get_by_label("Traceback")).to_contain_text("dutchie answered 502 to page 3 of 9")
    look(f"/admin/workers/{worker}", "worker-log")


def test_the_end_is_shown_and_new_lines_come_by_themselves(page: Page, server: Served, lou: str) -> None:
    page.goto(f"{server.address}/admin/workers/{lou}")
    section = page.locator("#logs")
    section.scroll_into_view_if_needed()
    expect(section.get_by_text("line 250.")).to_be_in_viewport()
    expect(section.get_by_text("line 51.")).not_to_be_in_viewport()
    expect(section.get_by_text("line 50.")).to_have_count(0)
    page.locator("#live[data-kind=live]").wait_for()
    server.sql(_LINES, {"first": 250, "count": 5})
    expect(section.get_by_text("line 255.")).to_be_in_viewport(timeout=15_000)
    section.get_by_role("link", name="Older lines").click()
    expect(section.get_by_text("line 1.")).to_have_count(1)
    section.get_by_role("link", name="Newest lines").click()
    expect(section.get_by_text("line 255.")).to_be_in_viewport()
    section.get_by_role("link", name="Warnings and errors").click()
    expect(section.locator("ol.log time")).to_have_count(1)
    # What is open stays open when news come.
    section.get_by_text("Traceback", exact=True).click()
    server.sql(_LINES, {"first": 255, "count": 7})
    expect(section.locator("ol.log time")).to_have_count(2, timeout=15_000)
    expect(section.get_by_label("Traceback").first).to_be_visible()
