"""List and count tasks by a filter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Annotated, Any, LiteralString

from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.core.errors import InvalidField, NotFound, Refused, unknown_value
from menuwatch.core.postpone import PostponeCode
from menuwatch.core.shapes import Instant, JsonObject, doc
from menuwatch.db import sql
from menuwatch.db.query import Row, fetch_all, fetch_one, fetch_struct, fetch_structs, like_pattern
from menuwatch.queue.model import Role, Status, WaitState
from menuwatch.stores import store as stores

_q = sql.load(__package__, "task_list.sql")


class TaskRow(Struct, kw_only=True, frozen=True):
    """A task."""

    id: int
    role: str
    dispensary_id: Annotated[int | None, doc("Id of the store; null for tasks that are not for one.")]
    platform: str
    status: Annotated[Status, doc("`stale`: its worker has stopped sending heartbeats.")]
    priority: Annotated[int, doc("Higher runs first: 0 scheduled, 10 chained and on demand, 20 and more urgent.")]
    scheduled_for: Annotated[Instant | None, doc("Earliest start; null for immediately.")]
    worker_id: Annotated[str | None, doc("Id of the worker that claimed it last; null if never claimed.")]
    claimed_at: Instant | None
    started_at: Instant | None
    completed_at: Annotated[Instant | None, doc("When it ended, with any outcome; null if it has not.")]
    last_heartbeat_at: Annotated[Instant | None, doc("Last heartbeat of its worker for this task.")]
    result: JsonObject | None
    error_message: Annotated[
        str | None, doc("Why it failed, waits for a retry or was cancelled; null if none of these.")
    ]
    retry_count: Annotated[int, doc("Number of retries used.")]
    max_retries: int
    payload: Annotated[JsonObject, doc("Arguments of the task; empty if it has none.")]
    attempt: Annotated[int, doc("Number of times it was claimed.")]
    postpone_code: Annotated[PostponeCode | None, doc("Why a pending task is postponed; null if it is not.")]
    postpone_host: Annotated[str | None, doc("Host that caused the postponement; null if none did.")]
    wait_state: Annotated[
        WaitState | None,
        doc(
            "What a pending task waits for; null for other tasks. `ready`: a worker may claim it, now or after others of its store; "
            "`blocked`: its host gets no requests now; `scheduled`: it is not due yet."
        ),
    ]
    blocked_by: Annotated[str | None, doc("Host that blocks a pending task; null if none does.")]
    created_at: Annotated[Instant, doc("When it was enqueued.")]
    updated_at: Instant

    @property
    def is_active(self) -> bool:
        """Whether a worker holds it."""
        return self.status in (Status.CLAIMED, Status.RUNNING, Status.STALE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Filter for tasks; None matches all. `…_after` and the bounds of the priority are inclusive, `…_before` is exclusive. `error` is
    text in the reason, and each of `texts` as well; each of `arguments` is a path into the payload (`a.b`) and the text of the value
    there; `took_…` are exclusive bounds of the last attempt's duration in seconds; `cause` is that of a failure (failures.py);
    `waits` are the wait states of pending tasks (`split_states`)."""

    roles: Sequence[Role] | None = None
    statuses: Sequence[Status] | None = None
    waits: Sequence[WaitState] | None = None
    dispensary_id: int | None = None
    platform: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    worker_ids: Sequence[str] | None = None
    error: str | None = None
    ended_after: datetime | None = None
    ended_before: datetime | None = None
    ids: Sequence[int] | None = None
    priority_min: int | None = None
    priority_max: int | None = None
    attempts_min: int | None = None
    attempts_max: int | None = None
    took_over: float | None = None
    took_under: float | None = None
    arguments: Sequence[tuple[str, str]] | None = None
    cause: str | None = None
    texts: Sequence[str] | None = None

    def to_params(self) -> dict[str, Any]:
        """The filter as query parameters."""
        texts = [*([] if self.error is None else [self.error]), *(self.texts or ())]
        # payload_id has an index, and so a parameter of its own.
        others = [argument for argument in self.arguments or () if argument[0] != "payload_id"]
        return {
            "roles": None if self.roles is None else [str(role) for role in self.roles],
            "statuses": None if self.statuses is None else [str(status) for status in self.statuses],
            "waits": None if self.waits is None else [str(state) for state in self.waits],
            "dispensary_id": self.dispensary_id,
            "platform": self.platform,
            "created_after": self.created_after,
            "created_before": self.created_before,
            "ended_after": self.ended_after,
            "ended_before": self.ended_before,
            "worker_ids": None if self.worker_ids is None else list(self.worker_ids),
            "ids": None if self.ids is None else list(self.ids),
            "priority_min": self.priority_min,
            "priority_max": self.priority_max,
            "attempts_min": self.attempts_min,
            "attempts_max": self.attempts_max,
            "took_over": self.took_over,
            "took_under": self.took_under,
            "payload_id": next((value for path, value in self.arguments or () if path == "payload_id"), None),
            "paths": [path for path, _ in others] or None,
            "keys": [path.partition(".")[0] for path, _ in others] or None,
            "values": [value for _, value in others] or None,
            "cause": self.cause,
            "errors": [like_pattern(text) for text in texts] or None,
            # ASCII is lowered without a collation, in half the time.
            "ascii_patterns": [like_pattern(text.lower()) for text in texts]
            if texts and all(map(str.isascii, texts))
            else None,
            "worked_from": None,
            "worked_until": None,
            "uncounted_from": None,
        }


