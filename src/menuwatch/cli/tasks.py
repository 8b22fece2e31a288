"""`menuwatch tasks`: list, show, enqueue, clone, retry, cancel, reorder, recover."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
import typer
from msgspec import structs

from menuwatch.cli import failures
from menuwatch.cli.logs import task_logs
from menuwatch.cli.options import Commands, JsonOption, Output, check_text, find_store_id, limit_option
from menuwatch.cli.output import Column, ago, detail_lines, echo, notice, print_json, print_list
from menuwatch.cli.startup import in_transaction, read
from menuwatch.cli.task_selection import (
    TaskOptions,
    TaskSelection,
    change_tasks,
    get_store_name,
    parse_payload,
    parse_start,
)
from menuwatch.core.errors import Refused
from menuwatch.core.format import duration, pluralize, timestamp
from menuwatch.db.pool import Connection
from menuwatch.queue import service
from menuwatch.queue.enqueue import (
    EnqueuedTask,
    StoreSelection,
    StoresEnqueued,
    TaskRequest,
    clone,
    enqueue,
    enqueue_stores,
)
from menuwatch.queue.explain.service import TaskWithReason, get_task_with_reason
from menuwatch.queue.model import (
    PRIORITY_CHAINED,
    PRIORITY_MAX,
    PRIORITY_MIN,
    UNHANDLED_ROLES,
    Role,
    Status,
    parse_role,
)
from menuwatch.queue.service import RECOVERY_MAX_MINUTES, BulkResult, RecoveryResult
from menuwatch.queue.task_attempts import TaskAttempt
from menuwatch.queue.task_list import TaskFilter, TaskRow, list_tasks, names_in
from menuwatch.system import System

app = Commands("Inspect and control tasks.")

PriorityOption = Annotated[
    int, typer.Option(min=PRIORITY_MIN, max=PRIORITY_MAX, help="Higher runs first: 10 on demand, 20 and more urgent.")
]
AtOption = Annotated[
    str | None, typer.Option(help="Earliest start: ISO 8601, or a delay such as 30m, 6h, 2d. UTC by default.")
]
PayloadOption = Annotated[str | None, typer.Option(help="Arguments of the task, a JSON object.")]
ROLES = ", ".join(role for role in Role if role not in UNHANDLED_ROLES)
IdsArgument = Annotated[list[int] | None, typer.Argument(help="Ids of the tasks.", metavar="ID…", min=1)]
IdArgument = Annotated[int, typer.Argument(help="Id of the task.", metavar="ID", min=1)]


def _blocked(task: TaskRow) -> str | None:
    return None if task.blocked_by is None else f"no requests to {task.blocked_by}"


COLUMNS = (
    Column("#", "id"),
    Column("Role", "role"),
    Column("Store", "dispensary_id", rank=1),
    Column("Status", lambda task: "blocked" if task.blocked_by else task.status, rank=0),
    Column("Priority", "priority", rank=4),
    Column("Enqueued", "created_at", ago, rank=2),
    Column("Not before (UTC)", "scheduled_for", rank=6),
    Column("Attempt", lambda task: task.attempt or None, rank=5),
    Column("Worker", "worker_id"),
    Column("Reason", lambda task: None if task.is_active else task.error_message or _blocked(task), rank=3),
)


@app.command("list")
def list_(options: TaskOptions, out: Output, limit: Annotated[int, limit_option()] = 50) -> None:
    """List tasks, newest first."""

    async def act(_: System, conn: Connection) -> tuple[list[TaskRow], dict[str, str], dict[int, str]]:
        rows = await list_tasks(conn, await options.filter(conn), limit=limit)
        return rows, *await names_in(conn, rows)

    rows, workers, stores = read(act)
    worker = Column("Worker", lambda task: workers.get(task.worker_id, task.worker_id))
    store = Column("Store", lambda task: stores.get(task.dispensary_id, task.dispensary_id), rank=1)
    columns = [{"Worker": worker, "Store": store}.get(one.heading, one) for one in COLUMNS]
    print_list(rows, columns, out.format, empty="No matching tasks.")
    if out.is_table and len(rows) == limit:
        notice(f"Newest {pluralize(limit, 'task')}; use --limit for more.")


@app.command("show")
def show(task_id: IdArgument, json: JsonOption = False) -> None:
    """Show one task: its current state with the reason, times, arguments and result."""

    async def act(system: System, conn: Connection) -> tuple[TaskWithReason, str | None]:
        task = await get_task_with_reason(conn, task_id)
        return task, await get_store_name(conn, task)

    task, store = read(act)
    if json:
        print_json({**structs.asdict(task), "store": store})
    else:
        echo(*_task_lines(task, store))


def _task_lines(task: TaskWithReason, store: str | None) -> list[str]:
    """One task as text; `store` is the name of its store, None if it was removed."""
    # It was cancelled without a reason.
    unexplained = task.status == Status.CANCELLED and task.error_message == "cancelled"
    reason = task.explanation.reason
    columns = (
        Column("Store", lambda task: task.dispensary_id and f"{task.dispensary_id} ({store or 'gone'})"),
        Column("Platform", "platform"),
        Column("Priority", "priority"),
        Column("Attempts", _attempts),
        Column("Worker", "worker_id"),
    )
    lines = [
        f"Task {task.id}: {task.role}, {task.status}",
        reason.removesuffix(": cancelled.") + "." if unexplained else reason,
        "",
        *detail_lines(task, columns),
        "",
        *_timeline(task),
        *_attempt_lines(task.attempts),
    ]
    for name, value in (
        # Of an active task: why an attempt before ended.
        ("Last reason" if task.is_active else "Reason", None if unexplained else task.error_message),
        ("Payload", _format_json(task.payload)),
        ("Result", _format_json(task.result)),
    ):
        if value:
            lines += ["", name, *(f"  {line}" for line in value.splitlines())]
    return lines


def _attempts(task: TaskRow) -> str:
    return f"{task.attempt}, {task.retry_count} of {pluralize(task.max_retries, 'retry', 'retries')} used"


def _attempt_lines(attempts: Sequence[TaskAttempt]) -> list[str]:
    """How each attempt went, of a task that was tried more than once."""
    if len(attempts) < 2:
        return []
    lines = ["", "Attempts"]
    for one in attempts:
        took = "" if one.duration_ms is None else f" after {one.duration_ms / 1000:.1f} s"
        sent = f", {pluralize(one.requests, 'request')}" if one.requests else ""
        error = f": {one.error}" if one.error else ""
        lines.append(
            f"  {one.attempt}  {timestamp(one.claimed_at)}  {one.outcome}{took} by {one.worker or one.worker_id}{sent}{error}"
        )
    return lines


def _format_json(value: msgspec.Raw | None) -> str | None:
    """A JSON column of a task; None for an empty one."""
    if value is None or not (decoded := msgspec.json.decode(value)):
        return None
    return decoded if isinstance(decoded, str) else msgspec.json.format(bytes(value)).decode()


def _timeline(task: TaskRow) -> list[str]:
    """The task's moments in their order, and how long each step took."""
    end, due = task.completed_at, task.scheduled_for
    moments = [
        (task.created_at, "enqueued"),
        # A task that was cancelled before it was due never became due.
        (None if due is not None and end is not None and due > end else due, "due"),
        (task.claimed_at, f"claimed by {task.worker_id}"),
        (task.started_at, "begun"),
        (task.last_heartbeat_at, "last heartbeat of its worker"),
        (end, task.status),
    ]
    lines = []
    before: datetime | None = None
    for moment, what in sorted(((at, what) for at, what in moments if at is not None), key=lambda moment: moment[0]):
        later = "" if before is None else f"  +{duration((moment - before).total_seconds())}"
        lines.append(f"{timestamp(moment)}  {what}{later}")
        before = moment
    return lines


