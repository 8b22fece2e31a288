"""The figures of the database: right, cheap, shared by all who ask at once, and described where people look them up."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from menuwatch.api.app import AppContext, create_app
from menuwatch.api.routes.metrics import DatabaseMetrics, ImageCacheMetrics
from menuwatch.config.settings import Settings
from menuwatch.db.pool import Pool, connect
from menuwatch.ops import metrics as figures
from menuwatch.ops.metrics import Figures, Reader
from menuwatch.web.request_middleware import Traffic
from menuwatch.web.visit_log import results
from menuwatch.workers.engine.metrics import WorkerMetrics
from tests.api.shop import Shop, item

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.md"


async def _do(pool: Pool, query: str, *values: Any) -> list[Any]:
    async with pool.connection() as conn:
        cursor = await conn.execute(query.encode(), values)
        return await cursor.fetchall() if cursor.description else []


async def _scrape(shop: Shop) -> dict[tuple[str, ...], float]:
    """Value by name and label values, in the order of the labels' names."""
    shop.http._transport.app.state.figures = None  # type: ignore[attr-defined]
    answer = await shop.http.get("/metrics")
    assert answer.status_code == 200
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


async def _ended(
    pool: Pool, n: int, minutes_ago: float, *, status: str = "completed", role: str = "payload_fetch"
) -> None:
    await _do(pool, "SELECT ensure_task_history_partition(now() - make_interval(secs => %s))", minutes_ago * 60)
    await _do(
        pool,
        "INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, priority, attempt, retry_count,"
        " max_retries, postpone_count, role, platform, status, worker_id, error_message, payload)"
        " SELECT nextval('task_ids'), at, at, at, at, 0, 1, 0, 3, 0, %s, 'dutchie', %s, 'w',"
        " CASE WHEN %s <> 'completed' THEN 'why' END, '{}'"
        " FROM (SELECT now() - make_interval(secs => %s)) t(at), generate_series(1, %s)",
        role, status, status, minutes_ago * 60, n,
    )  # fmt: skip


async def test_the_queue_by_hand(shop: Shop) -> None:
    pool = shop.pool
    # Ten stores ready, the oldest for five minutes; one parked behind the first; two later, one of which has come due unseen.
    await _do(
        pool, "INSERT INTO worker_tasks (role, dispensary_id) SELECT 'payload_fetch', n FROM generate_series(1, 10) n"
    )
    await _do(pool, "UPDATE task_live SET created_at = now() - interval '5 minutes' WHERE dispensary_id = 4")
    await _do(
        pool,
        "SELECT enqueue_tasks('{payload_fetch}', '{1}', '{0}', ARRAY['{}'::jsonb], ARRAY[NULL::timestamptz], '{dutchie}', '{3}',"
        " '{false}')",
    )
    await _do(
        pool,
        "INSERT INTO worker_tasks (role, dispensary_id, scheduled_for)"
        " SELECT 'product_discovery', n, now() + interval '1 day' FROM generate_series(20, 21) n",
    )
    await _do(
        pool, "UPDATE task_live SET scheduled_for = now() - interval '90 seconds', attempt = 1 WHERE dispensary_id = 20"
    )
    await _do(pool, "UPDATE task_live SET created_at = now() - interval '9 hours' WHERE dispensary_id = 20")
    # Three at work, one of them for a worker that died.
    await _do(
        pool,
        "INSERT INTO worker_tasks (role, dispensary_id) SELECT 'entry_point_discovery', n FROM generate_series(31, 33) n",
    )
    await _do(pool, "SELECT claim_tasks('{entry_point_discovery}', 'w', 3)")
    await _do(pool, "UPDATE task_live SET claimed_at = now() - interval '11 minutes' WHERE dispensary_id = 32")
    found = await _scrape(shop)
    assert {key[1:]: value for key, value in found.items() if key[0] == "menuwatch_queue_tasks"} == {
        ("payload_fetch", "ready"): 10, ("payload_fetch", "parked"): 1,
        ("product_discovery", "ready"): 1, ("product_discovery", "scheduled"): 1,
        ("entry_point_discovery", "active"): 3,
    }  # fmt: skip
    age = "menuwatch_queue_oldest_ready_seconds"
    assert 300 <= found[age, "payload_fetch"] < 330
    assert 90 <= found[age, "product_discovery"] < 120, "since it was due, not since it was made"
    assert (age, "entry_point_discovery") not in found
    assert found["menuwatch_queue_retries_waiting", "product_discovery"] == 1
    assert found["menuwatch_queue_retries_waiting", "payload_fetch"] == 0
    assert found["menuwatch_queue_stale_tasks", "entry_point_discovery"] == 1


