"""Figures of search crawls in the metrics of a server."""

from __future__ import annotations

from tests.api.shop import Shop
from tests.api.test_metrics import _do, _scrape


async def test_search_crawls(shop: Shop) -> None:
    pool = shop.pool
    await _do(
        pool,
        "INSERT INTO crawl_jobs (site, provider, status, keywords, max_pages, next_submit_after, next_submission_at, created_at)"
        " VALUES ('s', 'p', 'running', '{a}', 1, now(), now() - interval '30 seconds', now()),"
        " ('s', 'p', 'running', '{a}', 1, now(), now() + interval '1 hour', now()),"
        " ('s', 'p', 'completed', '{a}', 1, now(), NULL, now())",
    )
    await _do(
        pool,
        "INSERT INTO crawl_queue (job_id, url, url_type, keyword, priority, status, next_attempt_at, created_at, deadline_at)"
        " VALUES (1, 'x', 'search', 'a', 1, 'submitted', now(), now(), now()),"
        " (1, 'y', 'product', 'a', 2, 'pending', now(), now(), NULL)",
    )
    await _do(
        pool,
        "INSERT INTO crawl_deliveries (item_id, attempt, received_at, visible_at, ok)"
        " VALUES (1, 1, now(), now() - interval '60 seconds', true), (1, 1, now(), now() + interval '1 hour', true)",
    )
    found = await _scrape(shop)
    assert found["menuwatch_crawls_running",] == 2
    assert found["menuwatch_crawl_pages_under_way",] == 1
    assert found["menuwatch_crawl_deliveries_waiting",] == 2
    assert 30 <= found["menuwatch_crawls_late_seconds",] < 60
    assert 60 <= found["menuwatch_crawl_deliveries_oldest_seconds",] < 90
