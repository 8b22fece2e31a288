"""The former system's schedules and jobs: seen, switched off, cancelled, and their work taken over.

Each step can be carried out again: it does what is left, and nothing where nothing is. Whoever was interrupted half-way starts anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg import sql as compose

from menuwatch.db import sql
from menuwatch.operations import audit
from menuwatch.operations.legacy.tables import JOBS, NAMES, RUNS, SCHEDULES, Table, find
from menuwatch.operations.reading import Row, row, rows
from menuwatch.operations.refusals import Conflict, Unusable
from menuwatch.operations.schedules import known_state
from menuwatch.operations.wording import many
from menuwatch.tasks import store as tasks
from menuwatch.tasks.model import PRIORITY_CHAINED, NewTask, Role

_q = sql.load(__package__)
NOTHING = f"There is nothing to migrate: this database has none of the former tables {', '.join(NAMES)}."
DONE = "No former schedule is enabled, and no former job waits."
WHY = "cancelled: Menuwatch has taken over"
"""The reason on a former job that was cancelled."""
_PENDING = ["pending", "queued", "scheduled"]
_CANCELLED = ("cancelled", "canceled", "failed")
"""The word for a job that is over, the best first: the former tables allow not all of them everywhere."""
SHOWN = 50
"""Most former schedules that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One former schedule."""

    name: str
    enabled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How far the migration is. Figures are null where the table that they are of is not there."""

    found: bool
    complete: bool
    message: str
    tables: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    schedules: int | None = None
    schedules_enabled: int | None = None
    run_logs: int | None = None
    jobs: int | None = None
    jobs_pending: int | None = None
    jobs_running: int | None = None
    stores: int = 0
    stores_waiting: int = 0
    schedule_list: list[Schedule] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a step, or all of them, did; or would do, where it is a dry run. Null is what was no part of it."""

    found: bool
    message: str
    dry_run: bool = False
    schedules_disabled: int | None = None
    jobs_cancelled: int | None = None
    stores: int | None = None
    tasks_created: int | None = None


async def status(conn: AsyncConnection[Any]) -> Status:
    """What there is of the former system, and what is left to do. Changes nothing."""
    tables = await find(conn)
    if not tables:
        return Status(found=False, complete=True, message=NOTHING, missing=list(NAMES))
    enabled = pending = None
    figures: dict[str, Any] = {}
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
    stores = await rows(conn, _q.resync_stores, {"state": None})
    left = [
        text
        for number, text in (
            (enabled, f"{many(enabled or 0, 'schedule')} to disable"),
            (pending, f"{many(pending or 0, 'crawl job')} to cancel"),
        )
        if number
    ]
    return Status(
        found=True,
        complete=not left,
        message=f"Left to do: {' and '.join(left)}."
        if left
        else "No former schedule is enabled, and no former job waits.",
        tables=[f"{tables[name].schema}.{name}" for name in NAMES if name in tables],
        missing=[name for name in NAMES if name not in tables],
        stores=len(stores),
        stores_waiting=sum(one["waiting"] for one in stores),
        **figures,
    )


async def disable_schedules(conn: AsyncConnection[Any], *, dry_run: bool = False) -> Done:
    """Switches every former schedule off. In the caller's transaction; raises Conflict where the tables do not allow it."""
    return await _step(conn, "legacy_schedules_disabled", {"schedules"}, None, dry_run)


async def cancel_jobs(conn: AsyncConnection[Any], *, dry_run: bool = False) -> Done:
    """Cancels every former crawl job that waits; those that run are left to end. As `disable_schedules`."""
    return await _step(conn, "legacy_jobs_cancelled", {"jobs"}, None, dry_run)


async def create_resync(conn: AsyncConnection[Any], state_code: str | None, *, dry_run: bool = False) -> Done:
    """Has every store crawled, or those of one state: one task each, and none where one waits. Raises Unusable for a state
    that does not exist or has no stores."""
    return await _step(conn, "legacy_resync_created", {"resync"}, state_code, dry_run)


async def migrate(conn: AsyncConnection[Any], state_code: str | None = None, *, dry_run: bool = False) -> Done:
    """All three, in the one transaction of the caller."""
    return await _step(conn, "legacy_migrated", {"schedules", "jobs", "resync"}, state_code, dry_run)


