"""Enqueue tasks on request: checked first, so that nothing is enqueued that is known to fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.accounts import audit
from menuwatch.core.errors import InvalidField, Refused, unknown_value
from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.query import Row, fetch_all
from menuwatch.geo import states
from menuwatch.geo.states import parse_state
from menuwatch.queue import store
from menuwatch.queue.model import NETWORK_ROLES, PER_STORE_ROLES, PRIORITY_CHAINED, UNHANDLED_ROLES, NewTask, Role
from menuwatch.queue.store import Enqueued
from menuwatch.queue.task_list import TaskRow, get_task

_q = sql.load(__package__, "enqueue.sql")

STATE_ROLES = (Role.PAYLOAD_FETCH, Role.PRODUCT_DISCOVERY)
"""Roles that can be enqueued for many stores: they need only a store."""


class TaskRequest(Struct, frozen=True, kw_only=True):
    """A requested task. `platform` defaults to the store's, or else the first one."""

    role: Role
    dispensary_id: int | None = None
    platform: str | None = None
    priority: int = PRIORITY_CHAINED
    scheduled_for: datetime | None = None
    payload: Mapping[str, Any] | None = None


class EnqueuedTask(msgspec.Struct, kw_only=True, frozen=True):
    """Result of enqueueing a task."""

    task: TaskRow
    created: Annotated[
        bool, doc("False if an equal task was already pending: that task is returned and no second one was created.")
    ]


async def enqueue(conn: AsyncConnection[Any], request: TaskRequest, *, platforms: Sequence[str]) -> EnqueuedTask:
    """Enqueues one task, unless an equal one is pending. Raises InvalidField for what does not exist or is known to fail."""
    (task,) = await _validate(conn, [request], platforms, "")
    (enqueued,) = await store.enqueue(conn, [task])
    await audit.record(
        conn,
        "task_enqueued",
        ("task", enqueued.id),
        role=str(request.role),
        dispensary_id=request.dispensary_id,
        created=enqueued.created,
    )
    return EnqueuedTask(task=await get_task(conn, enqueued.id), created=enqueued.created)


async def clone(
    conn: AsyncConnection[Any], task_id: int, changes: Mapping[str, Any], *, platforms: Sequence[str]
) -> EnqueuedTask:
    """Enqueues a task like that one, with other values of `dispensary_id`, `priority`, `scheduled_for` or `payload` where `changes`
    has them. By default it is due at once, with at least the priority of work on demand. Raises NotFound and InvalidField."""
    task = await get_task(conn, task_id)
    values = {"dispensary_id": task.dispensary_id, "priority": max(task.priority, PRIORITY_CHAINED), **changes}
    if "payload" not in changes:
        values["payload"] = msgspec.json.decode(task.payload) or None
    platform = task.platform if values["dispensary_id"] is None else None
    return await enqueue(conn, TaskRequest(role=Role(task.role), platform=platform, **values), platforms=platforms)


async def enqueue_batch(
    conn: AsyncConnection[Any], requests: Sequence[TaskRequest], *, platforms: Sequence[str]
) -> list[Enqueued]:
    """Enqueue many tasks, all or none; the result is parallel to `requests`.

    Raises InvalidField naming the first that is invalid, as `tasks/17/role`.
    """
    enqueued = await store.enqueue(conn, await _validate(conn, requests, platforms, "tasks"))
    await _audit_batch(conn, "tasks_enqueued", enqueued)
    return enqueued


async def enqueue_follow_ups(
    conn: AsyncConnection[Any], requests: Sequence[TaskRequest], *, platforms: Sequence[str]
) -> None:
    """Enqueue what follows from a task that a third-party worker completed. Raises InvalidField as `enqueue_batch`, as
    `follow_ups/0/role`."""
    await store.enqueue(conn, await _validate(conn, requests, platforms, "follow_ups"))


class StoreSelection(Struct, frozen=True, kw_only=True):
    """Selection of stores: those of a state, or all; with `only_due` those whose crawl interval has passed."""

    role: Role
    state: str | None = None
    platform: str | None = None
    only_due: bool = False

    @property
    def state_code(self) -> str | None:
        """The state as it is stored."""
        return None if self.state is None else self.state.strip().upper()


class EnqueuePreview(Struct, frozen=True, kw_only=True):
    """What enqueueing for a selection would do: of `stores`, `unusable` ones are disabled or not found on their platform, `not_due`
    ones are not due (with `only_due`), `waiting` ones have an equal task pending."""

    stores: int
    unusable: int
    not_due: int
    waiting: int

    @property
    def created(self) -> int:
        """Number of new tasks."""
        return self.stores - self.unusable - self.not_due - self.waiting


