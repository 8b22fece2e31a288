"""What has just changed, as a stream."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse

from menuwatch.accounts.model import Permission
from menuwatch.api.schemas.events import EventQuery
from menuwatch.web.auth import allowed
from menuwatch.web.live import TOPICS, Live

router = APIRouter(prefix="/api/events", tags=["events"], dependencies=[allowed(Permission.READ)])


@router.get(
    "",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events, each named after the topic that changed.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
    summary="Hear what changes",
)
async def stream_events(request: Request, query: Annotated[EventQuery, Query()]) -> Response:
    """Server-sent events. An event is a hint that something of that topic changed: ask for what you show anew. `hello` comes first,
    `beat` when it has been quiet for a while. A stream ends after ten minutes; come again, and ask once for what was missed."""
    live: Live = request.app.state.live
    seconds = 0.0 if request.scope.get("head") else query.seconds
    stream = live.events(query.topics or TOPICS, seconds=seconds)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)
