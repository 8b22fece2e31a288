"""Readings for alert rules about operations: the values that the overview and the doctor show."""

from __future__ import annotations

import math
from collections.abc import Collection

from menuwatch.alerts.model import Condition
from menuwatch.alerts.operations import Reading, Readings, ReadOperations
from menuwatch.config.settings import Settings
from menuwatch.core.format import approx_duration, duration, percent, pluralize
from menuwatch.db import sql
from menuwatch.db.clock import database_now
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all
from menuwatch.ops.backup import log as backups
from menuwatch.ops.disk_space import least_free_anywhere
from menuwatch.ops.overview import Overview, overview
from menuwatch.quality import service as quality

_q = sql.load(__package__, "alert_readings.sql")


def reader(settings: Settings) -> ReadOperations:
    """Takes readings of the installation; disk space is the least of all machines that run servers or workers."""

    async def read(conn: Connection, conditions: Collection[Condition]) -> Readings:
        readings: dict[Condition, Reading] = {}
        if "disk_low" in conditions:
            readings["disk_low"] = await _disk(conn, settings)
        if "backup_age" in conditions:
            readings["backup_age"] = await _backup(conn)
        if "schema_drift" in conditions:
            readings["schema_drift"] = await _drift(conn)
        if {"quality_findings", "new_category_words"} & set(conditions):
            readings |= await _quality(conn)
        if set(conditions) - set(readings):
            readings |= _work(await overview(conn))
        return {name: reading for name, reading in readings.items() if name in conditions}

    return read


def _work(seen: Overview) -> dict[Condition, Reading]:
    stores, proxies, workers = seen.stores, seen.proxies, seen.workers
    failed = seen.failures.tasks
    finished = failed + seen.completed_last_hour
    rate = failed / finished if finished else 0.0
    waited = seen.oldest_ready_seconds or 0.0
    current = stores.crawled - stores.never - stores.stale
    active = f"{proxies.active:,} of {pluralize(proxies.known, 'proxy', 'proxies')} active"
    return {
        "stores_stale": Reading(stores.stale, f"{stores.stale:,} of {pluralize(stores.crawled, 'store')} stale"),
        "failure_rate": Reading(
            rate * 100,
            f"{percent(rate, 1)} of {pluralize(finished, 'task')} of the last hour failed and did not succeed since ({failed:,})",
        ),
        "backlog_age": Reading(
            waited / 60,
            f"the oldest of {pluralize(seen.ready, 'ready task')} has waited {duration(waited)}"
            if seen.ready
            else "queue empty",
        ),
        "no_worker": Reading(
            workers.live, f"{pluralize(workers.live, 'worker')} online, {pluralize(seen.pending, 'task')} pending"
        ),
        # Before the first store is crawled nothing is missing.
        "coverage_below": Reading(
            current / stores.crawled * 100 if stores.crawled else 100.0,
            f"{current:,} of {pluralize(stores.crawled, 'crawled store')} with a current menu",
        ),
        "quarantined": Reading(seen.quarantined, f"{pluralize(seen.quarantined, 'payload')} in quarantine"),
        # Before the first proxy is added nothing is down.
        "proxies_down": Reading(proxies.active if proxies.known else math.inf, active),
        "proxies_below": Reading(proxies.active, active),
    }


async def _disk(conn: Connection, settings: Settings) -> Reading:
    machine, place, free = await least_free_anywhere(conn, settings)
    return Reading(free / 1e9, f"{free / 1e9:.1f} GB free at {place} on {machine}")


async def _backup(conn: Connection) -> Reading:
    newest = await backups.newest(conn, limit=1)
    if not newest:
        return Reading(math.inf, "no backup yet")
    seconds = (await database_now(conn) - newest[0]["made_at"]).total_seconds()
    return Reading(seconds / 3600, f"the last backup is {approx_duration(max(seconds, 0))} old")


async def _quality(conn: Connection) -> dict[Condition, Reading]:
    critical = (await quality.get_summary(conn)).critical
    words = await quality.count_new_words(conn)
    return {
        "quality_findings": Reading(critical, f"{pluralize(critical, 'critical finding')} of data quality open"),
        "new_category_words": Reading(words, f"{pluralize(words, 'new category word')} in the last 24 hours"),
    }


async def _drift(conn: Connection) -> Reading:
    (row,) = await fetch_all(conn, _q.unreadable_menus, {})
    detail = (
        f"{pluralize(row['unreadable'], 'newest menu')} of {pluralize(row['stores'], 'store')} cannot be read in full"
    )
    return Reading(row["unreadable"], detail)
