"""Which tasks a command acts on, by id or by filter, with confirmation; the arguments of new tasks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

import msgspec
import typer
from msgspec import structs

from menuwatch.cli.options import (
    DryRunOption,
    JsonOption,
    StoreOption,
    YesOption,
    check_text,
    find_store_id,
    parse_since,
)
from menuwatch.cli.output import echo, notice, print_json
from menuwatch.cli.startup import in_connection
from menuwatch.core.errors import InvalidField, Refused
from menuwatch.core.format import pluralize
from menuwatch.db.pool import Connection
from menuwatch.queue.model import parse_role, parse_state, split_states
from menuwatch.queue.search import MAX_QUERY, apply_query
from menuwatch.queue.service import BulkResult
from menuwatch.queue.task_list import TaskFilter, TaskRow, find_workers, store_names

RolesOption = Annotated[list[str] | None, typer.Option("--role", help="Only this role (repeatable).")]


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """A filter of tasks; raises Refused for a text that cannot be searched for."""

    role: RolesOption = None
    status: Annotated[
        list[str] | None,
        typer.Option(
            "--status", help="Only this status, or pending tasks that are ready, blocked or scheduled (repeatable)."
        ),
    ] = None
    store: StoreOption = None
    worker: Annotated[
        str | None,
        typer.Option("--worker", help="Only tasks claimed by this worker (name or ID), now or when they ended."),
    ] = None
    error: Annotated[str | None, typer.Option("--error", help="Only tasks whose reason contains this text.")] = None
    query: Annotated[
        str | None,
        typer.Option("--query", help="Search as in the dashboard: 'role:payload_fetch attempts:>2 took:>30s timeout'."),
    ] = None

    def __post_init__(self) -> None:
        if self.query is not None and not 0 < len(self.query) <= MAX_QUERY:
            raise Refused(f"--query must have 1 to {MAX_QUERY:,} characters")
        for name in ("store", "worker", "error"):
            check_text(f"--{name}", getattr(self, name))

    async def filter(self, conn: Connection) -> TaskFilter:
        """The filter. Raises Refused for unknown values."""
        statuses, waits = split_states([parse_state(name) for name in self.status or ()])
        where = TaskFilter(
            roles=[parse_role(name) for name in self.role] if self.role else None,
            statuses=statuses or None,
            waits=waits,
            dispensary_id=await find_store_id(conn, self.store),
            worker_ids=None if self.worker is None else await find_workers(conn, self.worker),
            error=self.error,
        )
        try:
            return where if self.query is None else await apply_query(conn, where, self.query)
        except InvalidField as error:
            raise Refused(f"--query: {error}") from None


@dataclass(frozen=True, slots=True)
class TaskSelection(TaskOptions):
    """Tasks to act on: a filter or all, with confirmation."""

    everything: Annotated[bool, typer.Option("--all", help="Select all tasks.")] = False
    dry_run: DryRunOption = False
    yes: YesOption = False
    json: JsonOption = False

    @property
    def is_filter(self) -> bool:
        texts = (self.store, self.worker, self.error, self.query)
        return any((self.role, self.status)) or any(text is not None for text in texts)


async def get_store_name(conn: Connection, task: TaskRow) -> str | None:
    """The name of the task's store; None if it has none or it was removed."""
    names = await store_names(conn, [task.dispensary_id])
    return names[task.dispensary_id]["name"] if task.dispensary_id in names else None


class _Outcome(NamedTuple):
    id: int
    done: bool
    message: str


def change_tasks(
    verb: str,
    done: str,
    ids: Sequence[int] | None,
    selection: TaskSelection,
    one: Callable[[Connection, int], Awaitable[str]],
    many: Callable[[Connection, TaskFilter, bool], Awaitable[BulkResult]],
) -> None:
    """Applies `one` to each task id, or `many` to the selection, and prints the result.

    `many` takes whether it is a dry run. Raises Refused if it is unclear which tasks are meant, and Exit if the user declined or
    some of the task ids failed; the others were processed."""
    if ids:
        if selection.is_filter or selection.everything:
            raise Refused("task ids and filters are mutually exclusive")
        if selection.dry_run:
            raise Refused("--dry-run needs a filter, not task ids")
        _print_outcomes(in_connection(lambda _, conn: _each(conn, ids, one)), selection.json)
        return
    if selection.is_filter == selection.everything:
        raise Refused(
            f"{verb} which tasks? Give task ids, a filter (--role, --status, --store, --worker, --error, --query), or --all"
        )
    result = in_connection(lambda _, conn: _bulk(conn, verb, selection, many))
    if result is None:
        raise typer.Exit(1)
    if selection.json:
        print_json(result)
        return
    what = f"{pluralize(result.would, 'task')} would be" if result.dry_run else pluralize(result.done, "task")
    skipped = ", ".join(f"{n:,} {reason}" for reason, n in result.skipped.items())
    echo(f"{what} {done}" + (f"; skipped: {skipped}." if skipped else "."))


def _print_outcomes(outcomes: Sequence[_Outcome], json: bool) -> None:
    failed = [outcome.message for outcome in outcomes if not outcome.done]
    if len(failed) == len(outcomes) == 1:
        raise Refused(failed[0])
    if json:
        print_json([{"id": outcome.id, "done": outcome.done, "said": outcome.message} for outcome in outcomes])
    for outcome in outcomes:
        if not outcome.done:
            notice(f"menuwatch: {outcome.message}")
        elif not json:
            echo(outcome.message)
    if failed:
        raise typer.Exit(1)


async def _each(
    conn: Connection, ids: Sequence[int], one: Callable[[Connection, int], Awaitable[str]]
) -> list[_Outcome]:
    outcomes = []
    for task_id in dict.fromkeys(ids):
        try:
            async with conn.transaction():
                outcomes.append(_Outcome(task_id, True, await one(conn, task_id)))
        except Refused as error:
            outcomes.append(_Outcome(task_id, False, str(error)))
    return outcomes


async def _bulk(
    conn: Connection,
    verb: str,
    selection: TaskSelection,
    many: Callable[[Connection, TaskFilter, bool], Awaitable[BulkResult]],
) -> BulkResult | None:
    """None if the user declined."""
    where = await selection.filter(conn)
    preview = await many(conn, where, True)
    if selection.dry_run or preview.would == 0:
        return structs.replace(preview, dry_run=selection.dry_run)
    if not selection.yes:
        question = f"{verb.capitalize()} {pluralize(preview.would, 'task')}?"
        if not sys.stdin.isatty():
            raise Refused(f"{question} No TTY for confirmation; pass --yes.")
        if not await asyncio.to_thread(typer.confirm, question, err=True):
            return None
    async with conn.transaction():
        return await many(conn, where, False)


_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


def parse_start(text: str | None) -> datetime | None:
    """Parses --at; None for immediately."""
    if text is None:
        return None
    try:
        moment = parse_since(text, datetime.now(UTC), sign=1)
    except Refused:
        moment = None
    if moment is None or not _EARLIEST <= moment < _LATEST:
        raise Refused(f"--at {text!r} is not a time to schedule for: give a time (2026-11-20T14:30) or a delay (6h)")
    return moment


def parse_payload(text: str | None) -> dict[str, Any] | None:
    """A JSON object that can be stored; raises Refused."""
    if text is None:
        return None
    try:
        payload = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        raise Refused(f'--payload {text!r} is not a JSON object such as {{"payload_id": 7}}: {error}') from None
    if b"\\u0000" in msgspec.json.encode(payload):
        raise Refused(f"--payload {text!r} cannot be stored: a text in it holds a NUL character")
    return payload