async def test_what_ended_in_the_last_hour(shop: Shop) -> None:
    pool = shop.pool
    await _do(pool, "SELECT ensure_task_history_partition(now() - interval '2 hours')")
    await _ended(pool, 3, 0.1)
    await _ended(pool, 4, 58)
    await _ended(pool, 5, 62)
    await _ended(pool, 2, 30, status="failed")
    await _ended(pool, 1, 10, status="cancelled", role="product_refresh")
    name = "menuwatch_tasks_ended_last_hour"
    assert {k[1:]: v for k, v in (await _scrape(shop)).items() if k[0] == name} == {
        ("completed", "payload_fetch"): 7, ("failed", "payload_fetch"): 2, ("cancelled", "product_refresh"): 1,
    }  # fmt: skip


async def test_each_minute_is_counted_once(pool: Pool) -> None:
    reader = Reader(pool, fresh_seconds=0, share=0)
    await _do(pool, "SELECT ensure_task_history_partition(now() - interval '2 hours')")
    await _ended(pool, 3, 0)
    await _ended(pool, 4, 30)
    assert (await reader.read()).ended == {("payload_fetch", "completed"): 7}
    await _ended(pool, 2, 0)
    await _ended(pool, 1, 0, status="failed")
    assert (await reader.read()).ended == {("payload_fetch", "completed"): 9, ("payload_fetch", "failed"): 1}
    # Long settled minutes are remembered, not looked at again.
    await _do(pool, "DELETE FROM task_history WHERE completed_at < now() - interval '20 minutes'")
    assert (await reader.read()).ended == {("payload_fetch", "completed"): 9, ("payload_fetch", "failed"): 1}
    # What was remembered leaves the hour in its time.
    old = min(reader._minutes)
    reader._minutes[old - timedelta(minutes=40)] = reader._minutes.pop(old)
    assert (await reader.read()).ended == {("payload_fetch", "completed"): 5, ("payload_fetch", "failed"): 1}


async def test_workers_schedules_payloads_and_maintenance(shop: Shop) -> None:
    pool = shop.pool
    for name, status, silent in (("a", "active", 5), ("b", "active", 125), ("c", "paused", 10), ("d", "stopped", 9999)):
        await _do(
            pool,
            "INSERT INTO worker_registry (worker_id, friendly_name, host, status, last_heartbeat_at)"
            " VALUES (%s, 'n', 'h', %s, now() - make_interval(secs => %s))",
            name, status, silent,
        )  # fmt: skip
    for name, due, enabled, error in (
        ("on time", 3600, True, None), ("just due", -60, True, None), ("late", -7200, True, "boom"), ("off", -9999, False, "bang"),
    ):  # fmt: skip
        await _do(
            pool,
            "INSERT INTO task_schedules (name, role, interval_hours, next_run_at, enabled, last_error)"
            " VALUES (%s, 'payload_fetch', 4, now() + make_interval(secs => %s), %s, %s)",
            name, due, enabled, error,
        )  # fmt: skip
    store = await shop.store()
    for hours, status in ((0, "ok"), (1, "quarantined"), (2, "rejected"), (3, "quarantined")):
        reason = None if status == "ok" else "why"
        await shop.archived(store, hours, b"<html>" if status == "rejected" else b"{}", status=status, reason=reason)
    await _do(
        pool,
        "UPDATE raw_crawl_payloads SET fetched_at = now() - interval '5 minutes' - id * interval '1 microsecond'"
        " WHERE status <> 'rejected' AND id <> 4",
    )
    await _do(
        pool,
        "INSERT INTO maintenance_runs VALUES ('history', to_timestamp(1700000000), now(), NULL), ('records', NULL, now(), 'boom')",
    )
    found = await _scrape(shop)
    assert {k[1]: v for k, v in found.items() if k[0] == "menuwatch_workers"} == {
        "active": 2,
        "paused": 1,
        "stopped": 1,
    }
    assert found["menuwatch_workers_silent",] == 1
    assert 125 <= found["menuwatch_workers_oldest_heartbeat_seconds",] < 160
    assert (found["menuwatch_schedules_late",], found["menuwatch_schedules_failing",]) == (1, 1)
    assert 7200 <= found["menuwatch_schedules_late_seconds",] < 7230
    (due,) = await _do(pool, "SELECT extract(epoch FROM next_run_at)::float8 FROM task_schedules WHERE name = 'late'")
    assert found["menuwatch_schedules_next_due_timestamp_seconds",] == pytest.approx(due[0], abs=0.001)
    assert {k[1]: v for k, v in found.items() if k[0] == "menuwatch_payloads_last_hour"} == {"ok": 1, "quarantined": 1}
    assert found["menuwatch_payloads_quarantined",] == 2
    assert {k[1]: v for k, v in found.items() if k[0] == "menuwatch_maintenance_failing"} == {
        "history": 0,
        "records": 1,
    }
    assert {k[1]: v for k, v in found.items() if k[0] == "menuwatch_maintenance_succeeded_timestamp_seconds"} == {
        "history": 1.7e9
    }


