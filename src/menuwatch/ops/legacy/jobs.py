"""The former system's schedules and jobs: listed, disabled, cancelled, and their work taken over.

Every step is idempotent: it does only what is left, so an interrupted run can be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import psycopg
from msgspec import Struct, structs
from psycopg import AsyncConnection
from psycopg import sql as compose

from menuwatch.accounts import audit
from menuwatch.core.errors import Conflict, InvalidField
from menuwatch.core.format import pluralize
from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.query import Row, fetch_all, fetch_one
from menuwatch.ops.legacy.sources import JOBS, NAMES, RUNS, SCHEDULES, Table, find_tables
from menuwatch.queue import store as tasks
from menuwatch.queue.model import PRIORITY_CHAINED, PRIORITY_DISCOVERY, NewTask, Role
from menuwatch.queue.schedules.service import known_state

_q = sql.load(__package__)
NOTHING = f"There is nothing to migrate: this database has none of the legacy tables {', '.join(NAMES)}."
WHY = "cancelled: Menuwatch has taken over"
"""The reason on a former job that was cancelled."""
_PENDING = ["pending", "queued", "scheduled"]
_CANCELLED = ("cancelled", "canceled", "failed")
"""The word for a job that is over, the best first: the former tables allow not all of them everywhere."""
SHOWN = 50
"""Most former schedules that are named."""


class LegacySchedule(Struct, kw_only=True, frozen=True):
    """One legacy schedule."""

    name: str
    enabled: bool


class MigrationStatus(Struct, kw_only=True, frozen=True):
    """State of the legacy migration. Numbers are null if their table does not exist."""

    found: Annotated[bool, doc("False if the database has no legacy tables: there is nothing to migrate.")]
    complete: Annotated[bool, doc("True if nothing is left to disable or cancel.")]
    message: Annotated[str, doc("Summary in words.")]
    tables: Annotated[list[str], doc("Existing legacy tables, each with its schema.")]
    missing: Annotated[list[str], doc("Legacy tables that do not exist.")]
    schedules: Annotated[int | None, doc("Rows of `job_schedules`.")]
    schedules_enabled: int | None
    run_logs: Annotated[int | None, doc("Rows of `job_run_logs`; they are left unchanged.")]
    jobs: Annotated[int | None, doc("Rows of `dispensary_crawl_jobs`.")]
    jobs_pending: int | None
    jobs_running: Annotated[int | None, doc("Number of running jobs; they are left to finish.")]
    stores: Annotated[int, doc("Number of stores that can be crawled.")]
    stores_waiting: Annotated[int, doc("Number of stores with a pending or running crawl.")]
    schedule_list: Annotated[list[LegacySchedule], doc("At most 50 legacy schedules, enabled ones first.")]


class MigrationResult(Struct, kw_only=True, frozen=True):
    """Result of a migration step; null for steps that were not part of it."""

    found: Annotated[bool, doc("False if there is nothing to migrate.")]
    message: Annotated[str, doc("Summary in words.")]
    dry_run: Annotated[bool, doc("True if nothing was changed: the result shows what would change.")]
    schedules_disabled: int | None
    jobs_cancelled: Annotated[int | None, doc("Number of pending legacy jobs cancelled.")]
    stores: Annotated[int | None, doc("Number of selected stores that can be crawled.")]
    tasks_created: Annotated[int | None, doc("Number of new crawl tasks; the other stores already had one pending.")]
    discovery_created: Annotated[int | None, doc("1 for a new store discovery task; 0 if one was already pending.")]
    analytics_created: Annotated[int | None, doc("1 for a new analytics task; 0 if one was already pending.")]


async def status(conn: AsyncConnection[Any]) -> MigrationStatus:
    """What there is of the former system, and what is left to do. Changes nothing."""
    figures: dict[str, Any] = dict.fromkeys(
        ("schedules", "schedules_enabled", "run_logs", "jobs", "jobs_pending", "jobs_running")
    ) | {"schedule_list": []}
    tables = await find_tables(conn)
    if not tables:
        return MigrationStatus(
            found=False,
            complete=True,
            message=NOTHING,
            missing=list(NAMES),
            tables=[],
            stores=0,
            stores_waiting=0,
            **figures,
        )
    enabled = pending = None
    if table := tables.get(SCHEDULES):
        listed = await _schedules(conn, table)
        enabled = sum(one.enabled for one in listed)
        listed.sort(key=lambda one: (not one.enabled, one.name))
        figures |= {"schedules": len(listed), "schedules_enabled": enabled, "schedule_list": listed[:SHOWN]}
    if table := tables.get(RUNS):
        figures["run_logs"] = (await _rows(conn, "SELECT count(*) AS n FROM {table}", table))[0]["n"]
    if table := tables.get(JOBS):
        table.need("status")
        counted = await _rows(conn, "SELECT status::text AS status, count(*) AS n FROM {table} GROUP BY 1", table)
        by = {one["status"]: one["n"] for one in counted}
        pending = sum(by.get(word, 0) for word in _PENDING)
        figures |= {"jobs": sum(by.values()), "jobs_pending": pending, "jobs_running": by.get("running", 0)}
    stores = await fetch_all(conn, _q.resync_stores, {"state": None})
    left = [
        text
        for number, text in (
            (enabled, f"{pluralize(enabled or 0, 'schedule')} to disable"),
            (pending, f"{pluralize(pending or 0, 'crawl job')} to cancel"),
        )
        if number
    ]
    return MigrationStatus(
        found=True,
        complete=not left,
        message=f"Left to do: {' and '.join(left)}."
        if left
        else "No legacy schedule is enabled, and no legacy job is pending.",
        tables=[f"{tables[name].schema}.{name}" for name in NAMES if name in tables],
        missing=[name for name in NAMES if name not in tables],
        stores=len(stores),
        stores_waiting=sum(one["waiting"] for one in stores),
        **figures,
    )


async def disable_schedules(conn: AsyncConnection[Any], *, dry_run: bool = False) -> MigrationResult:
    """Switches every former schedule off. In the caller's transaction; raises Conflict where the tables do not allow it."""
    return await _step(conn, "legacy_schedules_disabled", {"schedules"}, None, dry_run)


