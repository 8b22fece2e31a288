"""Why a task is where it is, as of now: reads the facts, and has the reason found (reasons.py)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.operations.closed_hosts import denial
from menuwatch.operations.explanation import Code, Explanation
from menuwatch.operations.facts import Facts, HostFacts, Other, WorkerFacts
from menuwatch.operations.reading import row, rows
from menuwatch.operations.reasons import explanation
from menuwatch.operations.refusals import NotFound
from menuwatch.operations.staffing import COUNTED, claims, takes
from menuwatch.tasks.model import NETWORK_ROLES, UNHANDLED_ROLES, Role

_q = sql.load(__package__, "explain.sql")

BEATS = 3
"""A worker lives while its last heartbeat is at most this many heartbeat intervals old."""


async def explain(
    conn: AsyncConnection[Any],
    task_id: int,
    *,
    heartbeat_seconds: float = 30.0,
    stale_minutes: float = 10.0,
    asked: Mapping[str, Collection[str]] | None = None,
) -> Explanation:
    """Why this task is where it is, as of now; raises NotFound. `asked` are the hosts that each platform's work asks.

    `heartbeat_seconds` is the workers' heartbeat interval: those that are silent for BEATS of them do not count as alive.
    """
    timing: dict[str, Any] = {"live_seconds": heartbeat_seconds * BEATS, "stale_seconds": stale_minutes * 60}
    found = await row(conn, _q.live_task_facts, {"id": task_id})
    if found is None:
        found = await row(conn, _q.finished_task_facts, {"id": task_id})
        if found is None:
            raise NotFound(f"task {task_id} does not exist")
        return explanation(Facts(**found, **timing))
    for name in ("head", "holder"):
        found[name] = None if found[name] is None else msgspec.json.decode(found[name], type=Other)
    workers = [] if found["state"] == "a" else [WorkerFacts(**one) for one in await rows(conn, _q.worker_facts, {})]
    platform = found.pop("platform")
    asks = set((asked or {}).get(platform, ())) if found["role"] in NETWORK_ROLES else set()
    denied = denial(found["error_message"])
    wanted = asks | ({denied.host} if denied else set())
    seen: dict[str, HostFacts] = {}
    if wanted:
        seen = {one["host"]: HostFacts(**one) for one in await rows(conn, _q.host_facts, {"hosts": sorted(wanted)})}
    proxies = await row(conn, _q.active_proxies, {})
    facts = Facts(
        **found,
        **timing,
        workers=workers,
        hosts=[seen[host] for host in sorted(asks)],
        denier=seen[denied.host] if denied else None,
        active_proxies=proxies["n"] if proxies else 0,
    )
    first = explanation(facts)
    if first.code not in (Code.READY, Code.NO_FREE_SLOT):
        return first
    count = await row(conn, _q.tasks_before, {"id": task_id, "roles": _beside(facts), "most": COUNTED})
    return explanation(replace(facts, before=count["n"] if count else 0))


def _beside(f: Facts) -> list[str]:
    """The roles that compete for the workers of this task."""
    roles: set[str] = set()
    for worker in f.workers:
        if worker.silent <= f.live_seconds and takes(worker, f.role) and claims(worker, f.role):
            roles |= set(Role if worker.roles is None else worker.roles) - set(worker.paused_roles)
    # Whoever takes any role takes none that it has no handler for.
    return sorted({str(role) for role in roles} - {str(role) for role in UNHANDLED_ROLES})
