"""Going to something by its name, and the stream of what is new."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from menuwatch.accounts.model import Permission
from menuwatch.operations import jump
from menuwatch.web.auth import allowed
from menuwatch.web.live import STREAM_SECONDS, TOPICS, Live
from menuwatch.web.system import Reading

router = APIRouter(dependencies=[allowed(Permission.READ)])


@router.get("/live")
async def live(request: Request, topics: Annotated[str, Query(max_length=400)] = "") -> Response:
    """Server-sent events: the topics that changed, of those asked for."""
    stream: Live = request.app.state.live
    wanted = TOPICS & set(topics.split(","))
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        stream.events(wanted, seconds=0 if request.scope.get("head") else STREAM_SECONDS),
        media_type="text/event-stream",
        headers=headers,
    )


@router.get("/jump")
async def go(request: Request, conn: Reading, q: Annotated[str, Query(max_length=200)] = "") -> Response:
    """To what those words name: a task by its number, a store by slug or name; else to the search for products."""
    root: str = request.scope.get("root_path", "")
    return RedirectResponse(root + await jump.target(conn, q), status_code=303)