@app.command("retry")
def retry(selection: TaskSelection, ids: IdsArgument = None, priority: PriorityOption = PRIORITY_CHAINED) -> None:
    """Retry tasks by id or filter. Without --status a filter selects failed tasks and tasks that wait for a retry."""

    async def one(conn: Connection, task_id: int) -> str:
        result = await service.retry(conn, task_id, priority=priority)
        match result.outcome:
            case "created":
                return f"Task {task_id} is enqueued again as task {result.task.id}."
            case "pulled":
                return f"Task {task_id} is due now."
            case "raised":
                return f"Task {task_id} has a higher priority now; it was already due."
            case "waiting":
                return f"Task {task_id} is already pending and due: nothing changed."
            case _:
                return f"Task {task_id}: equal task {result.task.id} is already pending."

    async def many(conn: Connection, where: TaskFilter, dry: bool) -> BulkResult:
        return await service.bulk_retry(conn, where, dry_run=dry, priority=priority)

    change_tasks("retry", "retried", ids, selection, one, many)


@app.command("cancel")
def cancel(
    selection: TaskSelection,
    ids: IdsArgument = None,
    reason: Annotated[str | None, typer.Option(help="Reason, stored with the tasks.")] = None,
) -> None:
    """Cancel tasks by id or filter. A worker that runs one of them stops it."""
    check_text("--reason", reason)

    async def one(conn: Connection, task_id: int) -> str:
        await service.cancel(conn, task_id, reason=reason)
        return f"Cancelled task {task_id}."

    async def many(conn: Connection, where: TaskFilter, dry: bool) -> BulkResult:
        return await service.bulk_cancel(conn, where, dry_run=dry, reason=reason)

    change_tasks("cancel", "cancelled", ids, selection, one, many)


