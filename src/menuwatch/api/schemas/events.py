"""What one can hear of."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from menuwatch.api.schemas.common import Input
from menuwatch.web.live import STREAM_SECONDS, TOPICS


class Topic(StrEnum):
    """A kind of thing that changes (web/live.py)."""

    ACCOUNTS = "accounts"
    ALERTS = "alerts"
    CRAWLS = "crawls"
    HOSTS = "hosts"
    IMAGES = "images"
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
        None, description="Topics to hear of, repeated; all where none is named.", max_length=len(TOPICS)
    )
    seconds: float = Field(STREAM_SECONDS, ge=0, le=STREAM_SECONDS, description="Longest time that the stream goes on.")