async def test_who_holds_a_transaction_open_shows(shop: Shop, database_url: str) -> None:
    assert (await _scrape(shop))["menuwatch_database_oldest_transaction_seconds",] == 0
    async with await connect(database_url) as other, other.transaction():
        await other.execute("SELECT pg_current_xact_id()")
        assert 0 < (await _scrape(shop))["menuwatch_database_oldest_transaction_seconds",] < 60


async def test_hosts_proxies_and_what_was_fetched(shop: Shop) -> None:
    pool = shop.pool
    for host, verdict, requests, waited in (("a", "ok", 7, 1500), ("a", "blocked", 2, 500), ("b", "ok", 1, 0)):
        await _do(
            pool, "INSERT INTO fetch_totals VALUES (%s, %s, %s, 1, 100, %s, 3000)", host, verdict, requests, waited
        )
    await _do(
        pool,
        "INSERT INTO hosts (host, rate, burst, concurrency, current_rate, cooldown_until, cooldown_reason)"
        " VALUES ('a', 2, 4, 6, 0.5, now() + interval '1 hour', 'why'), ('b', 2, 4, 6, 2, now() - interval '1 hour', 'why')",
    )
    await _do(
        pool,
        "INSERT INTO proxies (host, port, is_active, disabled_at, disabled_reason) VALUES ('p1', 1, true, NULL, NULL),"
        " ('p2', 1, true, NULL, NULL), ('p3', 1, false, NULL, NULL), ('p4', 1, false, now(), 'too dear')",
    )
    await _do(
        pool,
        "INSERT INTO identity_leases (host, proxy_id, leased_at, expires_at)"
        " SELECT 'a', id, now(), now() + CASE host WHEN 'p1' THEN interval '1 hour' ELSE '-1 s' END FROM proxies",
    )
    found = await _scrape(shop)

    def family(name: str) -> dict[tuple[str, ...], float]:
        return {key[1:]: value for key, value in found.items() if key[0] == f"menuwatch_{name}"}

    assert family("fetch_requests_total") == {("a", "ok"): 7, ("a", "blocked"): 2, ("b", "ok"): 1}
    assert family("fetch_bytes_total") == {("a",): 200, ("b",): 100}
    assert family("fetch_wait_seconds_total") == {("a",): 2, ("b",): 0}
    assert family("fetch_seconds_total") == {("a",): 6, ("b",): 3}
    assert family("host_current_rate") == {("a",): 0.5, ("b",): 2}
    assert family("host_open") == {("a",): 0, ("b",): 1}
    assert {key for key, value in family("host_closed").items() if value} == {("a", "cooling")}
    assert len(family("host_closed")) == 6, "a reason that does not hold is 0"
    assert family("host_leases") == {("a",): 1, ("b",): 0}, "one that lapsed does not count"
    assert family("proxies") == {("active",): 2, ("untested",): 0, ("inactive",): 1, ("disabled",): 1}


async def test_many_who_ask_at_once_share_one_reading(pool: Pool) -> None:
    now = [0.0]
    reader = Reader(pool, monotonic=lambda: now[0])
    readings = await asyncio.gather(*(reader.read() for _ in range(50)))
    assert (reader.readings, len({id(one) for one in readings})) == (1, 1)
    now[0] = figures.FRESH_SECONDS - 0.1
    assert await reader.read() is readings[0]
    now[0] = figures.FRESH_SECONDS
    assert (await reader.read()).up
    assert reader.readings == 2
    # One who goes away does not take the answer of the others along.
    now[0] += 10
    gone, stays = asyncio.create_task(reader.read()), asyncio.create_task(reader.read())
    await asyncio.sleep(0)
    gone.cancel()
    assert (await stays).up
    assert reader.readings == 3


