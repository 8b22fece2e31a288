"""The queue as people look at it, and what people ask of it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg.errors import DeadlockDetected, LockNotAvailable

from menuwatch.core.errors import Refused
from menuwatch.core.telemetry import get_logger
from menuwatch.db import sql
from menuwatch.operations.reading import Row, pattern, row, rows
from menuwatch.operations.refusals import Conflict, NotFound, Unusable
from menuwatch.schedules.model import STATES, parse_state
from menuwatch.stores import store as stores
from menuwatch.tasks import store as tasks
from menuwatch.tasks.ending import clean_reason
from menuwatch.tasks.model import (
    NETWORK_ROLES,
    PER_STORE_ROLES,
    PRIORITY_CHAINED,
    UNHANDLED_ROLES,
    NewTask,
    Role,
    Status,
)
from menuwatch.tasks.store import Enqueued

_q = sql.load(__package__)
log = get_logger(__name__)

FINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
"""States that a task does not leave."""

RETRIED_AT_ONCE = 100_000
"""Most tasks that one call has done again."""

_UNHANDLED = sorted(str(role) for role in UNHANDLED_ROLES)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which tasks; None takes all. `created_after` is inclusive, `created_before` is not; `error` is text in the reason."""

    roles: Sequence[Role] | None = None
    statuses: Sequence[Status] | None = None
    dispensary_id: int | None = None
    platform: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    worker_id: str | None = None
    error: str | None = None

    def values(self) -> dict[str, Any]:
        """The filter as query parameters."""
        return {
            "roles": None if self.roles is None else [str(role) for role in self.roles],
            "statuses": None if self.statuses is None else [str(status) for status in self.statuses],
            "dispensary_id": self.dispensary_id,
            "platform": self.platform,
            "created_after": self.created_after,
            "created_before": self.created_before,
            "worker_id": self.worker_id,
            "error": None if self.error is None else pattern(self.error),
        }


async def page(
    conn: AsyncConnection[Any], where: TaskFilter, *, after: int | None = None, limit: int = 50
) -> list[Row]:
    """Tasks, newest first, those enqueued before the one with id `after`."""
    return await rows(conn, _q.list_tasks, {**where.values(), "after": after, "limit": limit}, prepare=False)


async def one(conn: AsyncConnection[Any], task_id: int) -> Row:
    """One task; raises NotFound."""
    found = await row(conn, _q.get_task, {"id": task_id})
    if found is None:
        raise NotFound(f"task {task_id} does not exist")
    return found


