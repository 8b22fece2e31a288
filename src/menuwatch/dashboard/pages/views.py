"""Saved views: filters of a screen under a name."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from menuwatch.accounts import saved_views
from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.db.pool import Connection
from menuwatch.web.auth import require
from menuwatch.web.dependencies import WriteConn

router = APIRouter(dependencies=[require(Permission.READ)])


@router.post("/views")
async def save(
    request: Request,
    conn: WriteConn,
    of: Annotated[str, Form(max_length=64)] = "",
    name: Annotated[str, Form(max_length=400)] = "",
    query: Annotated[str, Form(max_length=4000)] = "",
) -> Response:
    """Saves the filters under that name; a view with that name is replaced."""
    view = await saved_views.save_view(conn, screen.principal(request).name, of, name, query)
    path = f"{view.screen}?{view.query}" if view.query else view.screen
    return screen.flash_to(request, path, f"Saved as “{view.name}”.")


@router.post("/views/{view_id}/remove")
async def delete(request: Request, conn: WriteConn, view_id: int) -> Response:
    """Deletes one of your own views."""
    view = await saved_views.delete_view(conn, screen.principal(request).name, view_id)
    return screen.flash_back(request, f"The view “{view.name}” was deleted.")


async def saved(request: Request, conn: Connection) -> dict[str, Any]:
    """Template context (views.html): the saved views of this screen, and its filters without the cursor, to save as a view."""
    path = screen.current_path(request)
    kept = [
        (name, value) for name, value in request.query_params.multi_items() if name not in ("cursor", "from") and value
    ]
    return {
        "views": await saved_views.list_views(conn, screen.principal(request).name, path),
        "view_query": urlencode(kept),
        "view_path": path,
    }
