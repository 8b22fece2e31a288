"""The queue as people look at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.operations.reading import Row, pattern, row, rows
from menuwatch.operations.refusals import NotFound, Unusable
from menuwatch.stores import store as stores
from menuwatch.tasks.model import Role, Status

_q = sql.load(__package__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which tasks; None takes all. `…_after` and the bounds of the priority are inclusive, `…_before` is not; only what is over has
    ended. `error` is text in the reason, and each of `texts` as well; of `arguments` each is a path into what the task was asked with
    (`a.b`) and the text of the value there; `cause` is that of a failure (failures.py)."""

    roles: Sequence[Role] | None = None
    statuses: Sequence[Status] | None = None
    dispensary_id: int | None = None
    platform: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    worker_id: str | None = None
    error: str | None = None
    ended_after: datetime | None = None
    ended_before: datetime | None = None
    ids: Sequence[int] | None = None
    priority_min: int | None = None
    priority_max: int | None = None
    arguments: Sequence[tuple[str, str]] | None = None
    cause: str | None = None
    texts: Sequence[str] | None = None

    def values(self) -> dict[str, Any]:
        """The filter as query parameters."""
        texts = [*([] if self.error is None else [self.error]), *(self.texts or ())]
        # The one argument that has an index is asked for by itself.
        others = [one for one in self.arguments or () if one[0] != "payload_id"]
        return {
            "roles": None if self.roles is None else [str(role) for role in self.roles],
            "statuses": None if self.statuses is None else [str(status) for status in self.statuses],
            "dispensary_id": self.dispensary_id,
            "platform": self.platform,
            "created_after": self.created_after,
            "created_before": self.created_before,
            "ended_after": self.ended_after,
            "ended_before": self.ended_before,
            "worker_id": self.worker_id,
            "ids": None if self.ids is None else list(self.ids),
            "priority_min": self.priority_min,
            "priority_max": self.priority_max,
            "payload_id": next((value for path, value in self.arguments or () if path == "payload_id"), None),
            "paths": [path for path, _ in others] or None,
            "keys": [path.partition(".")[0] for path, _ in others] or None,
            "values": [value for _, value in others] or None,
            "cause": self.cause,
            "errors": [pattern(text) for text in texts] or None,
            # Both cases of ASCII are told apart, and put together, without asking what a language makes of them.
            "lowered": [pattern(text.lower()) for text in texts] if texts and all(map(str.isascii, texts)) else None,
            "worked_from": None,
            "worked_until": None,
            "uncounted_from": None,
        }


async def page(
    conn: AsyncConnection[Any], where: TaskFilter, *, after: int | None = None, limit: int = 50
) -> list[Row]:
    """Tasks, newest first, those enqueued before the one with id `after`."""
    below = await id_bound(conn, where)
    after = below if after is None else after if below is None else min(after, below)
    values = {**where.values(), **await worker_days(conn, where), "after": after, "limit": limit}
    if where.cause is not None:
        return await rows(conn, _q.list_failed, {**values, "cause": None, "of_cause": where.cause}, prepare=False)
    return await rows(conn, _q.list_tasks, values, prepare=False)


async def one(conn: AsyncConnection[Any], task_id: int) -> Row:
    """One task; raises NotFound."""
    found = await row(conn, _q.get_task, {"id": task_id})
    if found is None:
        raise NotFound(f"task {task_id} does not exist")
    return found


async def id_bound(conn: AsyncConnection[Any], where: TaskFilter) -> int | None:
    """An id above those that the filter selects, so that what was enqueued later is not looked at; None where nothing is known."""
    if where.created_before is None:
        return None
    found = await row(conn, _q.task_id_bound, {"moment": where.created_before})
    assert found is not None, "a function gives a row"
    return int(found["id"])


async def worker_days(conn: AsyncConnection[Any], where: TaskFilter) -> dict[str, datetime]:
    """The days on which the worker that the filter names ended anything, as parameters of the filter, so that others are not read."""
    if where.worker_id is None:
        return {}
    found = await row(conn, _q.days_of_worker, {"worker_id": where.worker_id})
    assert found is not None, "it selects no rows of a table"
    never = datetime.max.replace(tzinfo=UTC)
    return {
        "worked_from": found["first"] or never,
        "worked_until": found["last"] or never,
        "uncounted_from": found["uncounted"] or never,
    }


async def count(conn: AsyncConnection[Any], where: TaskFilter) -> dict[str, dict[str, int]]:
    """How many tasks there are, by role and status; nothing where there are none. Reads all that the filter selects; task_counts.py
    is quick in an installation of millions."""
    counts: dict[str, dict[str, int]] = {}
    values = {**where.values(), **await worker_days(conn, where), "below": await id_bound(conn, where)}
    statement = _q.count_tasks
    if where.cause is not None:
        statement, values = _q.count_failed, {**values, "cause": None, "of_cause": where.cause}
    for found in await rows(conn, statement, values, prepare=False):
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


async def check(conn: AsyncConnection[Any], where: TaskFilter, *, platforms: Sequence[str]) -> None:
    """Raises Unusable where the filter names a store or a platform that does not exist: nothing could ever be selected."""
    if where.platform is not None and where.platform not in platforms:
        raise Unusable("platform", f"platform {where.platform!r} is not known: it is one of {', '.join(platforms)}")
    if where.dispensary_id is not None and await stores.get(conn, where.dispensary_id) is None:
        raise Unusable("dispensary_id", f"store {where.dispensary_id} does not exist")
