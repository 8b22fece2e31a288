"""Saved views: a screen's filters under a name, for whoever saved them. The address is what is shared."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.dashboard.screens import ALL
from menuwatch.operations import views
from menuwatch.operations.refusals import Unusable
from menuwatch.web.auth import allowed
from menuwatch.web.system import Writing

router = APIRouter(dependencies=[allowed(Permission.READ)])


@router.post("/views")
async def save(
    request: Request,
    conn: Writing,
    of: Annotated[str, Form(max_length=64)] = "",
    name: Annotated[str, Form(max_length=400)] = "",
    query: Annotated[str, Form(max_length=4000)] = "",
) -> Response:
    """Keeps the filters under that name, in place of what had it."""
    if of not in {one.path for one in ALL}:
        raise Unusable("of", "views are saved of the screens that there are")
    # The place in a list is nothing to come back to.
    kept = urlencode([(key, value) for key, value in parse_qsl(query) if key != "cursor"])
    await views.save(conn, screen.principal(request).name, of, name, kept)
    return screen.back(request, f"{of}?{kept}" if kept else of, f"Saved as “{' '.join(name.split())}”.")


@router.post("/views/{view_id}/remove")
async def remove(request: Request, conn: Writing, view_id: int) -> Response:
    """Forgets one of one's own."""
    name = await views.remove(conn, screen.principal(request).name, view_id)
    return screen.back(request, screen.came_from(request), f"The view “{name}” is gone.")