async def test_a_group_that_takes_too_long_is_left_out(
    pool: Pool, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "_STATEMENT_MS", 100)
    await _do(pool, "INSERT INTO worker_tasks (role) VALUES ('store_discovery')")
    async with await connect(database_url) as other, other.transaction():
        await other.execute("LOCK TABLE worker_registry")
        found = await Reader(pool).read()
    assert (found.up, found.missing, found.workers) == (True, ["workers", "assessment"], None)
    assert [(one.role, one.state, one.n) for one in found.queue] == [("store_discovery", "ready", 1)]
    assert found.schedules is not None


async def test_history_costs_a_scrape_nothing(pool: Pool) -> None:
    """The statements read the minutes they count and none of the days before."""
    for days in range(1, 6):
        await _do(pool, "SELECT ensure_task_history_partition(now() - make_interval(days => %s))", days)
        await _ended(pool, 2000, days * 1440)
    await _ended(pool, 10, 0)
    await _do(pool, "ANALYZE")
    plan = await _do(
        pool,
        "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "
        + re.sub(r"%\(since\)s", "(now() - interval '2 minutes')", figures._q.ended),
    )
    assert plan[0][0][0]["Plan"]["Shared Hit Blocks"] + plan[0][0][0]["Plan"]["Shared Read Blocks"] < 60


def _described(families: Iterable[Metric]) -> dict[str, tuple[str, str, tuple[str, ...] | None]]:
    suffixes = {"counter": "_total", "info": "_info"}
    return {
        f.name + suffixes.get(f.type, ""): (f.type, f.documentation, tuple(getattr(f, "_labelnames", ())) or None)
        for f in families
    }