async def cancel_jobs(conn: AsyncConnection[Any], *, dry_run: bool = False) -> MigrationResult:
    """Cancels every former crawl job that waits; those that run are left to end. As `disable_schedules`."""
    return await _step(conn, "legacy_jobs_cancelled", {"jobs"}, None, dry_run)


async def create_resync(
    conn: AsyncConnection[Any], state_code: str | None, *, dry_run: bool = False
) -> MigrationResult:
    """Has every store crawled, or those of one state: one task each, and none where one waits. Also enqueues a store discovery and a
    refresh of the reports. Raises InvalidField for a state
    that does not exist or has no stores."""
    return await _step(conn, "legacy_resync_created", {"resync"}, state_code, dry_run)


async def migrate(
    conn: AsyncConnection[Any], state_code: str | None = None, *, dry_run: bool = False
) -> MigrationResult:
    """All three, in the one transaction of the caller."""
    return await _step(conn, "legacy_migrated", {"schedules", "jobs", "resync"}, state_code, dry_run)


async def _step(
    conn: AsyncConnection[Any], action: str, which: set[str], state_code: str | None, dry_run: bool
) -> MigrationResult:
    async with conn.transaction(force_rollback=dry_run):
        done = await _do(conn, which, state_code, dry_run)
        if not dry_run:
            details = structs.asdict(done)
            await audit.record(
                conn,
                action,
                state=state_code,
                **{key: details[key] for key in details if key not in ("message", "dry_run")},
            )
    return done


async def _do(conn: AsyncConnection[Any], which: set[str], state_code: str | None, dry_run: bool) -> MigrationResult:
    state = known_state(state_code) if state_code is not None else None
    figures: dict[str, int | None] = dict.fromkeys(
        ("schedules_disabled", "jobs_cancelled", "stores", "tasks_created", "discovery_created", "analytics_created")
    )
    tables = await find_tables(conn)
    if not tables:
        return MigrationResult(found=False, message=NOTHING, dry_run=dry_run, **figures)
    said = []
    would = "would be " if dry_run else ""
    if "schedules" in which:
        n = figures["schedules_disabled"] = await _disable(conn, tables.get(SCHEDULES))
        said.append(
            f"{pluralize(n, 'schedule')} {would}disabled" if SCHEDULES in tables else f"there is no {SCHEDULES}"
        )
    if "jobs" in which:
        n = figures["jobs_cancelled"] = await _cancel(conn, tables.get(JOBS))
        said.append(f"{pluralize(n, 'crawl job')} {would}cancelled" if JOBS in tables else f"there is no {JOBS}")
    if "resync" in which:
        stores, n = await _resync(conn, state)
        figures |= {"stores": stores, "tasks_created": n}
        said.append(f"{pluralize(n, 'task')} {would}created for {pluralize(stores, 'store')} that can be crawled")
        found, refreshed = await _derived(conn, state)
        figures |= {"discovery_created": found, "analytics_created": refreshed}
        said.append(f"{pluralize(found + refreshed, 'task')} {would}created for store discovery and analytics")
    text = "; ".join(said) + "."
    return MigrationResult(found=True, message=text[0].upper() + text[1:], dry_run=dry_run, **figures)


