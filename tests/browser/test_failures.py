"""Failures in a browser: looked at, and a group of them retried."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served

_OVER = """
INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, priority, attempt, retry_count, max_retries,
                          postpone_count, role, platform, status, worker_id, error_message, payload)
SELECT nextval('task_ids'), now() - interval '2 minutes', now() - interval '2 minutes', now() - interval '2 minutes',
       now() - interval '1 minute', 0, 1, 0, 3, 0, 'analytics_refresh', 'dutchie', 'failed', 'kryll-0',
       'the views refused to be refreshed, number ' || n, jsonb_build_object('why', 'test_failures', 'n', n)
  FROM generate_series(1, 2) n
"""


@pytest.fixture
def broken(faces: Served) -> Iterator[None]:
    """Two failures of this test."""
    faces.sql(_OVER)
    yield
    faces.sql("SELECT cancel_tasks(array_agg(id)) FROM task_live WHERE payload ->> 'why' = 'test_failures'")
    faces.sql("DELETE FROM task_history WHERE payload ->> 'why' = 'test_failures'")


def test_failures_by_cause(look: Look, page: Page, faces: Served) -> None:
    look("/admin/failures", "failures")
    page.get_by_role("link", name="Last hour").click()
    expect(page.locator(".tabs a[aria-current]")).to_have_text("Last hour")
    page.get_by_label("Role").select_option("store_discovery")
    expect(page.locator("main")).to_contain_text("Nothing failed")
    expect(page.locator(".tabs a[aria-current]")).to_have_text("Last hour")


def test_a_group_is_retried_at_once(page: Page, faces: Served, broken: None) -> None:
    page.goto(f"{faces.address}/admin/failures?role=analytics_refresh")
    group = page.locator("tbody tr", has_text="the views refused to be refreshed, number #")
    expect(group).to_contain_text("2")
    group.get_by_role("link", name="Retry 2 failures of this cause").click()
    expect(page.locator("h1")).to_have_text("Retry 2 tasks?")
    page.get_by_role("button", name="Retry 2 tasks").click()
    expect(page.get_by_role("status")).to_contain_text("2 tasks retried")
    again = "SELECT count(*) FROM task_live WHERE payload ->> 'why' = 'test_failures'"
    assert faces.sql(again) == [(2,)]