class StoresEnqueued(msgspec.Struct, kw_only=True, frozen=True):
    """Result of enqueueing for many stores."""

    state_code: Annotated[str | None, doc("State or province (two letters); null for all.")]
    role: str
    stores: Annotated[int, doc("Number of stores in the state.")]
    requested: Annotated[
        int,
        doc("Number of stores that can be crawled: enabled and resolved on the platform; with `only_due` also due."),
    ]
    created: Annotated[int, doc("Number of new tasks; the other stores already had one pending.")]


async def states_with_stores(conn: AsyncConnection[Any], platform: str | None = None) -> dict[str, int]:
    """States with stores, and how many."""
    return {row["state"]: row["stores"] for row in await fetch_all(conn, _q.states_with_stores, {"platform": platform})}


async def preview_stores(conn: AsyncConnection[Any], selection: StoreSelection) -> EnqueuePreview:
    """What `enqueue_stores` would do. Raises InvalidField for another role than STATE_ROLES."""
    rows, chosen = await _select_stores(conn, selection)
    usable = sum(row["usable"] for row in rows)
    return EnqueuePreview(
        stores=len(rows),
        unusable=len(rows) - usable,
        not_due=usable - len(chosen),
        waiting=sum(row["waiting"] for row in chosen),
    )


async def enqueue_stores(
    conn: AsyncConnection[Any],
    selection: StoreSelection,
    *,
    platforms: Sequence[str],
    priority: int = PRIORITY_CHAINED,
    scheduled_for: datetime | None = None,
    skip_pending: bool = False,
) -> StoresEnqueued:
    """Enqueues a task for each selected store that can be crawled. An equal pending task is at most made more urgent and due earlier;
    with `skip_pending` it stays as it is. Raises InvalidField for a state without such stores, and for a
    role outside STATE_ROLES."""
    state, platform = selection.state_code, selection.platform
    if platform is not None and platform not in platforms:
        raise InvalidField("platform", unknown_value("platform", platform, platforms))
    rows, chosen = await _select_stores(conn, selection)
    if state is not None:
        await _check_state(conn, selection, rows)
    new = [
        NewTask(
            role=selection.role,
            dispensary_id=row["id"],
            platform=row["platform"],
            priority=priority,
            scheduled_for=scheduled_for,
        )
        for row in chosen
        if not (skip_pending and row["waiting"])
    ]
    enqueued = await store.enqueue(conn, new)
    await _audit_batch(
        conn, "state_enqueued", enqueued, state=state, role=str(selection.role), only_due=selection.only_due
    )
    return StoresEnqueued(
        state_code=state,
        role=str(selection.role),
        stores=len(rows),
        requested=len(enqueued),
        created=sum(item.created for item in enqueued),
    )


async def _select_stores(conn: AsyncConnection[Any], selection: StoreSelection) -> tuple[list[Row], list[Row]]:
    """All stores of the selection, and those that get a task."""
    if selection.role not in STATE_ROLES:
        raise InvalidField(
            "role", f"role {selection.role} cannot be enqueued for many stores; use one of: {', '.join(STATE_ROLES)}"
        )
    params = {"role": str(selection.role), "state": selection.state_code, "platform": selection.platform}
    rows = await fetch_all(conn, _q.stores_to_enqueue, params)
    return rows, [row for row in rows if row["usable"] and (row["due"] or not selection.only_due)]


async def _check_state(conn: AsyncConnection[Any], selection: StoreSelection, rows: Sequence[Row]) -> None:
    if not rows:
        known = ", ".join(await states_with_stores(conn, selection.platform))
        exists = "has no stores" if selection.state_code in states.CODES else "does not exist"
        raise InvalidField(
            "state_code",
            f"state {selection.state!r} {exists}: {f'stores exist in {known}' if known else 'no state has stores yet'}",
        )
    if not any(row["usable"] for row in rows):
        raise InvalidField(
            "state_code",
            f"none of the {len(rows)} stores in {selection.state_code} can be crawled: all are disabled or not resolved yet",
        )


async def _audit_batch(conn: AsyncConnection[Any], action: str, enqueued: Sequence[Enqueued], **more: Any) -> None:
    ids = [item.id for item in enqueued if item.created]
    span = {"first_task_id": min(ids), "last_task_id": max(ids)} if ids else {}
    await audit.record(conn, action, asked=len(enqueued), created=len(ids), **span, **more)


async def _validate(
    conn: AsyncConnection[Any], requests: Sequence[TaskRequest], platforms: Sequence[str], batch: str
) -> list[NewTask]:
    """The requests as tasks; raises InvalidField for the first that is invalid. `batch` names the list that they come in, if any."""
    stores, payloads = await _references(conn, requests)
    tasks = []
    for number, request in enumerate(requests):
        try:
            tasks.append(_task(request, stores, payloads, platforms))
        except InvalidField as error:
            if not batch:
                raise
            message = f"{batch}[{number}].{error.field}: {error}; nothing of the batch was enqueued"
            raise InvalidField(f"{batch}/{number}/{error.field}", message) from None
    return tasks


