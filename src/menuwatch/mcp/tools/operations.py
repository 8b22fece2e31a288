"""Tools for operators: the queue, failures, workers, hosts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from menuwatch.accounts.model import Permission
from menuwatch.db.clock import database_now
from menuwatch.hosts import service as hosts
from menuwatch.hosts.service import Host
from menuwatch.mcp.answer import Page, as_brief, in_brief
from menuwatch.mcp.tool import Call, ListInput, Tool, tool
from menuwatch.queue.capacity import Capacity, capacity
from menuwatch.queue.failures import MAX_GROUPS, FailureGroup, FailureStatus, FailureWindow, list_failures
from menuwatch.queue.model import Role
from menuwatch.workers import service as workers
from menuwatch.workers.service import Worker, WorkerFilter


async def _live(call: Call, rows: Sequence[Any], following: tuple[Any, ...] | None) -> Page:
    """Rows of the state of the system, which is observed by the answer itself."""
    now = await database_now(call.conn)
    return Page(rows=rows, next=following, newest=now, oldest=now)


class QueueInput(ListInput):
    """Nothing to choose."""


@tool("State of the queue", QueueInput, row=Capacity, permissions=[Permission.TASKS])
async def get_queue(call: Call, query: QueueInput) -> Page:
    """Pending, ready, blocked and running tasks of each role, those completed and failed in the last hour, and the workers needed."""
    rows, following = call.part_of(await capacity(call.conn))
    return await _live(call, rows, following)


class FailuresInput(ListInput):
    """Which failures."""

    window: FailureWindow = Field(
        FailureWindow.DAY, description="Only tasks that failed within this time; `all`: as long as kept."
    )
    role: Role | None = Field(None, description="Only tasks of this role.")
    status: FailureStatus | None = Field(None, description="Only failures with this status.")


@tool("Failed tasks by cause", FailuresInput, row=FailureGroup, permissions=[Permission.TASKS])
async def list_failed_tasks(call: Call, query: FailuresInput) -> Page:
    """Failed tasks grouped by cause, role and platform; open ones first, those with the most tasks first."""
    found = await list_failures(
        call.conn,
        query.window,
        roles=None if query.role is None else [query.role],
        status=query.status,
        limit=MAX_GROUPS,
        kept_days=call.app.settings.task_history_days,
    )
    rows, following = call.part_of(found)
    return await _live(call, rows, following)


class WorkersInput(ListInput):
    """Which workers."""

    alive: bool | None = Field(None, description="Only workers that are (`true`) or are not (`false`) alive.")
    role: Role | None = Field(None, description="Only workers that accept this role.")


WorkerRow = in_brief(Worker, "WorkerRow", "heartbeat")


@tool("Workers", WorkersInput, row=WorkerRow, permissions=[Permission.WORKERS])
async def list_workers(call: Call, query: WorkersInput) -> Page:
    """Workers, newest first, with status, time of the last heartbeat and tasks of the last hour."""
    where = WorkerFilter(alive=query.alive, role=query.role)
    found = await workers.list_workers(call.conn, where, after=call.after(tuple[datetime, str]), limit=call.limit + 1)
    rows = found[: call.limit]
    following = (rows[-1].started_at, rows[-1].worker_id) if len(found) > call.limit else None
    return await _live(call, [as_brief(WorkerRow, row) for row in rows], following)


class HostsInput(ListInput):
    """Nothing to choose."""


@tool("Hosts", HostsInput, row=Host, permissions=[Permission.HOSTS])
async def list_hosts(call: Call, query: HostsInput) -> Page:
    """Hosts that are requested, by name, with state (throttled, paused …), reason, what to do, rate and limits."""
    rows, following = call.part_of(await hosts.list_hosts(call.conn))
    return await _live(call, rows, following)


TOOLS: tuple[Tool[Any], ...] = (get_queue, list_failed_tasks, list_workers, list_hosts)
