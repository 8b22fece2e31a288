"""The queue as people look at it, and what people ask of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.operations.reading import Row, row, rows
from menuwatch.operations.refusals import Conflict, NotFound, Unusable
from menuwatch.stores import store as stores
from menuwatch.tasks import store as tasks
from menuwatch.tasks.model import PER_STORE_ROLES, UNHANDLED_ROLES, NewTask, Role, Status

_q = sql.load(__package__)

FINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
"""States that a task does not leave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which tasks; None takes all. `created_after` is inclusive, `created_before` is not."""

    roles: Sequence[Role] | None = None
    statuses: Sequence[Status] | None = None
    dispensary_id: int | None = None
    platform: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None

    def values(self) -> dict[str, Any]:
        """The filter as query parameters."""
        return {
            "roles": None if self.roles is None else [str(role) for role in self.roles],
            "statuses": None if self.statuses is None else [str(status) for status in self.statuses],
            "dispensary_id": self.dispensary_id,
            "platform": self.platform,
            "created_after": self.created_after,
            "created_before": self.created_before,
        }


async def page(
    conn: AsyncConnection[Any], where: TaskFilter, *, after: int | None = None, limit: int = 50
) -> list[Row]:
    """Tasks, newest first, those enqueued before the one with id `after`."""
    return await rows(conn, _q.list_tasks, {**where.values(), "after": after, "limit": limit})


async def one(conn: AsyncConnection[Any], task_id: int) -> Row:
    """One task; raises NotFound."""
    found = await row(conn, _q.get_task, {"id": task_id})
    if found is None:
        raise NotFound(f"task {task_id} does not exist")
    return found


async def count(conn: AsyncConnection[Any], where: TaskFilter) -> dict[str, dict[str, int]]:
    """How many tasks there are, by role and status; nothing where there are none."""
    counts: dict[str, dict[str, int]] = {}
    for found in await rows(conn, _q.count_tasks, where.values()):
        counts.setdefault(found["role"], {})[found["status"]] = found["n"]
    return counts


async def last_completion(conn: AsyncConnection[Any], role: Role) -> Row | None:
    """The task of that role that was completed last."""
    return await row(conn, _q.last_completion, {"role": str(role)})


async def active_of_store(conn: AsyncConnection[Any], dispensary_id: int) -> Row | None:
    """The task that works on a store right now, None where none does; raises NotFound for a store that does not exist."""
    if await stores.get(conn, dispensary_id) is None:
        raise NotFound(f"store {dispensary_id} does not exist")
    return await row(conn, _q.active_of_store, {"dispensary_id": dispensary_id})


async def enqueue(
    conn: AsyncConnection[Any],
    *,
    role: Role,
    dispensary_id: int | None,
    platforms: Sequence[str],
    platform: str | None = None,
    priority: int,
    scheduled_for: datetime | None = None,
    payload: Mapping[str, Any] | None = None,
) -> tuple[int, bool]:
    """Enqueues a task that a person asked for; returns its id and whether it is new. One that waits already is not doubled.

    Without `platform` it is the store's, or the only one that there is. Raises Unusable for a store or platform that
    does not exist, and where the role needs a store and none is named.
    """
    if role in UNHANDLED_ROLES:
        raise Unusable("role", f"no worker of this version does {role}: the task would wait for ever")
    if dispensary_id is None and role in PER_STORE_ROLES:
        raise Unusable("dispensary_id", f"a {role} task needs the store it is for")
    if dispensary_id is not None:
        if role not in PER_STORE_ROLES:
            raise Unusable("dispensary_id", f"a {role} task is for no single store: leave it out")
        store = await stores.get(conn, dispensary_id)
        if store is None:
            raise Unusable("dispensary_id", f"store {dispensary_id} does not exist")
        if platform is not None and platform != store.platform:
            raise Unusable("platform", f"store {dispensary_id} is on {store.platform}, not on {platform}")
        platform = store.platform
    if platform is None:
        platform = platforms[0]
    elif platform not in platforms:
        raise Unusable("platform", f"platform {platform!r} is not known: it is one of {', '.join(platforms)}")
    if role is Role.PRODUCT_REFRESH:
        _names_payload(payload)
    task = NewTask(
        role=role,
        dispensary_id=dispensary_id,
        platform=platform,
        priority=priority,
        scheduled_for=scheduled_for,
        payload=payload,
        # A refresh is of one payload: a waiting one of another payload is not the same work.
        unique=role is not Role.PRODUCT_REFRESH,
    )
    (enqueued,) = await tasks.enqueue(conn, [task])
    return enqueued.id, enqueued.created


def _names_payload(payload: Mapping[str, Any] | None) -> None:
    number = (payload or {}).get("payload_id")
    if not isinstance(number, int) or isinstance(number, bool):
        raise Unusable("payload", 'a product_refresh task needs the payload it reads: {"payload_id": number}')


async def recover_stale(conn: AsyncConnection[Any], threshold_minutes: float) -> int:
    """Takes tasks back from workers that were silent for that long; returns how many."""
    return await tasks.recover_stale(conn, threshold_minutes)


async def cancel(conn: AsyncConnection[Any], task_id: int) -> None:
    """Cancels a task that waits or runs; its worker loses it. Raises NotFound, and Conflict when it is over already."""
    task = await one(conn, task_id)
    if task["status"] in FINAL or not await tasks.cancel(conn, [task_id]):
        now = await one(conn, task_id)
        raise Conflict(f"task {task_id} is {now['status']} and cannot be cancelled any more")
