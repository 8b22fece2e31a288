"""The stream of change events."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field
from starlette.responses import StreamingResponse

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import Input
from menuwatch.web.auth import require
from menuwatch.web.live import STREAM_SECONDS, TOPICS, Live


class Topic(StrEnum):
    """Topic of change events."""

    ACCOUNTS = "accounts"
    ALERTS = "alerts"
    CRAWLS = "crawls"
    HOSTS = "hosts"
    IMAGES = "images"
    LOGS = "logs"
    PAYLOADS = "payloads"
    PRODUCTS = "products"
    PROXIES = "proxies"
    SCHEDULES = "schedules"
    STORES = "stores"
    TASKS = "tasks"
    VISITORS = "visitors"
    WORKERS = "workers"


assert frozenset(Topic) == TOPICS, "the description names every topic that there is"


class EventQuery(Input):
    """Which topics, and for how long."""

    topics: list[Topic] | None = Field(
        None, description="Topics to subscribe to (repeatable); all of them if omitted.", max_length=len(TOPICS)
    )
    seconds: float = Field(
        STREAM_SECONDS, ge=0, le=STREAM_SECONDS, description="Maximum duration of the stream, in seconds."
    )


router = APIRouter(prefix="/api/events", tags=["events"], dependencies=[require(Permission.READ)])


@router.get(
    "",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events, each named after its topic.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
    summary="Stream change events (SSE)",
)
async def stream_events(request: Request, query: Annotated[EventQuery, Query()]) -> Response:
    """Server-sent events. An event says that something of its topic changed: fetch the data again. `hello` is the first event,
    `beat` a keep-alive. A stream ends after ten minutes; reconnect and fetch the data once."""
    live: Live = request.app.state.live
    return live.stream(request, query.topics or TOPICS, query.seconds)