async def count(conn: AsyncConnection[Any], where: TaskFilter) -> dict[str, dict[str, int]]:
    """How many tasks there are, by role and status; nothing where there are none."""
    counts: dict[str, dict[str, int]] = {}
    for found in await rows(conn, _q.count_tasks, where.values(), prepare=False):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A task that a person asks for. Without `platform` it is the store's, or the only one that there is."""

    role: Role
    dispensary_id: int | None = None
    platform: str | None = None
    priority: int = PRIORITY_CHAINED
    scheduled_for: datetime | None = None
    payload: Mapping[str, Any] | None = None


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

    Raises Unusable for a store or platform that does not exist, and where the role needs a store and none is named.
    """
    wish = Wish(
        role=role,
        dispensary_id=dispensary_id,
        platform=platform,
        priority=priority,
        scheduled_for=scheduled_for,
        payload=payload,
    )
    (task,) = await _usable(conn, [wish], platforms, "")
    (enqueued,) = await tasks.enqueue(conn, [task])
    log.info(
        "task enqueued",
        action="task_enqueued",
        task_id=enqueued.id,
        role=str(role),
        dispensary_id=dispensary_id,
        created=enqueued.created,
    )
    return enqueued.id, enqueued.created


async def enqueue_batch(
    conn: AsyncConnection[Any], wishes: Sequence[Wish], *, platforms: Sequence[str]
) -> list[Enqueued]:
    """Enqueues many tasks that a person asked for, all of them or none; the answer runs parallel to `wishes`.

    Raises Unusable naming the first that cannot be used, as `tasks/17/role`.
    """
    enqueued = await tasks.enqueue(conn, await _usable(conn, wishes, platforms, "tasks"))
    _log_batch("tasks enqueued", "tasks_enqueued", enqueued)
    return enqueued


STATE_ROLES = (Role.PAYLOAD_FETCH, Role.PRODUCT_DISCOVERY)
"""Work that every store of a state can be given: it needs nothing but the store."""


async def enqueue_state(
    conn: AsyncConnection[Any],
    *,
    state_code: str,
    role: Role,
    platforms: Sequence[str],
    platform: str | None = None,
    priority: int = PRIORITY_CHAINED,
    scheduled_for: datetime | None = None,
) -> tuple[int, list[Enqueued]]:
    """Enqueues a task for each store of a state that can be crawled; returns the number of its stores, and what was enqueued.

    Raises Unusable for a state without such stores (naming the states that have stores), and for another role.
    """
    if role not in STATE_ROLES:
        names = ", ".join(STATE_ROLES)
        raise Unusable("role", f"{role} is not done for the stores of a state: it is one of {names}")
    if platform is not None and platform not in platforms:
        raise Unusable("platform", f"platform {platform!r} is not known: it is one of {', '.join(platforms)}")
    state = state_code.strip().upper()
    found = await rows(conn, _q.stores_of_state, {"state": state, "platform": platform})
    if not found:
        known = ", ".join(one["state"] for one in await rows(conn, _q.states_with_stores, {"platform": platform}))
        exists = "has no stores" if state in STATES else "does not exist"
        raise Unusable("state_code", f"state {state_code!r} {exists}: there are stores in {known or 'no state yet'}")
    crawlable = [one for one in found if one["crawl_enabled"] and one["resolved"]]
    if not crawlable:
        raise Unusable(
            "state_code",
            f"none of the {len(found)} stores in {state} can be crawled: they are switched off, or not found on their platform yet",
        )
    new = [
        NewTask(
            role=role,
            dispensary_id=one["id"],
            platform=one["platform"],
            priority=priority,
            scheduled_for=scheduled_for,
        )
        for one in crawlable
    ]
    enqueued = await tasks.enqueue(conn, new)
    _log_batch("tasks enqueued for a state", "state_enqueued", enqueued, state=state, role=str(role))
    return len(found), enqueued


def _log_batch(said: str, action: str, enqueued: Sequence[Enqueued], **more: Any) -> None:
    ids = [one.id for one in enqueued if one.created]
    span = {"first_task_id": min(ids), "last_task_id": max(ids)} if ids else {}
    log.info(said, action=action, asked=len(enqueued), created=len(ids), **span, **more)


async def _usable(
    conn: AsyncConnection[Any], wishes: Sequence[Wish], platforms: Sequence[str], batch: str
) -> list[NewTask]:
    """The wishes as tasks; raises Unusable for the first that cannot be done. `batch` names the list that they come in, if any."""
    known = await _known(conn, wishes)
    found = []
    for number, wish in enumerate(wishes):
        try:
            found.append(_task(wish, known, platforms))
        except Unusable as error:
            if not batch:
                raise
            said = f"{batch}[{number}].{error.field}: {error}; nothing of the batch was enqueued"
            raise Unusable(f"{batch}/{number}/{error.field}", said) from None
    return found


@dataclass(frozen=True, slots=True)
class _Known:
    """What the wishes name, as far as it exists: stores by number, and the store of each payload."""

    stores: Mapping[int, Row]
    payloads: Mapping[int, int]


async def _known(conn: AsyncConnection[Any], wishes: Sequence[Wish]) -> _Known:
    ids = sorted({wish.dispensary_id for wish in wishes if wish.dispensary_id is not None})
    found = await rows(conn, _q.stores_asked_for, {"ids": ids}) if ids else []
    numbers = sorted(
        {number for wish in wishes if wish.role is Role.PRODUCT_REFRESH and (number := _payload_id(wish.payload))}
    )
    of = await rows(conn, _q.payloads_asked_for, {"ids": numbers}) if numbers else []
    return _Known({one["id"]: one for one in found}, {one["id"]: one["dispensary_id"] for one in of})


def _task(wish: Wish, known: _Known, platforms: Sequence[str]) -> NewTask:
    role, platform, store, payload = wish.role, wish.platform, wish.dispensary_id, wish.payload
    if role in UNHANDLED_ROLES:
        raise Unusable("role", f"no worker of this version does {role}: the task would wait for ever")
    if store is None and role in PER_STORE_ROLES:
        raise Unusable("dispensary_id", f"a {role} task needs the store it is for")
    if store is not None:
        if role not in PER_STORE_ROLES:
            raise Unusable("dispensary_id", f"a {role} task is for no single store: leave it out")
        if store not in known.stores:
            raise Unusable("dispensary_id", f"store {store} does not exist")
        its = known.stores[store]["platform"]
        if platform is not None and platform != its:
            raise Unusable("platform", f"store {store} is on {its}, not on {platform}")
        platform = its
    if platform is None:
        platform = platforms[0]
    elif platform not in platforms:
        raise Unusable("platform", f"platform {platform!r} is not known: it is one of {', '.join(platforms)}")
    if role in NETWORK_ROLES and store is not None:
        _crawlable(role, known.stores[store])
    elif role is Role.PRODUCT_REFRESH and store is not None:
        _names_payload(payload, store, known.payloads)
    elif role is Role.STORE_DISCOVERY and payload:
        payload = _place(payload)
    return NewTask(
        role=role,
        dispensary_id=store,
        platform=platform,
        priority=wish.priority,
        scheduled_for=wish.scheduled_for,
        payload=payload,
        # A refresh is of one payload: a waiting one of another payload is not the same work.
        unique=role is not Role.PRODUCT_REFRESH,
    )


def _crawlable(role: Role, store: Row) -> None:
    number = store["id"]
    if not store["resolved"] and role in STATE_ROLES:
        raise Unusable(
            "dispensary_id",
            f"store {number} is not found on its platform yet, so that a {role} would fail: "
            "enqueue entry_point_discovery for it first",
        )
    if not store["crawl_enabled"]:
        raise Unusable(
            "dispensary_id",
            f"store {number} is switched off (crawl_enabled is false), so that a {role} would fail: "
            f'switch it on first (PATCH /api/stores/{number} with {{"crawl_enabled": true}})',
        )


_LARGEST_ID = 2**63 - 1


def _payload_id(payload: Mapping[str, Any] | None) -> int | None:
    number = (payload or {}).get("payload_id")
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= _LARGEST_ID:
        return None
    return number


def _names_payload(payload: Mapping[str, Any] | None, store: int, of: Mapping[int, int]) -> None:
    number = _payload_id(payload)
    if number is None:
        raise Unusable("payload", 'a product_refresh task needs the payload it reads: {"payload_id": number}')
    if number not in of:
        raise Unusable(
            "payload", f"payload {number} does not exist: `menuwatch payloads list` shows those that there are"
        )
    if of[number] != store:
        raise Unusable("payload", f"payload {number} is of store {of[number]}, not of store {store}")


_PLACE = ("state_code", "city")


def _place(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Where to look for stores, as the handler reads it: the state is its `state`."""
    known = {*_PLACE, "state"}
    if strange := sorted(set(payload) - known):
        raise Unusable("payload", f"{strange[0]!r} is not known to store_discovery: it takes {', '.join(_PLACE)}")
    if {"state", "state_code"} <= set(payload):
        raise Unusable("payload", "state_code and state say the same: leave state out")
    place = {("state" if key == "state_code" else key): value for key, value in payload.items() if value is not None}
    for key, value in place.items():
        if not isinstance(value, str) or not value.strip():
            raise Unusable("payload", f"{key} must be a text, as {'AZ' if key == 'state' else 'Phoenix'}")
    if "state" in place:
        try:
            place["state"] = parse_state(place["state"])
        except Refused as error:
            raise Unusable("payload", str(error)) from None
    return place