@app.command("enqueue")
def enqueue_command(
    role: Annotated[str, typer.Argument(help=f"Role of the task: {ROLES}.", metavar="ROLE")],
    store: Annotated[str | None, typer.Option(help="Store: name, slug or ID.")] = None,
    state: Annotated[str | None, typer.Option(help="All stores in this state or province (two letters).")] = None,
    due: Annotated[
        bool, typer.Option("--due", help="Only stores that are due: all, or with --state those of the state.")
    ] = False,
    priority: PriorityOption = PRIORITY_CHAINED,
    at: AtOption = None,
    payload: PayloadOption = None,
    json: JsonOption = False,
) -> None:
    """Enqueue a task for a store, for all stores of a state or for due stores. Only one equal task per store is pending at a time."""
    kind = parse_role(role)
    many = "--state" if state is not None else "--due" if due else None
    if store is not None and many:
        raise Refused(f"--store and {many} are mutually exclusive")
    if payload is not None and many:
        raise Refused(f"--payload and {many} are mutually exclusive")
    start = parse_start(at)
    if many:
        _enqueue_stores(StoreSelection(role=kind, state=state, only_due=due), priority, start, json)
        return
    arguments = parse_payload(payload)

    async def act(system: System, conn: Connection) -> tuple[EnqueuedTask, dict[str, Any]]:
        store_id = await find_store_id(conn, store)
        # Seldom more than two tasks of one role and store are pending.
        equal = TaskFilter(roles=[kind], statuses=[Status.PENDING], dispensary_id=store_id)
        pending = {task.id: task for task in await list_tasks(conn, equal, limit=1000)}
        request = TaskRequest(
            role=kind, dispensary_id=store_id, priority=priority, scheduled_for=start, payload=arguments
        )
        result = await enqueue(conn, request, platforms=tuple(system.platforms))
        return result, {} if result.created else _compare(pending.get(result.task.id), result.task)

    result, changed = in_transaction(act)
    if json:
        print_json({"id": result.task.id, "created": result.created, "changed": changed})
    elif result.created:
        echo(f"Enqueued task {result.task.id}.")
    else:
        echo(f"Equal task {result.task.id} is already pending: {_describe(changed)}.")