async def select_tasks(
    conn: AsyncConnection[Any],
    where: TaskFilter,
    *,
    after: int | None = None,
    limit: int | None = None,
    oldest_first: bool = False,
) -> tuple[LiteralString, dict[str, Any]]:
    """The statement that lists tasks, newest first (or oldest first), and its parameters."""
    if not oldest_first:
        below = await id_bound(conn, where)
        after = below if after is None else after if below is None else min(after, below)
    params = {**where.to_params(), **await worker_days(conn, where), "after": after, "limit": limit}
    if where.cause is not None:
        params |= {"cause": None, "of_cause": where.cause}
        return _q.list_failed_oldest if oldest_first else _q.list_failed, params
    return _q.list_oldest if oldest_first else _q.list_tasks, params


async def list_tasks(
    conn: AsyncConnection[Any],
    where: TaskFilter,
    *,
    after: int | None = None,
    limit: int = 50,
    oldest_first: bool = False,
) -> list[TaskRow]:
    """Tasks, newest first (or oldest first), beyond the one with id `after`."""
    query, params = await select_tasks(conn, where, after=after, limit=limit, oldest_first=oldest_first)
    return await fetch_structs(conn, TaskRow, query, params, prepare=False)


_INDEXED = {"roles", "statuses", "dispensary_id", "cause", "ended_after", "ended_before"}
"""Fields of a filter with which an index finds tasks in the order of their end."""
_UNFINISHED = (Status.PENDING, Status.CLAIMED, Status.RUNNING, Status.STALE)


def can_sort_by_end(where: TaskFilter) -> bool:
    """Whether `list_by_end` is fast: of other filters, and of states that are rare, it would read far more tasks than it lists."""
    given = {field.name for field in fields(where) if getattr(where, field.name) is not None}
    common = where.statuses is None or Status.COMPLETED in where.statuses or where.cause is not None
    return common and given <= _INDEXED


