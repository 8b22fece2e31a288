"""Asking for the work of many stores at once: shown first, in numbers, then enqueued."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations import wishes
from menuwatch.operations.reading import rows
from menuwatch.operations.refusals import Unusable
from menuwatch.operations.wishes import STATE_ROLES, Wish
from menuwatch.tasks.model import Role

_q = sql.load(__package__, "ask_many.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Which stores it would be: of `stores` in reach, `unusable` ones are switched off or not found on their platform, `fresh` ones
    are not due (where only due ones are asked for), for `waiting` ones such work waits already; `ids` are those that get a task."""

    stores: int
    unusable: int
    fresh: int
    waiting: int
    ids: Sequence[int]


async def states(conn: Connection) -> list[tuple[str, int]]:
    """States with stores, and how many."""
    return [(one["state"], one["stores"]) for one in await rows(conn, _q.states_of_stores, {})]


async def reach(conn: Connection, role: Role, *, state: str | None = None, only_due: bool = False) -> Reach:
    """The stores of a state, or of all, that would get a task of that role. Raises Unusable for a role that no single store has."""
    if role not in STATE_ROLES:
        raise Unusable("role", f"{role} is not done for many stores: it is one of {', '.join(STATE_ROLES)}")
    found = await rows(conn, _q.stores_in_reach, {"role": str(role), "state": state})
    usable = [one for one in found if one["usable"]]
    wanted = [one for one in usable if one["due"] or not only_due]
    chosen = [one["id"] for one in wanted if not one["waiting"]]
    return Reach(
        stores=len(found),
        unusable=len(found) - len(usable),
        fresh=len(usable) - len(wanted),
        waiting=len(wanted) - len(chosen),
        ids=chosen,
    )


async def enqueue(
    conn: Connection,
    role: Role,
    *,
    state: str | None = None,
    only_due: bool = False,
    priority: int,
    platforms: Sequence[str],
) -> int:
    """Enqueues a task for each of them; returns how many are new."""
    found = await reach(conn, role, state=state, only_due=only_due)
    asked = [Wish(role=role, dispensary_id=store, priority=priority) for store in found.ids]
    made = await wishes.enqueue_batch(conn, asked, platforms=platforms) if asked else []
    return sum(one.created for one in made)