def _enqueue_stores(selection: StoreSelection, priority: int, start: datetime | None, json: bool) -> None:
    async def act(system: System, conn: Connection) -> StoresEnqueued:
        return await enqueue_stores(
            conn, selection, platforms=tuple(system.platforms), priority=priority, scheduled_for=start
        )

    result = in_transaction(act)
    if json:
        print_json({"stores": result.stores, "requested": result.requested, "created": result.created})
        return
    echo(
        f"{pluralize(result.created, 'new task')} for {pluralize(result.stores, 'store')}; "
        f"{result.requested - result.created:,} already pending."
    )


@app.command("clone")
def clone_command(
    task_id: IdArgument,
    store: Annotated[str | None, typer.Option(help="Another store: name, slug or ID.")] = None,
    priority: Annotated[
        int | None,
        typer.Option(min=PRIORITY_MIN, max=PRIORITY_MAX, help="Another priority; at least 10 if omitted."),
    ] = None,
    at: AtOption = None,
    payload: PayloadOption = None,
    json: JsonOption = False,
) -> None:
    """Enqueue a task like an existing one, with the given differences."""
    changes: dict[str, Any] = {"scheduled_for": parse_start(at)}
    if priority is not None:
        changes["priority"] = priority
    if payload is not None:
        changes["payload"] = parse_payload(payload)

    async def act(system: System, conn: Connection) -> EnqueuedTask:
        other = {} if store is None else {"dispensary_id": await find_store_id(conn, store)}
        return await clone(conn, task_id, changes | other, platforms=tuple(system.platforms))

    result = in_transaction(act)
    if json:
        print_json({"id": result.task.id, "created": result.created})
    elif result.created:
        echo(f"Cloned task {task_id} as task {result.task.id}.")
    else:
        echo(f"Equal task {result.task.id} is already pending.")


@app.command("priority")
def set_priority(
    task_id: IdArgument,
    priority: Annotated[
        int, typer.Argument(min=PRIORITY_MIN, max=PRIORITY_MAX, help="Higher runs first.", metavar="PRIORITY")
    ],
) -> None:
    """Change the priority of a pending task, up or down."""

    async def act(system: System, conn: Connection) -> int:
        return (await service.set_priority(conn, task_id, priority)).priority

    before = in_transaction(act)
    echo(f"Task {task_id}: priority {priority} now, was {before}.")


@app.command("recover-stale")
def recover_stale(
    older_than: Annotated[
        float | None,
        typer.Option(
            min=1, max=RECOVERY_MAX_MINUTES, help="Minutes without a heartbeat; STALE_AFTER_MINUTES if omitted."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Return tasks of silent workers to the queue now, or fail them if no retry is left. Workers do this every minute."""

    async def act(system: System, conn: Connection) -> RecoveryResult:
        minutes = system.settings.stale_after_minutes if older_than is None else older_than
        return await service.recover_stale(conn, minutes)

    result = in_transaction(act)
    if json:
        print_json(result)
    else:
        echo(f"{result}.")


app.command("logs")(task_logs)
app.command("failures")(failures.failures)
app.command("mute")(failures.mute_failure)
app.command("unmute")(failures.unmute_failure)


def _compare(before: TaskRow | None, after: TaskRow) -> dict[str, dict[str, Any]]:
    """The fields of a pending task that a request changed, each with its value `before` and `after`."""
    if before is None:
        return {}
    return {
        key: {"before": getattr(before, key), "after": getattr(after, key)}
        for key in ("priority", "scheduled_for")
        if getattr(before, key) != getattr(after, key)
    }


def _describe(changed: dict[str, dict[str, Any]]) -> str:
    parts = []
    if change := changed.get("priority"):
        parts.append(f"priority {change['after']} now, was {change['before']}")
    if change := changed.get("scheduled_for"):
        parts.append(f"due {_due(change['after'])} now, was {_due(change['before'])}")
    return "; ".join(parts) or "nothing changed"


def _due(moment: datetime | None) -> str:
    return "immediately" if moment is None else f"at {timestamp(moment)}"
