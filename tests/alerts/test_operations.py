"""Rules about operations: when they fire, when they recover, and what is read."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection

from menuwatch.alerts import operations
from menuwatch.alerts import store as alerts
from menuwatch.alerts.delivery_worker import AlertDeliverer
from menuwatch.alerts.model import CONDITIONS, Condition, Rule
from menuwatch.alerts.operations import Reading
from menuwatch.config.settings import Settings
from menuwatch.core.clock import ManualClock
from menuwatch.db.pool import Connection, Pool
from menuwatch.ops import alert_readings
from menuwatch.ops.disk_space import DiskReadings, least_free
from tests.alerts.rule_factory import add_rule, rows
from tests.dashboard import task_rows as given
from tests.market import add_store

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Gauge:
    """A reading that the test sets, in place of the installation's."""

    def __init__(self) -> None:
        self.value = 0.0

    async def __call__(self, conn: Connection, conditions: Collection[Condition]) -> dict[Condition, Reading]:
        return {name: Reading(self.value, f"it is {self.value:g}") for name in conditions}


async def _events(conn: AsyncConnection[Any]) -> list[tuple[str, bool]]:
    found = await rows(
        conn,
        "SELECT facts ->> 'detail' AS detail, (facts -> 'firing')::boolean AS firing FROM alert_events ORDER BY id",
    )
    return [(row["detail"], row["firing"]) for row in found]


async def _run(conn: AsyncConnection[Any], gauge: Gauge, values: list[float], *, start: int = 0) -> int:
    """Sets these values, a minute each; returns the next minute."""
    for minute, value in enumerate(values, start):
        gauge.value = value
        await operations.evaluate(conn, NOW + minute * MINUTE, gauge)
    return start + len(values)


async def test_a_rule_fires_once_and_recovers_when_the_fault_has_been_gone_for_five_minutes(pool: Pool) -> None:
    gauge = Gauge()
    async with pool.connection() as conn:
        await add_rule(conn, "stale", "operations", "stores_stale", amount=Decimal(3))
        at = await _run(conn, gauge, [2, 3, 4, 3])
        assert await _events(conn) == [("it is 3", True)]
        # It hovers around the limit: neither recovered nor fired again.
        at = await _run(conn, gauge, [2, 3, 2, 2, 2, 2, 3, 0, 0, 0, 0, 0], start=at)
        assert len(await _events(conn)) == 1
        at = await _run(conn, gauge, [0, 0], start=at)
        assert await _events(conn) == [("it is 3", True), ("it is 0", False)]
        await _run(conn, gauge, [5], start=at)
        assert (await _events(conn))[2:] == [("it is 5", True)]


async def test_a_minimum_duration_holds_for_firing_and_for_recovery(pool: Pool) -> None:
    gauge = Gauge()
    async with pool.connection() as conn:
        await add_rule(conn, "few", "operations", "proxies_below", amount=Decimal(5), debounce_minutes=10)
        at = await _run(conn, gauge, [4.0] * 9 + [5] + [4] * 10)
        assert await _events(conn) == [], "9 minutes, an interruption, 9 minutes"
        at = await _run(conn, gauge, [4], start=at)
        assert await _events(conn) == [("it is 4", True)]
        at = await _run(conn, gauge, [9.0] * 10, start=at)
        assert len(await _events(conn)) == 1
        await _run(conn, gauge, [9], start=at)
        assert await _events(conn) == [("it is 4", True), ("it is 9", False)]


async def test_many_processes_read_once(pool: Pool) -> None:
    gauge = Gauge()
    gauge.value = 1
    async with pool.connection() as conn:
        await add_rule(conn, "one", "operations", "quarantined", amount=Decimal(1))
        assert [await operations.evaluate(conn, NOW, gauge) for _ in range(3)] == [1, 0, 0]
        assert await operations.evaluate(conn, NOW + operations.EVERY, gauge) == 0, "it is firing already"