def test_every_metric_is_documented() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    page = {name: (kind, meaning, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels, meaning in rows}
    assert len(page) == len(rows)
    visits = CollectorRegistry()
    results(visits)
    code = {
        **_described(DatabaseMetrics(Figures()).collect()),
        **_described(ImageCacheMetrics().collect()),
        **_described(Traffic().registry.collect()),
        **_described(visits.collect()),
        **_described(WorkerMetrics().collect()),
    }
    assert list(page) == list(code)
    for name, (kind, meaning, labels) in code.items():
        assert page[name][:2] == (kind, meaning)
        if labels is not None:
            assert page[name][2] == labels
    named = set(re.findall(r"`(menuwatch_\w+)", PAGE.read_text(encoding="utf-8")))
    assert named <= set(code), "no alert on a metric that is not there"


async def test_a_database_that_is_away_is_a_figure(database_url: str, server_url: str, pool: Pool) -> None:
    reader = Reader(pool)
    name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'.encode())
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        found = await reader.read()
        admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true'.encode())
    assert not found.up
    assert {family.name: len(family.samples) for family in DatabaseMetrics(found).collect() if family.samples} == {
        "menuwatch_database_up": 1, "menuwatch_figures_seconds": 1, "menuwatch_figures_missing": 1,
    }  # fmt: skip


async def test_payloads_and_requests(shop: Shop) -> None:
    store = await shop.store()
    await shop.crawl(store, 0, [item("a")])
    await shop.http.get("/api/stores")
    found = await _scrape(shop)
    assert found["menuwatch_http_requests_total", "GET", "/api/stores", "200"] == 1
    assert ("menuwatch_payloads_last_hour", "ok") not in found, "it was fetched in the spring"


async def test_pictures_and_alerts(shop: Shop) -> None:
    pool = shop.pool
    await _do(
        pool,
        "INSERT INTO image_urls (id, url, host, status, due_at, error) VALUES"
        " (1, 'https://i.example/1', 'i.example', 'waiting', now() - interval '90 seconds', NULL),"
        " (2, 'https://i.example/2', 'i.example', 'waiting', now() + interval '1 hour', 'HTTP 429'),"
        " (3, 'https://i.example/3', 'i.example', 'failed', NULL, 'HTTP 404')",
    )
    await _do(
        pool,
        "INSERT INTO image_references (brand, url, status, url_id, error) VALUES ('a', 'https://i.example/1', 'waiting', 1, NULL),"
        " ('b', 'https://i.example/3', 'failed', 3, 'HTTP 404'), ('c', 'https://i.example/4', 'queued', NULL, NULL),"
        " ('d', 'https://i.example/5', 'queued', NULL, NULL)",
    )
    await _do(
        pool,
        "INSERT INTO alert_rules (id, name, condition, reach, armed_at, created_at, updated_at) OVERRIDING SYSTEM VALUE"
        " VALUES (1, 'r', 'circuit_opened', 'operations', now(), now(), now())",
    )
    await _do(
        pool,
        "INSERT INTO alert_events (rule_id, source, fired_at, due_at, notified, facts) VALUES"
        " (1, 'a', now(), now() + interval '1 hour', false, '{}'), (1, 'b', now(), now(), true, '{}')",
    )
    await _do(
        pool,
        "INSERT INTO alert_deliveries (rule_id, channel, event_ids, payload, status, next_attempt_at, created_at, delivered_at) VALUES"
        " (1, 'c', '{}', '{}', 'delivered', NULL, now() - interval '3 hours', now()),"
        " (1, 'c', '{}', '{}', 'waiting', now(), now() - interval '2 hours', NULL),"
        " (1, 'c', '{}', '{}', 'sending', now(), now() - interval '1 hour', NULL),"
        " (1, 'c', '{}', '{}', 'failed', NULL, now() - interval '4 hours', NULL)",
    )
    await _do(
        pool,
        "INSERT INTO price_watches (token_hash, channel, address, token, address_mark, subject, store_id, condition, phase,"
        " currency, created_at, confirmed_at, due_at) SELECT sha256(n::text::bytea), 'mail', 'a', 't', 'm', 'store', 1, 'new_deal',"
        " 'armed', 'USD', now(), CASE WHEN n < 3 THEN now() END, CASE WHEN n > 2 THEN now() END FROM generate_series(1, 3) n",
    )
    await _do(
        pool,
        "INSERT INTO dispensaries (slug, name, name_raw, last_crawled_at) VALUES"
        " ('m1', 'm', 'm', now() - interval '20 minutes'), ('m2', 'm', 'm', now() - interval '1 minute'), ('m3', 'm', 'm', NULL)",
    )
    await _do(pool, "INSERT INTO match_dirty_blocks (block) VALUES ('acme')")
    await _do(
        pool,
        "INSERT INTO match_reviews (a, b, confidence, together, impact, reasons, skipped_at) VALUES"
        " (1, 2, 0.5, false, 1, '[]', NULL), (1, 3, 0.5, false, 1, '[]', now())",
    )
    found = await _scrape(shop)
    assert {key[1]: value for key, value in found.items() if key[0] == "menuwatch_matching_waiting"} == {
        "stores": 2, "blocks": 1, "reviews": 1,
    }  # fmt: skip
    assert 1200 <= found["menuwatch_matching_oldest_seconds",] < 1230
    assert found["menuwatch_price_watches", "mail"] == 2
    assert found["menuwatch_price_watch_messages_pending", "mail"] == 1
    assert {key[1]: value for key, value in found.items() if key[0] == "menuwatch_images_waiting"} == {
        "queued": 2, "waiting": 2, "failed": 1,
    }  # fmt: skip
    assert 90 <= found["menuwatch_images_oldest_due_seconds",] < 120
    assert found["menuwatch_alert_events_waiting",] == 1
    assert found["menuwatch_alert_deliveries_pending",] == 2
    assert 7200 <= found["menuwatch_alert_deliveries_oldest_pending_seconds",] < 7230
    assert {key[1]: value for key, value in found.items() if key[0] == "menuwatch_alert_deliveries"} == {
        "waiting": 1, "sending": 1, "delivered": 1, "failed": 1,
    }  # fmt: skip


async def test_resized_pictures_are_counted(shop: Shop, tmp_path: Path) -> None:
    settings = Settings(storage_path=tmp_path)
    app = create_app(AppContext(pool=shop.pool, archive=shop.archive, platforms=shop.platforms, settings=settings))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://menuwatch", headers=shop.http.headers
    ) as http:
        mine = dataclasses.replace(shop, http=http)
        before = await _scrape(mine)
        assert (before["menuwatch_image_cache_requests_total", "hit"], before["menuwatch_image_cache_bytes",]) == (0, 0)
        assert before["menuwatch_image_cache_room_bytes",] == 512_000_000
        for _ in range(3):
            await http.get(
                "/img/nothing.webp?w=40", headers={"accept": "image/webp"}
            )  # its stand-in is kept as any picture
        after = await _scrape(mine)
    assert after["menuwatch_image_cache_requests_total", "miss"] == 1
    assert after["menuwatch_image_cache_requests_total", "hit"] == 2
    on_disk = sum(file.stat().st_size for file in (tmp_path / "cache").rglob("*") if file.is_file())
    assert after["menuwatch_image_cache_bytes",] == on_disk > 0
