"""Saved views: a user's name for the filters of a dashboard screen."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.accounts import audit
from menuwatch.core.errors import InvalidField, NotFound
from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.query import fetch_struct, fetch_structs

_q = sql.load(__package__, "saved_views.sql")
_Conn = AsyncConnection[Any]

SCREENS = ("/audit", "/failures", "/payloads", "/products", "/proxies", "/stores", "/tasks", "/workers")
MAX_VIEWS = 50
"""Maximum number of views of one user on one screen."""
MAX_NAME_CHARS = 80
MAX_QUERY_CHARS = 2000


class SavedView(Struct, kw_only=True, frozen=True):
    """A saved view."""

    id: int
    screen: Annotated[str, doc("Path of the screen, below `/admin`.")]
    name: str
    query: Annotated[str, doc("Filters, as the query string of the screen's URL.")]


async def list_views(conn: _Conn, owner: str, screen: str | None = None) -> list[SavedView]:
    """Views of one user, of one screen or of all, by screen and name."""
    return await fetch_structs(conn, SavedView, _q.list_views, {"owner": owner, "screen": screen})


async def save_view(conn: _Conn, owner: str, screen: str, name: str, query: str) -> SavedView:
    """Saves a view, in place of the one with that name; the page of a list is left out. Raises InvalidField."""
    if screen not in SCREENS:
        raise InvalidField("screen", f"screen must be one of {', '.join(SCREENS)}")
    name = " ".join(name.split())
    if not name or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise InvalidField("name", f"a view needs a name of 1 to {MAX_NAME_CHARS} characters")
    query = urlencode([(key, value) for key, value in parse_qsl(query.removeprefix("?")) if key != "cursor"])
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidField("query", f"the filters are too long to be saved: at most {MAX_QUERY_CHARS:,} characters")
    values = {"owner": owner, "screen": screen, "name": name, "query": query, "most": MAX_VIEWS}
    view = await fetch_struct(conn, SavedView, _q.save_view, values)
    if view is None:
        raise InvalidField("name", f"there are {MAX_VIEWS} views already: delete one first")
    await audit.record(conn, "view_saved", ("view", view.id), screen=screen, name=name)
    return view


async def delete_view(conn: _Conn, owner: str, view_id: int) -> SavedView:
    """Deletes a view of that user; returns it. Raises NotFound."""
    view = await fetch_struct(conn, SavedView, _q.delete_view, {"id": view_id, "owner": owner})
    if view is None:
        raise NotFound(f"view {view_id} does not exist, or is not yours")
    await audit.record(conn, "view_removed", ("view", view_id), name=view.name)
    return view


async def delete_views_of(conn: _Conn, owner: str) -> None:
    """Deletes all views of a user who is removed: a later user of that name is another one."""
    await conn.execute(_q.delete_views_of, {"owner": owner})
