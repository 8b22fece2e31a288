"""Probes and metrics."""

from __future__ import annotations

import re

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from menuwatch import __version__
from menuwatch.db import migrate
from tests.api.shop import Shop, item
from tests.workers.waiting import until

PROXY = "INSERT INTO proxies (host, port, password) VALUES ('proxy.test', 8080, 'hunter2')"


async def test_healthz_looks_at_nothing(shop: Shop) -> None:
    await shop.pool.close()
    assert await shop.ask("/healthz") == {"status": "ok", "version": __version__}


async def test_ready_with_everything(shop: Shop) -> None:
    await shop.execute(PROXY)
    found = await shop.ask("/readyz")
    assert (found["status"], found["warnings"]) == ("ready", [])
    assert all(check["ok"] for check in found["checks"].values())
    assert found["checks"]["migrations"]["detail"] == f"at schema {migrate.newest()}"
    assert found["checks"]["proxies"]["detail"] == "1 active"


async def test_no_active_proxy_is_a_warning(shop: Shop) -> None:
    await shop.execute(PROXY)
    await shop.execute("UPDATE proxies SET is_active = false")
    found = await shop.ask("/readyz")
    assert found["status"] == "ready"
    assert found["checks"]["proxies"]["ok"] is False
    (warning,) = found["warnings"]
    assert "menuwatch proxies add" in warning


async def test_proxies_that_are_out_are_counted_and_it_says_when_one_is_tried(shop: Shop) -> None:
    await shop.execute(
        "INSERT INTO proxies (host, port, is_active, failure_count, disabled_at, disabled_reason, probe_at)"
        " VALUES ('a.test', 1, false, 5, NULL, NULL, now() + interval '40 s'), ('b.test', 1, false, 5, NULL, NULL,"
        " now() + interval '2 h'), ('c.test', 1, false, 0, now(), 'too dear', NULL)"
    )
    (warning,) = (await shop.ask("/readyz"))["warnings"]
    assert re.fullmatch(
        r"no active proxy: 2 inactive, 1 disabled, next probe in (40|3\d) s; network roles wait until a probe "
        r"succeeds",
        warning,
    )
    await shop.execute("UPDATE proxies SET is_active = true, failure_count = 4 WHERE host = 'a.test'")
    found = await shop.ask("/readyz")
    assert found["warnings"] == []
    assert found["checks"]["proxies"]["detail"] == "1 active, 1 of them failing, 1 inactive, 1 disabled"


async def test_the_only_host_of_a_platform_being_closed_is_a_warning(shop: Shop) -> None:
    await shop.execute(PROXY)
    (host,) = shop.platforms["dutchie"].hosts
    await shop.execute(
        "INSERT INTO hosts (host, rate, burst, concurrency, current_rate) VALUES (%s, 2, 4, 6, 2)", [host]
    )
    assert (await shop.ask("/readyz"))["warnings"] == []
    await shop.execute("UPDATE hosts SET cooldown_until = now() + interval '1 minute', cooldown_reason = 'HTTP 429'")
    assert (await shop.ask("/readyz"))["warnings"] == [], "that is over by itself"
    await shop.execute("UPDATE hosts SET paused_at = now(), paused_reason = 'lawyers'")
    found = await shop.ask("/readyz")
    said = (
        f"{host} is blocked (paused by an operator: lawyers); tasks for dutchie wait: "
        f"resume it with `menuwatch hosts resume {host}`"
    )
    assert (found["status"], found["warnings"]) == ("ready", [said])
    assert found["checks"]["hosts"] == {"ok": False, "detail": said}
    await shop.execute(
        "UPDATE hosts SET paused_at = NULL, paused_reason = NULL, circuit = 'open', circuit_reason = 'HTTP 403',"
        " circuit_until = now() + interval '1 hour'"
    )
    (warning,) = (await shop.ask("/readyz"))["warnings"]
    assert f"{host} is blocked (circuit open" in warning


async def _unready(shop: Shop, *failing: str) -> dict[str, dict[str, str]]:
    answer = await shop.http.get("/readyz")
    body = answer.json()
    assert (answer.status_code, body["status"], body["warnings"]) == (503, "not_ready", [])
    assert [name for name, check in body["checks"].items() if not check["ok"]] == list(failing)
    checks: dict[str, dict[str, str]] = body["checks"]
    return checks


async def test_a_schema_of_another_version_is_not_ready(shop: Shop) -> None:
    await shop.execute(PROXY)
    await shop.execute("UPDATE alembic_version SET version_num = '0000'")
    checks = await _unready(shop, "migrations", "proxies", "hosts")
    assert "menuwatch migrate" in checks["migrations"]["detail"]
    await shop.execute("DROP TABLE alembic_version")
    assert "is empty" in (await _unready(shop, "migrations", "proxies", "hosts"))["migrations"]["detail"]


async def test_storage_that_cannot_be_written_is_not_ready(shop: Shop) -> None:
    await shop.execute(PROXY)
    shop.storage.parent.joinpath("storage").write_text("a file where the folder should be")
    checks = await _unready(shop, "storage")
    assert "cannot be written" in checks["storage"]["detail"]


async def _says(shop: Shop, line: str) -> bool:
    return line in (await shop.http.get("/metrics")).text


async def test_a_database_that_is_gone_is_not_ready(shop: Shop, server_url: str) -> None:
    assert "menuwatch_database_up 1.0" in (await shop.http.get("/metrics")).text
    async with shop.pool.connection() as conn:
        name = conn.info.dbname
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'.encode())
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
    checks = await _unready(shop, "database", "migrations", "proxies", "hosts")
    assert checks["database"]["detail"] == "the database cannot be reached or is overloaded"
    await shop.pool.close()
    # Whoever was let in a moment ago still learns that it is away; nobody else learns anything.
    # Figures are a few seconds old.
    await until(lambda: _says(shop, "menuwatch_database_up 0.0"))
    stranger = await shop.http.get("/metrics", headers={"Authorization": f"Bearer mw_1_{'0' * 64}"})
    assert (stranger.status_code, stranger.json()["type"]) == (503, "/problems/unavailable")
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true'.encode())


async def test_metrics_count_requests_and_tasks(shop: Shop) -> None:
    store = await shop.store()
    await shop.crawl(store, 0, [item("a")])
    await shop.archived(store, 1, b"<html>", status="rejected", reason="html: a page")
    await shop.http.post("/api/tasks", json={"role": "payload_fetch", "dispensary_id": store})
    for number in (1, 2, 3):
        await shop.http.get(f"/api/products/{number}")
    await shop.http.get("/nowhere")
    text = (await shop.http.get("/metrics")).text
    samples = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }

    def value(name: str, **labels: str) -> float | None:
        return samples.get((name, tuple(sorted(labels.items()))))

    one = "/api/products/{product_id}"
    assert value("menuwatch_http_requests_total", route=one, method="GET", status="200") == 1
    assert value("menuwatch_http_requests_total", route=one, method="GET", status="404") == 2
    assert value("menuwatch_http_requests_total", route="unmatched", method="GET", status="404") == 1
    assert value("menuwatch_http_request_duration_seconds_count", route=one, method="GET") == 3
    assert value("menuwatch_queue_tasks", role="payload_fetch", state="ready") == 1
    assert value("menuwatch_payloads_quarantined") == 0
    assert value("menuwatch_database_up") == 1


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_probes_are_not_below_api(shop: Shop, path: str) -> None:
    await shop.refused(f"/api{path}", 404)
