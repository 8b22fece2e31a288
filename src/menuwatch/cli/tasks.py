"""`menuwatch tasks`: the queue, and what people ask of it."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
import typer

from menuwatch import bootstrap
from menuwatch.cli.output import Format, ago, chosen_format, console, errors, plain, plural, print_json, print_rows
from menuwatch.cli.process import settings
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Connection
from menuwatch.operations import explain, task_control, wishes
from menuwatch.operations import tasks as operations
from menuwatch.operations.explain import Explanation, span
from menuwatch.operations.reading import Row
from menuwatch.operations.task_control import Bulk
from menuwatch.operations.tasks import TaskFilter
from menuwatch.operations.wishes import Wish
from menuwatch.schedules.model import PRIORITIES
from menuwatch.stores import store as stores
from menuwatch.tasks.model import PRIORITY_CHAINED, UNHANDLED_ROLES, Role, Status, parse_role
from menuwatch.tasks.store import Enqueued

app = typer.Typer(help="The queue: what waits, runs and is over.", no_args_is_help=True)

RoleOption = Annotated[list[str] | None, typer.Option("--role", help="Only this role (repeat for several).")]
StatusOption = Annotated[list[str] | None, typer.Option("--status", help="Only this state (repeat for several).")]
StoreOption = Annotated[str | None, typer.Option("--store", help="Only this store: its slug, platform id or number.")]
ErrorOption = Annotated[str | None, typer.Option("--error", help="Only tasks whose reason holds this text.")]
WorkerOption = Annotated[str | None, typer.Option("--worker", help="Only tasks that this worker has or had.")]
AllOption = Annotated[bool, typer.Option("--all", help="Every task there is.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
DryOption = Annotated[bool, typer.Option("--dry-run", help="Only say how many it would be.")]
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
    found = asyncio.run(_list(_Chosen(role, status, store, worker, error), limit))
    rows = [row | {"payload": _decoded(row["payload"]), "result": _decoded(row["result"])} for row in found]
    if fmt is Format.TABLE:
        rows = [row | {"made": ago(row["created_at"]), "tries": row["attempt"] or None} for row in rows]
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
    reason = why.reason.removesuffix(": cancelled.") + "." if _unexplained(task) else why.reason
    lines = [f"Task {task['id']}: {task['role']}, {task['status']}", reason, ""]
    facts = [
        ("Store", None if task["dispensary_id"] is None else f"{task['dispensary_id']} ({store or 'gone'})"),
        ("Platform", task["platform"]),
        ("Priority", task["priority"]),
        (
            "Attempts",
            f"{task['attempt']}, {task['retry_count']} of {plural(task['max_retries'], 'retry', 'retries')} used",
        ),
        ("Worker", task["worker_id"]),
    ]
    lines += [f"{name:<10}{value}" for name, value in facts if value is not None]
    lines += ["", *_timeline(task)]
    at_work = task["status"] in (Status.CLAIMED, Status.RUNNING, Status.STALE)
    for name, value in (
        # Under way: what it stopped at before.
        ("Last reason" if at_work else "Reason", None if _unexplained(task) else task["error_message"]),
        ("Payload", _decoded(task["payload"])),
        ("Result", _decoded(task["result"])),
    ):
        if value:
            text = value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value)).decode()
            lines += ["", name, *(f"  {line}" for line in text.splitlines())]
    for line in lines:
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
    chosen = _Chosen(role, status, store, worker, error, everything)

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

    _act("retry", "retried", ids, chosen, one, many, dry_run=dry_run, yes=yes, json=json)


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
    chosen = _Chosen(role, status, store, worker, error, everything)
    if reason is not None:
        _searchable("--reason", reason)

    async def one(conn: Connection, task_id: int) -> str:
        await task_control.cancel(conn, task_id, reason=reason)
        return f"Task {task_id} is cancelled."

    async def many(conn: Connection, where: TaskFilter, dry: bool) -> Bulk:
        return await task_control.bulk_cancel(conn, where, dry_run=dry, reason=reason)

    _act("cancel", "cancelled", ids, chosen, one, many, dry_run=dry_run, yes=yes, json=json)


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
        what = "; ".join(_said(changed)) or "nothing of it changed"
        console.print(f"Task {number} waits to do that already: {what}.", soft_wrap=True)


_Changed = dict[str, dict[str, Any]]
"""By field of a task, what it was `before` and is `after`."""


def _changed(before: Row | None, after: Row) -> _Changed:
    if before is None:
        return {}
    return {
        key: {"before": before[key], "after": after[key]}
        for key in ("priority", "scheduled_for")
        if before[key] != after[key]
    }


def _said(changed: _Changed) -> list[str]:
    said = []
    if found := changed.get("priority"):
        said.append(f"its priority is {found['after']} now, instead of {found['before']}")
    if found := changed.get("scheduled_for"):
        said.append(f"it is due {_due(found['after'])} now, instead of {_due(found['before'])}")
    return said


def _due(moment: datetime | None) -> str:
    return "at once" if moment is None else f"at {moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


@dataclasses.dataclass(frozen=True, slots=True)
class _Chosen:
    """A filter as it was typed."""

    role: Sequence[str] | None
    status: Sequence[str] | None
    store: str | None
    worker: str | None
    error: str | None
    everything: bool = False

    def given(self) -> bool:
        texts = (self.store, self.worker, self.error)
        return any((self.role, self.status)) or any(text is not None for text in texts)

    def __post_init__(self) -> None:
        for option, text in (("--store", self.store), ("--worker", self.worker), ("--error", self.error)):
            if text is not None:
                _searchable(option, text)

    async def filter(self, conn: Connection) -> TaskFilter:
        return TaskFilter(
            roles=[parse_role(one) for one in self.role] if self.role else None,
            statuses=[parse_status(one) for one in self.status] if self.status else None,
            dispensary_id=None if self.store is None else await _store_id(conn, self.store),
            worker_id=self.worker,
            error=self.error,
        )


_LONGEST = 200


def _searchable(option: str, text: str) -> None:
    """Raises Refused for a text that the API takes neither: an empty one would select everything."""
    if not text:
        raise Refused(f"{option} is empty: give a text, or leave it out")
    if len(text) > _LONGEST:
        raise Refused(f"{option} has {len(text):,} characters: it may have {_LONGEST}")
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise Refused(f"{option} {text!r} holds a character that no text in the database has")


def parse_status(text: str) -> Status:
    """The state of that name; raises Refused with the list of names."""
    try:
        return Status(text.strip().lower())
    except ValueError:
        raise Refused(f"status {text!r} does not exist: it is one of {', '.join(Status)}") from None


_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


def parse_at(text: str, now: datetime) -> datetime:
    """A moment: a wait from now (`90m`, `6h`, `7d`, `2w`) or an ISO 8601 date or time, in UTC unless it says otherwise."""
    wait = re.fullmatch(r"(\d{1,6})([mhdw])", text.strip())
    try:
        if wait:
            moment = now + timedelta(**{_UNITS[wait[2]]: int(wait[1])})
        else:
            moment = datetime.fromisoformat(text.strip())
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        if not _EARLIEST <= moment < _LATEST:
            raise ValueError
    except (ValueError, OverflowError):
        raise Refused(
            f"--at {text!r} is no time that can be planned for: give a time (2026-11-20T14:30) or a wait (6h)"
        ) from None
    return moment


def parse_payload(text: str) -> dict[str, Any]:
    """A JSON object that can be stored; raises Refused."""
    try:
        found = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        raise Refused(f'--payload {text!r} is no JSON object, as {{"payload_id": 7}}: {error}') from None
    if b"\\u0000" in msgspec.json.encode(found):
        raise Refused(f"--payload {text!r} cannot be stored: a text in it holds a NUL character")
    return found


async def _store_id(conn: Connection, text: str) -> int:
    found = await stores.find(conn, text)
    if found is None:
        some = ", ".join(f"{one.id} ({one.slug})" for one in await stores.page(conn, limit=10))
        raise Refused(
            f"store {text!r} does not exist: there is {some or 'none yet'}; `menuwatch stores list` shows all"
        )
    return found.id


def _act(
    verb: str,
    done: str,
    ids: Sequence[int] | None,
    chosen: _Chosen,
    one: Callable[[Connection, int], Awaitable[str]],
    many: Callable[[Connection, TaskFilter, bool], Awaitable[Bulk]],
    *,
    dry_run: bool,
    yes: bool,
    json: bool,
) -> None:
    if ids:
        if chosen.given() or chosen.everything:
            raise Refused("numbers of tasks stand alone: leave the filter out, or the numbers")
        if dry_run:
            raise Refused("--dry-run is for filters: which tasks these are is known")
        _finish_ids(asyncio.run(_each(ids, one)), json)
        return
    if chosen.given() == chosen.everything:
        raise Refused(
            f"{verb} which tasks? Give their numbers, or a filter (--role, --status, --store, --worker, --error), or --all"
        )
    result = asyncio.run(_bulk(verb, chosen, many, dry_run=dry_run, yes=yes))
    if result is None:
        raise typer.Exit(1)
    if json:
        print_json(dataclasses.asdict(result))
        return
    what = f"{plural(result.would, 'task')} would be" if result.dry_run else plural(result.done, "task")
    passed = ", ".join(f"{n:,} {reason}" for reason, n in result.skipped.items())
    console.print(f"{what} {done}" + (f"; passed over: {passed}." if passed else "."), markup=False)


def _finish_ids(outcomes: Sequence[tuple[int, str, bool]], json: bool) -> None:
    failed = [said for _, said, good in outcomes if not good]
    if len(failed) == len(outcomes) == 1:
        raise Refused(failed[0])
    if json:
        print_json([{"id": task_id, "done": good, "said": said} for task_id, said, good in outcomes])
    for _, said, good in outcomes:
        if not good:
            errors.print(f"menuwatch: {plain(said)}", markup=False, soft_wrap=True)
        elif not json:
            console.print(said, markup=False)
    if failed:
        raise typer.Exit(1)


async def _each(ids: Sequence[int], one: Callable[[Connection, int], Awaitable[str]]) -> list[tuple[int, str, bool]]:
    outcomes = []
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        for task_id in dict.fromkeys(ids):
            try:
                async with conn.transaction():
                    outcomes.append((task_id, await one(conn, task_id), True))
            except Refused as error:
                outcomes.append((task_id, str(error), False))
    return outcomes


async def _bulk(
    verb: str,
    chosen: _Chosen,
    many: Callable[[Connection, TaskFilter, bool], Awaitable[Bulk]],
    *,
    dry_run: bool,
    yes: bool,
) -> Bulk | None:
    """None where the person says no."""
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        where = await chosen.filter(conn)
        found = await many(conn, where, True)
        if dry_run or found.would == 0:
            return dataclasses.replace(found, dry_run=dry_run)
        if not yes:
            question = f"{verb.capitalize()} {plural(found.would, 'task')}?"
            if not sys.stdin.isatty():
                raise Refused(f"{question} Nobody is here to answer: add --yes")
            if not await asyncio.to_thread(typer.confirm, question, err=True):
                return None
        async with conn.transaction():
            return await many(conn, where, False)


async def _list(chosen: _Chosen, limit: int) -> list[Row]:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        return await operations.page(conn, await chosen.filter(conn), limit=limit)


async def _show(task_id: int) -> tuple[Row, Explanation, str | None]:
    found = settings()
    async with bootstrap.open_system(found) as system, system.pool.connection() as conn:
        task = await operations.one(conn, task_id)
        why = await explain.explain(
            conn,
            task_id,
            heartbeat_seconds=found.heartbeat_interval_ms / 1000,
            stale_minutes=found.stale_after_minutes,
        )
        store = None if task["dispensary_id"] is None else await stores.get(conn, task["dispensary_id"])
        return task, why, None if store is None else store.name


_LOOKED_AT = 1000
"""Waiting tasks of one role and store: seldom more than two."""


async def _enqueue(
    role: Role, store: str | None, priority: int, due: datetime | None, payload: dict[str, Any] | None
) -> tuple[int, bool, _Changed]:
    """The task, whether it is new, and what changed with one that waited already."""
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn, conn.transaction():
        store_id = None if store is None else await _store_id(conn, store)
        same = TaskFilter(roles=[role], statuses=[Status.PENDING], dispensary_id=store_id)
        waiting = {row["id"]: row for row in await operations.page(conn, same, limit=_LOOKED_AT)}
        wish = Wish(role=role, dispensary_id=store_id, priority=priority, scheduled_for=due, payload=payload)
        number, created = await wishes.enqueue(conn, wish, platforms=tuple(system.platforms))
        changed = {} if created else _changed(waiting.get(number), await operations.one(conn, number))
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


def _decoded(value: Any) -> Any:
    return None if value is None else msgspec.json.decode(value)


def _unexplained(task: Row) -> bool:
    """It was cancelled by somebody who gave no reason."""
    return bool(task["status"] == Status.CANCELLED and task["error_message"] == "cancelled")


def _timeline(task: Row) -> list[str]:
    """The task's moments in their order, and how long each step took."""
    over, due = task["completed_at"], task["scheduled_for"]
    moments = [
        (task["created_at"], "enqueued"),
        # One that was cancelled before it was due never came to be.
        (None if due is not None and over is not None and due > over else due, "due"),
        (task["claimed_at"], f"claimed by {task['worker_id']}"),
        (task["started_at"], "begun"),
        (task["last_heartbeat_at"], "last sign of its worker"),
        (over, task["status"]),
    ]
    lines = []
    before: datetime | None = None
    for moment, what in sorted((one for one in moments if one[0] is not None), key=lambda one: one[0]):
        later = "" if before is None else f"  +{span((moment - before).total_seconds())}"
        lines.append(f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC  {what}{later}")
        before = moment
    return lines