async def list_by_end(
    conn: AsyncConnection[Any],
    where: TaskFilter,
    *,
    after: tuple[datetime | None, int] | None = None,
    limit: int = 50,
    oldest_first: bool = False,
) -> list[TaskRow]:
    """Tasks that ended, latest first (or oldest first), then those that have not, by id; behind the one with that end (None if it has
    not ended) and id."""
    after_at, after_id = after or (None, None)
    ended: list[TaskRow] = []
    if after is None or after_at is not None:
        params = {**where.to_params(), "cause": None, "of_cause": where.cause}
        query = _q.list_ended_oldest if oldest_first else _q.list_ended
        values = {**params, "after_at": after_at, "after": after_id, "limit": limit}
        ended = await fetch_structs(conn, TaskRow, query, values, prepare=False)
        after_id = None
    unfinished = [status for status in _UNFINISHED if where.statuses is None or status in where.statuses]
    if len(ended) == limit or not unfinished or where.cause is not None:
        return ended
    rest = replace(where, statuses=unfinished)
    return ended + await list_tasks(conn, rest, after=after_id, limit=limit - len(ended), oldest_first=oldest_first)


async def get_task(conn: AsyncConnection[Any], task_id: int) -> TaskRow:
    """One task; raises NotFound."""
    task = await fetch_struct(conn, TaskRow, _q.get_task, {"id": task_id})
    if task is None:
        raise NotFound(f"task {task_id} does not exist")
    return task


async def last_task_id(conn: AsyncConnection[Any]) -> int:
    """The highest task id so far, 0 without tasks; distinguishes a deleted task from one that never existed."""
    row = await fetch_one(conn, _q.last_task_id, {})
    return int(row["id"]) if row else 0


async def id_bound(conn: AsyncConnection[Any], where: TaskFilter) -> int | None:
    """An upper bound of the ids that the filter selects, so that later tasks are not read; None if unknown."""
    if where.created_before is None:
        return None
    (row,) = await fetch_all(conn, _q.task_id_bound, {"moment": where.created_before})
    return int(row["id"])


async def worker_days(conn: AsyncConnection[Any], where: TaskFilter) -> dict[str, datetime]:
    """Parameters that limit the filter to the days on which its workers finished tasks."""
    if where.worker_ids is None:
        return {}
    (row,) = await fetch_all(conn, _q.days_of_workers, {"worker_ids": list(where.worker_ids)})
    never = datetime.max.replace(tzinfo=UTC)
    return {
        "worked_from": row["first"] or never,
        "worked_until": row["last"] or never,
        "uncounted_from": row["uncounted"] or never,
    }


async def count_tasks(conn: AsyncConnection[Any], where: TaskFilter) -> dict[str, dict[str, int]]:
    """Count tasks by role and status, without zeros. Reads all that the filter selects; counts.py is fast with millions of tasks."""
    params = {**where.to_params(), **await worker_days(conn, where), "below": await id_bound(conn, where)}
    query: Any = _q.count_tasks
    if where.cause is not None:
        query, params = _q.count_failed, {**params, "cause": None, "of_cause": where.cause}
    counts: dict[str, dict[str, int]] = {}
    for row in await fetch_all(conn, query, params, prepare=False):
        counts.setdefault(row["role"], {})[row["status"]] = row["n"]
    return counts


class LastCompletion(Struct, kw_only=True, frozen=True):
    """The last success of a role."""

    role: str
    completed_at: Annotated[Instant | None, doc("When the last task completed; null if none did or none is kept.")]
    task: Annotated[TaskRow | None, doc("The last completed task; null if there is none.")]


async def get_last_completion(conn: AsyncConnection[Any], role: Role) -> LastCompletion:
    """The task of that role that completed last."""
    task = await fetch_struct(conn, TaskRow, _q.last_completion, {"role": str(role)})
    return LastCompletion(role=role, completed_at=task.completed_at if task else None, task=task)


class ActiveTask(Struct, kw_only=True, frozen=True):
    """The active task of a store."""

    dispensary_id: Annotated[int, doc("Id of the store.")]
    active: Annotated[bool, doc("Whether a worker holds a task for the store.")]
    task: Annotated[TaskRow | None, doc("The active task; null if there is none.")]