async def _step(
    conn: AsyncConnection[Any], action: str, which: set[str], state_code: str | None, dry_run: bool
) -> Done:
    async with conn.transaction(force_rollback=dry_run):
        done = await _do(conn, which, state_code, dry_run)
        if not dry_run:
            details = asdict(done)
            await audit.record(
                conn,
                action,
                state=state_code,
                **{key: details[key] for key in details if key not in ("message", "dry_run")},
            )
    return done


async def _do(conn: AsyncConnection[Any], which: set[str], state_code: str | None, dry_run: bool) -> Done:
    state = known_state(state_code) if state_code is not None else None
    tables = await find(conn)
    if not tables:
        return Done(found=False, message=NOTHING, dry_run=dry_run)
    figures: dict[str, int] = {}
    said = []
    would = "would be " if dry_run else ""
    if "schedules" in which:
        n = figures["schedules_disabled"] = await _disable(conn, tables.get(SCHEDULES))
        said.append(f"{many(n, 'schedule')} {would}disabled" if SCHEDULES in tables else f"there is no {SCHEDULES}")
    if "jobs" in which:
        n = figures["jobs_cancelled"] = await _cancel(conn, tables.get(JOBS))
        said.append(f"{many(n, 'crawl job')} {would}cancelled" if JOBS in tables else f"there is no {JOBS}")
    if "resync" in which:
        figures["stores"], n = await _resync(conn, state)
        figures["tasks_created"] = n
        said.append(f"{many(n, 'task')} {would}created for {many(figures['stores'], 'store')} that can be crawled")
    text = "; ".join(said) + "."
    return Done(found=True, message=text[0].upper() + text[1:], dry_run=dry_run, **figures)


async def _disable(conn: AsyncConnection[Any], table: Table | None) -> int:
    if table is None:
        return 0
    _writable(table)
    enabled = compose.Identifier(table.need("enabled", "is_enabled", "is_active", "active"))
    touched = compose.SQL(", updated_at = now()") if "updated_at" in table.columns else compose.SQL("")
    command = compose.SQL("UPDATE {table} SET {enabled} = false{touched} WHERE {enabled} IS DISTINCT FROM false")
    cursor = await conn.execute(command.format(table=table.sql, enabled=enabled, touched=touched))
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
        table=table.sql, sets=compose.SQL(", ").join(sets)
    )
    for word in _CANCELLED:
        try:
            async with conn.transaction():
                cursor = await conn.execute(command, {"word": word, "why": WHY, "pending": _PENDING})
                return cursor.rowcount
        except (psycopg.errors.CheckViolation, psycopg.errors.InvalidTextRepresentation):
            # A check, or an enumeration, that does not know the word.
            continue
    raise Conflict(f"table {table.schema}.{JOBS} takes none of the words {', '.join(_CANCELLED)} as status")


def _writable(table: Table) -> None:
    if not (table.readable and table.writable):
        raise Conflict(
            f"the user of the database may not change table {table.schema}.{table.name}: GRANT SELECT, UPDATE on it"
        )


async def _resync(conn: AsyncConnection[Any], state: str | None) -> tuple[int, int]:
    stores = await rows(conn, _q.resync_stores, {"state": state})
    if not stores and state is not None:
        known = await row(conn, _q.any_stores, {"state": state})
        why = "can be crawled" if known and known["exists"] else "is known"
        raise Unusable("state_code", f"no store in {state} {why}: import the former stores, or discover them, first")
    wanted = [
        NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=one["id"], platform=one["platform"], priority=PRIORITY_CHAINED)
        for one in stores
        if not one["waiting"]
    ]
    made = await tasks.enqueue(conn, wanted)
    return len(stores), sum(one.created for one in made)


async def _schedules(conn: AsyncConnection[Any], table: Table) -> list[Schedule]:
    name = table.first_of("job_name", "name", "id") or table.need("name")
    enabled = table.need("enabled", "is_enabled", "is_active", "active")
    query = "SELECT {name}::text AS name, {enabled} IS DISTINCT FROM false AS enabled FROM {table} ORDER BY 1"
    found = await _rows(conn, query, table, name=name, enabled=enabled)
    return [Schedule(name=one["name"] or "", enabled=one["enabled"]) for one in found]


async def _rows(conn: AsyncConnection[Any], query: Any, table: Table, **columns: str) -> Sequence[Row]:
    if not table.readable:
        raise Conflict(f"the user of the database may not read table {table.schema}.{table.name}: GRANT SELECT on it")
    named = {key: compose.Identifier(name) for key, name in columns.items()}
    return await rows(conn, compose.SQL(query).format(table=table.sql, **named), {})
