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
def broken(server: Served) -> Iterator[None]:
    """Two failures of this test."""
    server.sql("SELECT ensure_task_history_partition(now() - interval '1 minute')")
    server.sql(_OVER)
    yield
    server.sql("SELECT cancel_tasks(array_agg(id)) FROM task_live WHERE payload ->> 'why' = 'test_failures'")
    server.sql("DELETE FROM task_history WHERE payload ->> 'why' = 'test_failures'")


def test_failures_by_cause(look: Look, page: Page, server: Served) -> None:
    look("/admin/failures", "failures")
    page.get_by_label("Period").select_option(label="Last hour")
    expect(page.locator("main")).to_contain_text("last hour")
    page.get_by_label("Role").select_option("store_discovery")
    expect(page.locator("main")).to_contain_text("No failed tasks")
    expect(page.get_by_label("Period").locator("option:checked")).to_have_text("Last hour")


def test_a_reason_stays_with_its_failure_when_their_order_changes(page: Page, server: Served, broken: None) -> None:
    mine = _OVER.replace("the views refused to be refreshed, number ' || n", "out of memory'")
    server.sql(mine.replace("'dutchie'", "'weedmaps'").replace("(1, 2)", "(1, 1)"))
    page.goto(f"{server.address}/admin/failures?role=analytics_refresh")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("the views refused")
    rows.first.locator("summary").click()
    reason = rows.first.get_by_label("Reason")
    reason.press_sequentially("known since")
    server.sql(mine.replace("'dutchie'", "'weedmaps'").replace("(1, 2)", "(1, 9)"))
    page.wait_for_timeout(2500)
    expect(rows.first).to_contain_text("the views refused")
    expect(reason).to_have_value("known since")
    page.locator("h1").click()
    expect(rows.first).to_contain_text("out of memory")
    expect(rows.nth(1).get_by_label("Reason")).to_have_value("known since")
    expect(rows.first.locator("input[name=reason]")).to_have_value("")


def test_a_group_is_retried_at_once(page: Page, server: Served, broken: None) -> None:
    page.goto(f"{server.address}/admin/failures?role=analytics_refresh")
    group = page.locator("tbody tr", has_text="the views refused to be refreshed, number #")
    expect(group).to_contain_text("2")
    group.get_by_role("link", name="Retry this failure").click()
    expect(page.locator("h1")).to_have_text("Retry 2 tasks?")
    page.get_by_role("button", name="Retry 2 tasks").click()
    expect(page.get_by_role("status")).to_contain_text("2 tasks retried")
    again = "SELECT count(*) FROM task_live WHERE payload ->> 'why' = 'test_failures'"
    assert server.sql(again) == [(2,)]
