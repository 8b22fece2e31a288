"""Views of screens that people saved for themselves: a name for the filters in an address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.operations import audit
from menuwatch.operations.reading import row, rows
from menuwatch.operations.refusals import NotFound, Unusable

_q = sql.load(__package__, "views.sql")

MOST = 50
"""Most views of one person on one screen."""
NAME_LONGEST = 80
QUERY_LONGEST = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One of them. `query` is what stands behind the `?` of its address."""

    id: int
    name: str
    query: str


async def listed(conn: AsyncConnection[Any], owner: str, screen: str) -> list[View]:
    """Somebody's views of one screen, by name."""
    return [View(**one) for one in await rows(conn, _q.list_views, {"owner": owner, "screen": screen})]


async def save(conn: AsyncConnection[Any], owner: str, screen: str, name: str, query: str) -> int:
    """Keeps a view, in place of the one of that name; returns its number. Raises Unusable."""
    name = " ".join(name.split())
    if not name or len(name) > NAME_LONGEST or not name.isprintable():
        raise Unusable("name", f"a view needs a name of 1 to {NAME_LONGEST} characters")
    if len(query) > QUERY_LONGEST:
        raise Unusable("query", f"the filters are too long to be kept: at most {QUERY_LONGEST:,} characters")
    values = {"owner": owner, "screen": screen, "name": name, "query": query, "most": MOST}
    found = await row(conn, _q.save_view, values)
    if found is None:
        raise Unusable("name", f"there are {MOST} views already: remove one first")
    await audit.record(conn, "view_saved", ("view", found["id"]), screen=screen, name=name)
    return int(found["id"])


async def remove(conn: AsyncConnection[Any], owner: str, view_id: int) -> str:
    """Forgets one of somebody's own views; returns its name. Raises NotFound."""
    found = await row(conn, _q.remove_view, {"id": view_id, "owner": owner})
    if found is None:
        raise NotFound(f"view {view_id} does not exist, or is not yours")
    await audit.record(conn, "view_removed", ("view", view_id), name=found["name"])
    return str(found["name"])


async def remove_all(conn: AsyncConnection[Any], owner: str) -> None:
    """Forgets every view of somebody who leaves: whoever gets that name later is somebody else."""
    await conn.execute(_q.remove_views_of, {"owner": owner})
