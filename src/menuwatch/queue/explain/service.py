"""Explain a task as of now: reads the facts and applies the rules (rules.py); the task with its explanation and trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.core.errors import NotFound
from menuwatch.core.postpone import PostponeCode
from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.query import fetch_all, fetch_one
from menuwatch.queue.explain.model import BlockingTask, Code, Explanation, Facts, HostFacts, WorkerFacts
from menuwatch.queue.explain.rules import MAX_COUNTED, accepts_role, claims_role, explanation
from menuwatch.queue.model import UNHANDLED_ROLES, Role
from menuwatch.queue.task_attempts import TaskAttempt, list_task_attempts
from menuwatch.queue.task_list import TaskRow, get_task
from menuwatch.queue.trace import MAX_REQUESTS, TaskTrace, trace_task

_q = sql.load(__package__, "service.sql")


class TaskWithReason(TaskRow, kw_only=True, frozen=True):
    """A task, why it is in its current state, and its attempts."""

    explanation: Explanation
    attempts: Annotated[list[TaskAttempt], doc("Its attempts, oldest first.")]


class ExplanationWithTrace(Explanation, kw_only=True, frozen=True):
    """Why a task is in its current state, with its trace."""

    story: Annotated[TaskTrace, doc("How the task reached its current state.")]


async def get_task_with_reason(conn: AsyncConnection[Any], task_id: int) -> TaskWithReason:
    """One task and its explanation; raises NotFound."""
    task = await get_task(conn, task_id)
    why = await explain(conn, task_id)
    attempts = await list_task_attempts(conn, task)
    return TaskWithReason(**msgspec.structs.asdict(task), explanation=why, attempts=attempts)


async def explain_with_trace(
    conn: AsyncConnection[Any], task_id: int, *, requests: int = MAX_REQUESTS
) -> ExplanationWithTrace:
    """The explanation of one task, with its trace; raises NotFound."""
    why = await explain(conn, task_id)
    return ExplanationWithTrace(**msgspec.structs.asdict(why), story=await trace_task(conn, task_id, limit=requests))


async def explain(conn: AsyncConnection[Any], task_id: int) -> Explanation:
    """Why this task is in its current state; raises NotFound."""
    task = await fetch_one(conn, _q.live_task_facts, {"id": task_id})
    if task is None:
        task = await fetch_one(conn, _q.finished_task_facts, {"id": task_id})
        if task is None:
            raise NotFound(f"task {task_id} does not exist")
        return explanation(Facts(**task))
    for name in ("head", "holder"):
        task[name] = None if task[name] is None else msgspec.json.decode(task[name], type=BlockingTask)
    workers = []
    if task["state"] != "a":
        workers = [WorkerFacts(**row) for row in await fetch_all(conn, _q.worker_facts, {})]
    if task["postpone_code"] is not None:
        task["postpone_code"] = PostponeCode(task["postpone_code"])
    by, blocked_by = task["postpone_host"], task.pop("blocked_by")
    hosts: dict[str, HostFacts] = {}
    if names := sorted({by, blocked_by} - {None}):
        hosts = {row["host"]: _host(row) for row in await fetch_all(conn, _q.host_facts, {"hosts": names})}
    proxies = await fetch_one(conn, _q.active_proxies, {})
    facts = Facts(
        **task,
        workers=workers,
        blocked=hosts.get(blocked_by),
        postponed_by=hosts[by] if by else None,
        active_proxies=proxies["n"] if proxies else 0,
    )
    first = explanation(facts)
    if first.code not in (Code.READY, Code.NO_FREE_SLOT):
        return first
    params = {"id": task_id, "roles": _competing_roles(facts), "most": MAX_COUNTED}
    count = await fetch_one(conn, _q.tasks_before, params)
    return explanation(replace(facts, before=count["n"] if count else 0))


def _host(row: Mapping[str, Any]) -> HostFacts:
    return HostFacts(**{**row, "code": None if row["code"] is None else PostponeCode(row["code"])})


def _competing_roles(f: Facts) -> list[str]:
    """The roles that compete for the workers of this task."""
    roles: set[str] = set()
    for worker in f.workers:
        if worker.alive and accepts_role(worker, f.role) and claims_role(worker, f.role):
            roles |= set(Role if worker.roles is None else worker.roles) - set(worker.paused_roles)
    # A worker without a role filter takes only roles that it has a handler for.
    return sorted({str(role) for role in roles} - {str(role) for role in UNHANDLED_ROLES})
