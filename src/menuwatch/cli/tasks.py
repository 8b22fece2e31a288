"""`menuwatch tasks`: the queue, and what people ask of it."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from menuwatch import bootstrap
from menuwatch.cli import task_sheet, task_wish
from menuwatch.cli.output import Format, ago, chosen_format, console, errors, plain, plural, print_json, print_rows
from menuwatch.cli.process import settings
from menuwatch.cli.task_acts import DryOption, YesOption, act
from menuwatch.cli.task_filter import (
    AllOption,
    Chosen,
    ErrorOption,
    RoleOption,
    StatusOption,
    StoreOption,
    WorkerOption,
    searchable,
    store_number,
)
from menuwatch.cli.task_sheet import decoded
from menuwatch.cli.task_wish import Changes, parse_at, parse_payload
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Connection
from menuwatch.operations import explain, task_control, tasks, wishes
from menuwatch.operations.explanation import Explanation
from menuwatch.operations.reading import Row
from menuwatch.operations.task_control import Bulk
from menuwatch.operations.tasks import TaskFilter
from menuwatch.operations.wishes import Wish
from menuwatch.schedules.model import PRIORITIES
from menuwatch.stores import store as stores
from menuwatch.tasks.model import PRIORITY_CHAINED, UNHANDLED_ROLES, Role, Status, parse_role
from menuwatch.tasks.store import Enqueued

app = typer.Typer(help="The queue: what waits, runs and is over.", no_args_is_help=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
PriorityOption = Annotated[
    int, typer.Option(min=PRIORITIES[0], max=PRIORITIES[1], help="Higher is sooner: 10 on demand, 20 and more urgent.")
]
ROLES = ", ".join(role for role in Role if role not in UNHANDLED_ROLES)
IdsArgument = Annotated[list[int] | None, typer.Argument(help="Numbers of tasks.", metavar="ID…", min=1)]
IdArgument = Annotated[int, typer.Argument(help="Number of the task.", metavar="ID", min=1)]


@app.command("list")
def list_(
    role: RoleOption = None,
    status: StatusOption = None,
    store: StoreOption = None,
    worker: WorkerOption = None,
    error: ErrorOption = None,
    limit: Annotated[int, typer.Option(min=1, help="Print no more than this.")] = 50,
    json: JsonOption = False,
    fmt: Annotated[Format | None, typer.Option("--format", help="How to print.", show_default="table")] = None,
) -> None:
    """List tasks, newest first."""
    fmt = chosen_format(json, fmt)
    found = asyncio.run(_list(Chosen(role, status, store, worker, error), limit))
    rows = [row | {"payload": decoded(row["payload"]), "result": decoded(row["result"])} for row in found]
    if fmt is Format.TABLE:
        rows = [
            row
            | {"made": ago(row["created_at"]), "tries": row["attempt"] or None}
            # Of one at work it is what it stopped at before: `show` says that it is.
            | ({"error_message": None} if task_sheet.is_at_work(row) else {})
            for row in rows
        ]
    print_rows(
        rows,
        (
            ("id", "#"),
            ("role", "Role"),
            ("dispensary_id", "Store"),
            ("status", "Status"),
            ("priority", "Priority"),
            ("made", "Enqueued"),
            ("scheduled_for", "Not before (UTC)"),
            ("tries", "Attempt"),
            ("worker_id", "Worker"),
            ("error_message", "Reason"),
        ),
        fmt,
        empty="No such tasks.",
        keep=("dispensary_id", "made", "error_message", "priority", "tries", "scheduled_for"),
    )
    if fmt is Format.TABLE and len(rows) == limit:
        errors.print(f"The newest {plural(limit, 'task')}; --limit prints more.")


@app.command("show")
def show(task_id: IdArgument, json: JsonOption = False) -> None:
    """Show one task: why it is where it is, its times, what it was asked with and what came of it."""
    task, why, store = asyncio.run(_show(task_id))
    if json:
        print_json({**task, "store": store, "explanation": dataclasses.asdict(why)})
        return
    for line in task_sheet.lines(task, store, why):
        console.print(plain(line), markup=False, soft_wrap=True)


@app.command("retry")
def retry(
    ids: IdsArgument = None,
    role: RoleOption = None,
    status: StatusOption = None,
    store: StoreOption = None,
    worker: WorkerOption = None,
    error: ErrorOption = None,
    everything: AllOption = False,
    priority: PriorityOption = PRIORITY_CHAINED,
    dry_run: DryOption = False,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Have tasks done again, by number or by filter. Without --status a filter takes those that failed or wait for another try."""
    chosen = Chosen(role, status, store, worker, error, everything)

    async def one(conn: Connection, task_id: int) -> str:
        number, outcome = await task_control.retry(conn, task_id, priority=priority)
        said = {
            "created": f"waits again as task {number}.",
            "pulled": "is due now.",
            "raised": "is more urgent now; it was due already.",
            "waiting": "waits already, and is due: nothing of it changed.",
        }
        return (
            f"Task {task_id} {said[outcome]}"
            if outcome in said
            else f"Task {task_id}: task {number} waits to do the same."
        )

    async def many(conn: Connection, where: TaskFilter, dry: bool) -> Bulk:
        return await task_control.bulk_retry(conn, where, dry_run=dry, priority=priority)

    act("retry", "retried", ids, chosen, one, many, dry_run=dry_run, yes=yes, json=json)