async def _references(
    conn: AsyncConnection[Any], requests: Sequence[TaskRequest]
) -> tuple[dict[int, Row], dict[int, int]]:
    """The stores by id, and the store of each payload, that the requests name, if they exist."""
    ids = sorted({request.dispensary_id for request in requests if request.dispensary_id is not None})
    stores = await fetch_all(conn, _q.stores_asked_for, {"ids": ids}) if ids else []
    payload_ids = sorted(
        {
            payload_id
            for request in requests
            if request.role is Role.PRODUCT_REFRESH and (payload_id := _payload_id(request.payload))
        }
    )
    payloads = await fetch_all(conn, _q.payloads_asked_for, {"ids": payload_ids}) if payload_ids else []
    return {row["id"]: row for row in stores}, {row["id"]: row["dispensary_id"] for row in payloads}


def _task(
    request: TaskRequest, stores: Mapping[int, Row], payloads: Mapping[int, int], platforms: Sequence[str]
) -> NewTask:
    role, platform, dispensary_id, payload = request.role, request.platform, request.dispensary_id, request.payload
    if role in UNHANDLED_ROLES:
        raise InvalidField("role", f"this version has no handler for {role}: the task would wait forever")
    if dispensary_id is None and role in PER_STORE_ROLES:
        raise InvalidField("dispensary_id", f"a {role} task needs a store")
    if dispensary_id is not None:
        if role not in PER_STORE_ROLES:
            raise InvalidField("dispensary_id", f"a {role} task does not take a store")
        if dispensary_id not in stores:
            raise InvalidField("dispensary_id", f"store {dispensary_id} does not exist")
        store_platform = stores[dispensary_id]["platform"]
        if platform is not None and platform != store_platform:
            raise InvalidField("platform", f"store {dispensary_id} is on {store_platform}, not on {platform}")
        platform = store_platform
    if platform is None:
        platform = platforms[0]
    elif platform not in platforms:
        raise InvalidField("platform", unknown_value("platform", platform, platforms))
    if role in NETWORK_ROLES and dispensary_id is not None:
        _check_crawlable(role, stores[dispensary_id])
    elif role is Role.PRODUCT_REFRESH and dispensary_id is not None:
        _check_payload(payload, dispensary_id, payloads)
    elif role is Role.STORE_DISCOVERY and payload:
        payload = _location(payload)
    return NewTask(
        role=role,
        dispensary_id=dispensary_id,
        platform=platform,
        priority=request.priority,
        scheduled_for=request.scheduled_for,
        payload=payload,
        # A refresh is of one payload: a pending one of another payload is different work.
        unique=role is not Role.PRODUCT_REFRESH,
    )


def _check_crawlable(role: Role, store: Row) -> None:
    number = store["id"]
    if not store["resolved"] and role in STATE_ROLES:
        raise InvalidField(
            "dispensary_id",
            f"store {number} is not resolved yet: enqueue entry_point_discovery for it first",
        )
    if not store["crawl_enabled"]:
        raise InvalidField(
            "dispensary_id",
            f"crawling of store {number} is disabled (crawl_enabled is false): "
            f'enable it first (PATCH /api/stores/{number} with {{"crawl_enabled": true}})',
        )


_LARGEST_ID = 2**63 - 1


def _payload_id(payload: Mapping[str, Any] | None) -> int | None:
    number = (payload or {}).get("payload_id")
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= _LARGEST_ID:
        return None
    return number


def _check_payload(payload: Mapping[str, Any] | None, store_id: int, stores: Mapping[int, int]) -> None:
    number = _payload_id(payload)
    if number is None:
        raise InvalidField("payload", 'a product_refresh task needs a payload: {"payload_id": number}')
    if number not in stores:
        raise InvalidField("payload", f"payload {number} does not exist: see `menuwatch payloads list`")
    if stores[number] != store_id:
        raise InvalidField("payload", f"payload {number} belongs to store {stores[number]}, not to store {store_id}")


_LOCATION = ("state_code", "city")


def _location(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Location of a store search, as the handler reads it: the state is its `state`."""
    known = {*_LOCATION, "state"}
    if unknown := sorted(set(payload) - known):
        raise InvalidField(
            "payload", f"unknown argument {unknown[0]!r} for store_discovery; use one of: {', '.join(_LOCATION)}"
        )
    if {"state", "state_code"} <= set(payload):
        raise InvalidField("payload", "state_code and state are the same: omit state")
    location = {("state" if key == "state_code" else key): value for key, value in payload.items() if value is not None}
    for key, value in location.items():
        if not isinstance(value, str) or not value.strip():
            raise InvalidField(
                "payload", f"{key} must be a string, for example {'AZ' if key == 'state' else 'Phoenix'}"
            )
    if "state" in location:
        try:
            location["state"] = parse_state(location["state"])
        except Refused as error:
            raise InvalidField("payload", str(error)) from None
    return location