async def get_active_task(conn: AsyncConnection[Any], dispensary_id: int) -> ActiveTask:
    """The active task of a store; raises NotFound for a store that does not exist."""
    if await stores.get(conn, dispensary_id) is None:
        raise NotFound(f"store {dispensary_id} does not exist")
    task = await fetch_struct(conn, TaskRow, _q.active_of_store, {"dispensary_id": dispensary_id})
    return ActiveTask(dispensary_id=dispensary_id, active=task is not None, task=task)


async def list_recent(
    conn: AsyncConnection[Any],
    role: Role,
    statuses: Sequence[Status],
    *,
    after: tuple[datetime, int] | None = None,
    limit: int = 50,
) -> list[TaskRow]:
    """Tasks of a role that ended with one of these statuses, latest end first, after the one with that end and id."""
    after_at, after_id = after or (None, None)
    params = {"role": str(role), "statuses": list(map(str, statuses)), "limit": limit}
    return await fetch_structs(
        conn, TaskRow, _q.list_recent, {**params, "after_at": after_at, "after_id": after_id}, prepare=False
    )


async def recently_finished(conn: AsyncConnection[Any], *, limit: int = 8) -> list[Row]:
    """Tasks finished in the last day, latest first, with the names of their stores and workers."""
    return await fetch_all(conn, _q.recently_finished, {"limit": limit})


async def check_filter(conn: AsyncConnection[Any], where: TaskFilter, *, platforms: Sequence[str]) -> None:
    """Raises InvalidField if the filter names a store or a platform that does not exist."""
    if where.platform is not None and where.platform not in platforms:
        raise InvalidField("platform", unknown_value("platform", where.platform, platforms))
    if where.dispensary_id is not None and await stores.get(conn, where.dispensary_id) is None:
        raise InvalidField("dispensary_id", f"store {where.dispensary_id} does not exist")


async def store_names(conn: AsyncConnection[Any], ids: Iterable[int | None]) -> dict[int, Row]:
    """`name`, `slug` and `state` of stores, by id, without deleted ones."""
    distinct = sorted({store for store in ids if store is not None})
    rows = await fetch_all(conn, _q.stores_named, {"ids": distinct}) if distinct else []
    return {row["id"]: row for row in rows}


async def names_in(conn: AsyncConnection[Any], rows: Sequence[TaskRow]) -> tuple[dict[str, str], dict[int, str]]:
    """Names of the workers and of the stores of these tasks, by id."""
    stores_of = await store_names(conn, (task.dispensary_id for task in rows))
    workers = await worker_names(conn, (task.worker_id for task in rows))
    return workers, {number: row["name"] for number, row in stores_of.items()}


async def platform_of_host(conn: AsyncConnection[Any], host: str) -> str | None:
    """The platform whose tasks request that host; None if there is none."""
    row = await fetch_one(conn, _q.platform_of_host, {"host": host})
    return None if row is None else str(row["platform"])


async def find_workers(conn: AsyncConnection[Any], text: str) -> list[str]:
    """The ids of the workers that a text means: one with this id, else all that are or were called so (`Ada`, `Xylos/Ada`). A name
    passes from one worker to the next. Raises Refused if no worker and no task has it."""
    rows = await fetch_all(conn, _q.workers_called, {"text": text})
    ids = [str(row["worker_id"]) for row in rows]
    if text in ids:
        return [text]
    if not ids and not await fetch_one(conn, _q.worker_known, {"worker_id": text}):
        raise Refused(f"worker {text!r} does not exist: give its name or id; `menuwatch workers list` lists all")
    return ids or [text]


async def worker_names(conn: AsyncConnection[Any], ids: Iterable[str | None]) -> dict[str, str]:
    """Names of workers, by id, without those removed from the registry."""
    distinct = sorted({worker for worker in ids if worker is not None})
    rows = await fetch_all(conn, _q.workers_named, {"ids": distinct}) if distinct else []
    return {row["worker_id"]: row["friendly_name"] for row in rows}