@pytest.mark.parametrize("condition", [name for name, kind in CONDITIONS.items() if not kind.about_products])
def test_each_condition_compares_with_its_limit(condition: Condition) -> None:
    kind = CONDITIONS[condition]
    size = {name: Decimal(7) for name in ("amount", "percent") if name in kind.fields}
    rule = Rule(
        id=1, name="r", condition=condition, reach="operations", armed_at=NOW, created_at=NOW, updated_at=NOW, **size
    )  # type: ignore[arg-type]
    limit = 7.0 if size else 1.0
    assert operations.at_fault(rule, Reading(limit, "")) is not kind.below
    assert operations.at_fault(rule, Reading(limit - 0.5, "")) is kind.below


async def test_circuits_are_reported_by_outage_and_recover(pool: Pool) -> None:
    gauge = Gauge()

    async def happened(minute: float, kind: str, circuit: str) -> None:
        await conn.execute(
            "INSERT INTO host_events (host, kind, reason, happened_at) VALUES ('dutchie.com', %s, 'refused', %s)",
            [kind, NOW + minute * MINUTE],
        )
        at = None if circuit == "closed" else NOW + minute * MINUTE
        await conn.execute("DELETE FROM hosts")
        await conn.execute(
            "INSERT INTO hosts (host, rate, current_rate, burst, concurrency, circuit, circuit_opened_at, circuit_until,"
            " circuit_reason) VALUES ('dutchie.com', 1, 1, 1, 1, %s, %s, %s, %s)",
            [circuit, at, at, at and "refused"],
        )

    async def seen(minute: float) -> list[bool]:
        await operations.evaluate(conn, NOW + minute * MINUTE, gauge)
        return [firing for _, firing in await _events(conn)]

    async with pool.connection() as conn:
        await add_rule(conn, "circuits", "operations", "circuit_opened")
        await happened(1, "circuit_opened", "open")
        assert await seen(2) == [True]
        await happened(3, "circuit_opened", "open")
        assert await seen(4) == [True], "it is the same outage"
        await happened(5, "circuit_closed", "closed")
        assert await seen(6) == [True], "it may open again"
        assert await seen(9) == [True, False]
        await happened(20, "circuit_opened", "open")
        assert await seen(21) == [True, False, True]


async def test_the_readings_are_those_of_the_installation(pool: Pool, tmp_path: Any) -> None:
    read = alert_readings.reader(Settings(home=tmp_path))
    async with pool.connection() as conn:
        names = [name for name, kind in CONDITIONS.items() if not kind.about_products and name != "circuit_opened"]
        fresh = await read(conn, names)
        assert set(fresh) == set(names)
        assert {name: fresh[name].value for name in ("stores_stale", "failure_rate", "backlog_age", "no_worker", "quarantined")} == {
            "stores_stale": 0, "failure_rate": 0, "backlog_age": 0, "no_worker": 0, "quarantined": 0,
        }  # fmt: skip
        assert fresh["proxies_down"].value == fresh["backup_age"].value == float("inf")
        assert fresh["disk_low"].value > 0
        store = await add_store(conn)
        await conn.execute(
            "UPDATE dispensaries SET platform_dispensary_id = 'x', crawl_enabled = true, crawl_interval_hours = 4,"
            " last_crawled_at = now() - interval '9 hours' WHERE id = %s",
            [store],
        )
        await conn.execute(
            "INSERT INTO proxies (host, port, is_active) VALUES ('p', 1, false), ('q', 1, true), ('r', 1, true)"
        )
        await conn.execute(
            "INSERT INTO raw_crawl_payloads (dispensary_id, platform, status, reason, fetched_at, path, bytes, raw_bytes, sha256,"
            " content_sha256) VALUES (%s, 'dutchie', 'quarantined', 'schema changed: 5 or more of 9 items cannot be read', now(),"
            " 'p', 1, 1, 's', 's')",
            [store],
        )
        await conn.execute(
            "INSERT INTO backups (host, folder, backup, made_at, rows, files, bytes, missing)"
            " VALUES ('h', '/b', gen_random_uuid()::text, now() - interval '30 hours', 1, 1, 1, 0)"
        )
        now = await read(conn, names)
    assert {name: round(now[name].value) for name in names if name != "disk_low"} == {
        "stores_stale": 1, "failure_rate": 0, "backlog_age": 0, "no_worker": 0, "quarantined": 1, "schema_drift": 1,
        "proxies_down": 2, "proxies_below": 2, "backup_age": 30, "coverage_below": 0, "quality_findings": 0, "new_category_words": 0,
    }  # fmt: skip


