"""Work that people ask for: checked against what there is, so that nothing is enqueued that is known to fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from menuwatch.core.errors import Refused
from menuwatch.db import sql
from menuwatch.operations import audit
from menuwatch.operations.reading import Row, rows
from menuwatch.operations.refusals import Unusable
from menuwatch.schedules.model import STATES, parse_state
from menuwatch.tasks import store as tasks
from menuwatch.tasks.model import NETWORK_ROLES, PER_STORE_ROLES, PRIORITY_CHAINED, UNHANDLED_ROLES, NewTask, Role
from menuwatch.tasks.store import Enqueued

_q = sql.load(__package__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A task that a person asks for. Without `platform` it is the store's, or the only one that there is."""

    role: Role
    dispensary_id: int | None = None
    platform: str | None = None
    priority: int = PRIORITY_CHAINED
    scheduled_for: datetime | None = None
    payload: Mapping[str, Any] | None = None


async def enqueue(conn: AsyncConnection[Any], wish: Wish, *, platforms: Sequence[str]) -> tuple[int, bool]:
    """Enqueues a task that a person asked for; returns its id and whether it is new. One that waits already is not doubled.

    Raises Unusable for what does not exist, or is known to fail, and says what would be right.
    """
    (task,) = await _usable(conn, [wish], platforms, "")
    (enqueued,) = await tasks.enqueue(conn, [task])
    await audit.record(
        conn,
        "task_enqueued",
        ("task", enqueued.id),
        role=str(wish.role),
        dispensary_id=wish.dispensary_id,
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
    await _note_batch(conn, "tasks_enqueued", enqueued)
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
    await _note_batch(conn, "state_enqueued", enqueued, state=state, role=str(role))
    return len(found), enqueued


async def _note_batch(conn: AsyncConnection[Any], action: str, enqueued: Sequence[Enqueued], **more: Any) -> None:
    ids = [one.id for one in enqueued if one.created]
    span = {"first_task_id": min(ids), "last_task_id": max(ids)} if ids else {}
    await audit.record(conn, action, asked=len(enqueued), created=len(ids), **span, **more)


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