async def check(conn: AsyncConnection[Any], where: TaskFilter, *, platforms: Sequence[str]) -> None:
    """Raises Unusable where the filter names a store or a platform that does not exist: nothing could ever be selected."""
    if where.platform is not None and where.platform not in platforms:
        raise Unusable("platform", f"platform {where.platform!r} is not known: it is one of {', '.join(platforms)}")
    if where.dispensary_id is not None and await stores.get(conn, where.dispensary_id) is None:
        raise Unusable("dispensary_id", f"store {where.dispensary_id} does not exist")


async def recover_stale(conn: AsyncConnection[Any], threshold_minutes: float) -> int:
    """Takes tasks back from workers that were silent for that long; returns how many."""
    found = await tasks.recover_stale(conn, threshold_minutes)
    log.info("stale tasks recovered", action="tasks_recovered", count=found, threshold_minutes=threshold_minutes)
    return found


async def cancel(conn: AsyncConnection[Any], task_id: int, *, reason: str | None = None) -> None:
    """Cancels a task that waits or runs; its worker loses it. Raises NotFound, and Conflict when it is over already."""
    task = await one(conn, task_id)
    if task["status"] in FINAL or not await tasks.cancel(conn, [task_id], clean_reason(reason or "cancelled")):
        now = await one(conn, task_id)
        raise Conflict(f"task {task_id} is {now['status']} and cannot be cancelled any more")
    log.info(
        "task cancelled", action="task_cancelled", task_id=task_id, was=task["status"], worker_id=task["worker_id"]
    )