async def _disable(conn: AsyncConnection[Any], table: Table | None) -> int:
    if table is None:
        return 0
    _writable(table)
    enabled = compose.Identifier(table.need("enabled", "is_enabled", "is_active", "active"))
    touched = compose.SQL(", updated_at = now()") if "updated_at" in table.columns else compose.SQL("")
    command = compose.SQL("UPDATE {table} SET {enabled} = false{touched} WHERE {enabled} IS DISTINCT FROM false")
    cursor = await conn.execute(command.format(table=table.qualified_name, enabled=enabled, touched=touched))
    return cursor.rowcount


async def _cancel(conn: AsyncConnection[Any], table: Table | None) -> int:
    if table is None:
        return 0
    _writable(table)
    sets: list[compose.Composable] = [compose.SQL("{} = %(word)s").format(compose.Identifier(table.need("status")))]
    if ended := table.first_of("completed_at", "finished_at"):
        sets.append(compose.SQL("{} = now()").format(compose.Identifier(ended)))
    if reason := table.first_of("error_message", "error"):
        sets.append(compose.SQL("{} = %(why)s").format(compose.Identifier(reason)))
    if "updated_at" in table.columns:
        sets.append(compose.SQL("updated_at = now()"))
    command = compose.SQL("UPDATE {table} SET {sets} WHERE status::text = ANY (%(pending)s)").format(
        table=table.qualified_name, sets=compose.SQL(", ").join(sets)
    )
    for word in _CANCELLED:
        try:
            async with conn.transaction():
                cursor = await conn.execute(command, {"word": word, "why": WHY, "pending": _PENDING})
                return cursor.rowcount
        except (psycopg.errors.CheckViolation, psycopg.errors.InvalidTextRepresentation):
            # A check, or an enumeration, that does not know the word.
            continue
    raise Conflict(f"table {table.schema}.{JOBS} accepts none of the statuses {', '.join(_CANCELLED)}")


def _writable(table: Table) -> None:
    if not (table.readable and table.writable):
        raise Conflict(
            f"the user of the database may not change table {table.schema}.{table.name}: GRANT SELECT, UPDATE on it"
        )


async def _resync(conn: AsyncConnection[Any], state: str | None) -> tuple[int, int]:
    stores = await fetch_all(conn, _q.resync_stores, {"state": state})
    if not stores and state is not None:
        known = await fetch_one(conn, _q.any_stores, {"state": state})
        why = "can be crawled" if known and known["exists"] else "is known"
        raise InvalidField(
            "state_code", f"no store in {state} {why}: import the legacy stores, or discover them, first"
        )
    wanted = [
        NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=one["id"], platform=one["platform"], priority=PRIORITY_CHAINED)
        for one in stores
        if not one["waiting"]
    ]
    made = await tasks.enqueue(conn, wanted)
    return len(stores), sum(one.created for one in made)


async def _derived(conn: AsyncConnection[Any], state: str | None) -> tuple[int, int]:
    """Enqueues a search for stores, of Dutchie as in the former system, and a refresh of the reports; returns how many of each are
    new."""
    discovery = NewTask(
        role=Role.STORE_DISCOVERY, priority=PRIORITY_DISCOVERY, payload=None if state is None else {"state": state}
    )
    found, refreshed = await tasks.enqueue(conn, [discovery, NewTask(role=Role.ANALYTICS_REFRESH)])
    return int(found.created), int(refreshed.created)


async def _schedules(conn: AsyncConnection[Any], table: Table) -> list[LegacySchedule]:
    name = table.first_of("job_name", "name", "id") or table.need("name")
    enabled = table.need("enabled", "is_enabled", "is_active", "active")
    query = "SELECT {name}::text AS name, {enabled} IS DISTINCT FROM false AS enabled FROM {table} ORDER BY 1"
    found = await _rows(conn, query, table, name=name, enabled=enabled)
    return [LegacySchedule(name=one["name"] or "", enabled=one["enabled"]) for one in found]


async def _rows(conn: AsyncConnection[Any], query: Any, table: Table, **columns: str) -> Sequence[Row]:
    if not table.readable:
        raise Conflict(f"the user of the database may not read table {table.schema}.{table.name}: GRANT SELECT on it")
    named = {key: compose.Identifier(name) for key, name in columns.items()}
    return await fetch_all(conn, compose.SQL(query).format(table=table.qualified_name, **named), {})