@app.command("cancel")
def cancel(
    ids: IdsArgument = None,
    role: RoleOption = None,
    status: StatusOption = None,
    store: StoreOption = None,
    worker: WorkerOption = None,
    error: ErrorOption = None,
    everything: AllOption = False,
    reason: Annotated[str | None, typer.Option(help="Why; it stands with the tasks.")] = None,
    dry_run: DryOption = False,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Cancel tasks, by number or by filter. A worker that is at one of them stops."""
    chosen = Chosen(role, status, store, worker, error, everything)
    if reason is not None:
        searchable("--reason", reason)

    async def one(conn: Connection, task_id: int) -> str:
        await task_control.cancel(conn, task_id, reason=reason)
        return f"Task {task_id} is cancelled."

    async def many(conn: Connection, where: TaskFilter, dry: bool) -> Bulk:
        return await task_control.bulk_cancel(conn, where, dry_run=dry, reason=reason)

    act("cancel", "cancelled", ids, chosen, one, many, dry_run=dry_run, yes=yes, json=json)


@app.command("enqueue")
def enqueue(
    role: Annotated[str, typer.Argument(help=f"The kind of work: {ROLES}.", metavar="ROLE")],
    store: Annotated[str | None, typer.Option(help="The store it is for: its slug, platform id or number.")] = None,
    state: Annotated[str | None, typer.Option(help="Every store of this state or province, by two letters.")] = None,
    priority: PriorityOption = PRIORITY_CHAINED,
    at: Annotated[
        str | None,
        typer.Option(help="Not before this time: ISO 8601, or a wait as 30m, 6h, 2d. UTC unless it says otherwise."),
    ] = None,
    payload: Annotated[str | None, typer.Option(help="What the work needs to know, a JSON object.")] = None,
    json: JsonOption = False,
) -> None:
    """Have work done, for a store or for every store of a state. The same work for a store never waits twice."""
    kind = parse_role(role)
    if store is not None and state is not None:
        raise Refused("--store and --state: name one of them")
    if state is not None and payload is not None:
        raise Refused("--payload is for one task: it cannot go with --state")
    due = None if at is None else parse_at(at, datetime.now(UTC))
    if state is not None:
        total, made = asyncio.run(_enqueue_state(kind, state, priority, due))
        if json:
            print_json({"stores": total, "requested": len(made), "created": sum(one.created for one in made)})
            return
        new = sum(one.created for one in made)
        console.print(f"{plural(new, 'new task')} for {plural(total, 'store')}; {len(made) - new:,} waited already.")
        return
    wanted = None if payload is None else parse_payload(payload)
    number, created, changed = asyncio.run(_enqueue(kind, store, priority, due, wanted))
    if json:
        print_json({"id": number, "created": created, "changed": changed})
    elif created:
        console.print(f"Task {number} is enqueued.")
    else:
        what = "; ".join(task_wish.in_words(changed)) or "nothing of it changed"
        console.print(f"Task {number} waits to do that already: {what}.", soft_wrap=True)


async def _list(chosen: Chosen, limit: int) -> list[Row]:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        return await tasks.page(conn, await chosen.filter(conn), limit=limit)


async def _show(task_id: int) -> tuple[Row, Explanation, str | None]:
    found = settings()
    async with bootstrap.open_system(found) as system, system.pool.connection() as conn:
        task = await tasks.one(conn, task_id)
        why = await explain.explain(
            conn,
            task_id,
            heartbeat_seconds=found.heartbeat_interval_ms / 1000,
            stale_minutes=found.stale_after_minutes,
            asked={name: platform.hosts for name, platform in system.platforms.items()},
        )
        store = None if task["dispensary_id"] is None else await stores.get(conn, task["dispensary_id"])
        return task, why, None if store is None else store.name


_LOOKED_AT = 1000
"""Waiting tasks of one role and store: seldom more than two."""


async def _enqueue(
    role: Role, store: str | None, priority: int, due: datetime | None, payload: dict[str, Any] | None
) -> tuple[int, bool, Changes]:
    """The task, whether it is new, and what changed with one that waited already."""
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn, conn.transaction():
        store_id = None if store is None else await store_number(conn, store)
        same = TaskFilter(roles=[role], statuses=[Status.PENDING], dispensary_id=store_id)
        waiting = {row["id"]: row for row in await tasks.page(conn, same, limit=_LOOKED_AT)}
        wish = Wish(role=role, dispensary_id=store_id, priority=priority, scheduled_for=due, payload=payload)
        number, created = await wishes.enqueue(conn, wish, platforms=tuple(system.platforms))
        changed = {} if created else task_wish.changes(waiting.get(number), await tasks.one(conn, number))
        return number, created, changed


async def _enqueue_state(role: Role, state: str, priority: int, due: datetime | None) -> tuple[int, list[Enqueued]]:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn, conn.transaction():
        return await wishes.enqueue_state(
            conn,
            state_code=state,
            role=role,
            platforms=tuple(system.platforms),
            priority=priority,
            scheduled_for=due,
        )