async def test_the_fullest_disk_of_all_machines_counts(pool: Pool, tmp_path: Any) -> None:
    settings = Settings(home=tmp_path)
    read, recorder = alert_readings.reader(settings), DiskReadings(pool, settings)
    await recorder.step()
    async with pool.connection() as conn:
        assert await rows(conn, "SELECT machine FROM disk_readings") == [], "no rule asks for it"
        await add_rule(conn, "disk", "operations", "disk_low", amount=5)
        await recorder.step()
        ((mine, free),) = [
            tuple(row.values()) for row in await rows(conn, "SELECT machine, free_bytes FROM disk_readings")
        ]
        assert (mine, free > 0) == (socket.gethostname(), True)
        await conn.execute(
            "INSERT INTO disk_readings VALUES ('full', '/data', 1000, now()), ('gone', '/data', 1, now() - interval '3 minutes')"
        )
        found = (await read(conn, ["disk_low"]))["disk_low"]
    assert (found.value, found.detail) == (1e-6, "0.0 GB free at /data on full")


def test_the_disk_of_the_storage_counts(tmp_path: Path) -> None:
    memory = Path("/dev/shm")
    free = {place: shutil.disk_usage(place).free for place in (tmp_path.resolve(), memory)}
    fuller = min(free, key=lambda place: free[place])
    other = memory if fuller != memory else tmp_path
    found, _ = least_free(Settings(home=other, storage_path=fuller / "not" / "there"))
    assert found == fuller
    assert least_free(Settings(home=other, storage_path=fuller, storage_driver="s3"))[0] == other.resolve()


async def test_a_recovery_is_sent_and_a_muted_rule_sends_nothing(pool: Pool) -> None:
    clock, gauge = ManualClock(NOW), Gauge()
    deliverer = AlertDeliverer(pool, Settings(alert_allow_private=1, alert_attempts=1), read=gauge, clock=clock)
    async with pool.connection() as conn:
        for name in ("loud", "muted", "silent"):
            rule = await add_rule(conn, name, "operations", "no_worker")
            if name != "silent":
                channel = {
                    "kind": "webhook",
                    "address": "http://127.0.0.1:9/x",
                    "secret": "0123456789abcdef",
                    "shown": "http://there/…",
                }
                await alerts.set_channels(conn, rule.id, [channel])
        await conn.execute("UPDATE alert_rules SET muted_until = %s WHERE name = 'muted'", [NOW + timedelta(hours=1)])
        for value in (0, 1, 1, 1, 1, 1, 1):
            gauge.value = value
            await deliverer.step()
            await deliverer.step()
            clock.advance(MINUTE)
        found = await rows(
            conn,
            "SELECT r.name, e.muted, e.notified, d.status FROM alert_events e JOIN alert_rules r ON r.id = e.rule_id"
            " LEFT JOIN alert_deliveries d ON e.id = ANY (d.event_ids) ORDER BY r.id, e.id",
        )
    assert [tuple(row.values()) for row in found] == [
        ("loud", False, True, "failed"),
        ("loud", False, True, "failed"),
        ("muted", True, True, None),
        ("muted", True, True, None),
        ("silent", False, True, None),
        ("silent", False, True, None),
    ]


async def test_the_failure_rate_closes_when_the_task_has_succeeded(pool: Pool, tmp_path: Any) -> None:
    """Of two finished tasks one failed: 50 %. After a success of its store and role nothing is failing."""
    read = alert_readings.reader(Settings(home=tmp_path))
    failing, other = [await given.store(pool, name) for name in ("failing", "other")]
    await given.over(pool, error="HTTP 502", of=failing)
    await given.over(pool, "completed", of=other)
    async with pool.connection() as conn:
        assert (await read(conn, ["failure_rate"]))["failure_rate"].value == 50
    await given.over(pool, "completed", of=failing)
    async with pool.connection() as conn:
        assert (await read(conn, ["failure_rate"]))["failure_rate"].value == 0