async def retry(conn: AsyncConnection[Any], task_id: int, *, priority: int = PRIORITY_CHAINED) -> tuple[int, bool]:
    """As `redo`; returns the task that stands for it now, and whether that is a new one."""
    number, outcome = await redo(conn, task_id, priority=priority)
    return number, outcome == "created"


async def redo(conn: AsyncConnection[Any], task_id: int, *, priority: int = PRIORITY_CHAINED) -> tuple[int, str]:
    """Has a task done again, at this priority or its own if that is higher; returns the task that stands for it now, and what
    changed: it is a new one (`created`), one with the same work that waits already (`joined`), or itself, which is due at once
    (`pulled`), more urgent than before (`raised`), or as it was (`waiting`).

    One that is over is enqueued anew and stays in the history as it is. Raises NotFound, and Conflict while a worker is at it.
    """
    (found,) = await _settled(conn, lambda: _retry(conn, [task_id], priority))
    match found["outcome"]:
        case "missing":
            raise NotFound(f"task {task_id} does not exist")
        case "unhandled":
            raise Conflict(f"no worker of this version does the work of task {task_id}: it would wait for ever")
        case "active":
            now = await one(conn, task_id)
            raise Conflict(
                f"task {task_id} is {now['status']}: a worker is at it; cancel it first, or wait until it is over"
            )
    log.info(
        "task retried", action="task_retried", task_id=task_id, retried_as=found["task_id"], outcome=found["outcome"]
    )
    return found["task_id"], found["outcome"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk:
    """What became of many tasks at once: of the `matched`, `done` were (in a dry run: would be) retried or cancelled, the others were
    passed over for the reasons in `skipped`."""

    matched: int
    done: int
    dry_run: bool
    skipped: Mapping[str, int] = field(default_factory=dict)


async def bulk_retry(
    conn: AsyncConnection[Any],
    where: TaskFilter,
    *,
    ids: Sequence[int] | None = None,
    dry_run: bool = False,
    priority: int = PRIORITY_CHAINED,
) -> Bulk:
    """Has every task that the filter selects done again, as `retry` does.

    Without a state and without ids that is what failed or waits for another try; completed, cancelled and planned work is
    passed over unless it is named. Raises Unusable for more than RETRIED_AT_ONCE tasks.
    """
    named = ids is not None or where.statuses is not None
    values = {**_selection(where, ids), "named": named, "unhandled": _UNHANDLED}
    found = await rows(conn, _q.tasks_to_retry, values, prepare=False)
    chosen: list[int] = next((one["ids"] for one in found if one["outcome"] == "retry"), [])
    skipped = Counter({one["outcome"]: one["n"] for one in found if one["outcome"] != "retry"})
    matched = len(chosen) + skipped.total()
    if ids is not None and (missing := len(set(ids)) - matched):
        skipped["missing"] += missing
    if len(chosen) > RETRIED_AT_ONCE:
        raise Unusable(
            "created_before",
            f"the filter selects {len(chosen):,} tasks to retry, and at most {RETRIED_AT_ONCE:,} are retried at once: narrow it, "
            "for instance with created_after and created_before",
        )
    done = len(chosen)
    if chosen and not dry_run:
        became = Counter(one["outcome"] for one in await _settled(conn, lambda: _retry(conn, chosen, priority)))
        done = became.pop("created", 0) + became.pop("pulled", 0)
        # One that is over while the same work waits already is not enqueued twice.
        became["waiting"] += became.pop("joined", 0) + became.pop("raised", 0)
        skipped += became
    result = Bulk(matched=matched, done=done, dry_run=dry_run, skipped=dict(sorted((+skipped).items())))
    _log_bulk("tasks retried in bulk", "tasks_retried", where, ids, result)
    return result


async def bulk_cancel(
    conn: AsyncConnection[Any],
    where: TaskFilter,
    *,
    ids: Sequence[int] | None = None,
    dry_run: bool = False,
    reason: str | None = None,
) -> Bulk:
    """Cancels every task that the filter selects and that is not over; workers lose those that they are at."""
    (found,) = await rows(conn, _q.tasks_to_cancel, _selection(where, ids), prepare=False)
    skipped = Counter({"finished": found["finished"]})
    if ids is not None:
        skipped["missing"] = len(set(ids)) - found["matched"]
    done = len(found["ids"])
    if done and not dry_run:
        chosen = {"ids": found["ids"], "reason": clean_reason(reason or "cancelled")}
        (became,) = await _settled(conn, lambda: rows(conn, _q.cancel_tasks_in_bulk, chosen))
        # Some ended by themselves meanwhile.
        skipped["finished"] += done - became["cancelled"] - became["busy"]
        skipped["busy"] = became["busy"]
        done = became["cancelled"]
    result = Bulk(matched=found["matched"], done=done, dry_run=dry_run, skipped=dict(sorted((+skipped).items())))
    _log_bulk("tasks cancelled in bulk", "tasks_cancelled", where, ids, result)
    return result


def _selection(where: TaskFilter, ids: Sequence[int] | None) -> dict[str, Any]:
    return {**where.values(), "ids": None if ids is None else list(ids)}


async def _retry(conn: AsyncConnection[Any], ids: Sequence[int], priority: int) -> list[Row]:
    values = {"ids": list(ids), "priority": priority, "unhandled": _UNHANDLED}
    return await rows(conn, _q.retry_tasks, values)


def _log_bulk(said: str, action: str, where: TaskFilter, ids: Sequence[int] | None, result: Bulk) -> None:
    if result.dry_run:
        return
    selected = {key: value for key, value in _selection(where, ids).items() if value is not None}
    if ids is not None and len(ids) > 100:
        selected["ids"] = f"{len(ids)} of them"
    log.info(said, action=action, matched=result.matched, done=result.done, skipped=result.skipped, where=selected)


_TRIES = 12
_PAUSE = 0.05
"""Seconds, at most, between two of them."""


async def _settled(conn: AsyncConnection[Any], do: Callable[[], Awaitable[list[Row]]]) -> list[Row]:
    """What `do` answers. Where it and others wait for each other it gives way: it is undone as a whole, and done again."""
    for turn in range(1, _TRIES + 1):
        try:
            async with conn.transaction():
                return await do()
        except (DeadlockDetected, LockNotAvailable):
            if turn == _TRIES:
                raise
            log.info("others had a task in hand, trying again", action="bulk_gave_way", turn=turn)
            await asyncio.sleep(random.uniform(0, _PAUSE))  # noqa: S311 - no secret
    raise AssertionError("the loop returns or raises")
