"""Requests that were made."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from menuwatch.api.schemas.common import BigId, Page, PageQuery, Search, SpanQuery, StoreId
from menuwatch.fetch.reaction import Move
from menuwatch.fetch.verdict import Blame, Verdict


class TaskAttemptQuery(PageQuery):
    """How they are walked."""


class AttemptQuery(SpanQuery):
    """Which requests."""

    task_id: BigId | None = Field(None, description="Only those of this task.")
    dispensary_id: StoreId | None = Field(None, description="Only those for this store.")
    host: Search | None = Field(None, description="Only those to this host.")
    proxy_id: StoreId | None = Field(None, description="Only those through this proxy.")
    verdict: list[Verdict] | None = Field(None, description="Only those that ended so (repeat for several).")


class Attempt(BaseModel):
    """One request."""

    id: int = Field(description="Number of the request.")
    attempted_at: datetime = Field(description="When it was made.")
    task_id: int | None = Field(description="The task that made it; null for tests of proxies.")
    dispensary_id: int | None = Field(description="The store that it was for.")
    host: str = Field(description="Who was asked.")
    proxy_id: int | None = Field(description="Through which proxy.")
    proxy: str | None = Field(description="That proxy's address without the password; null when it was removed since.")
    profile: str | None = Field(description="As which browser.")
    verdict: Verdict = Field(description="What came of it.")
    blame: Blame = Field(description="Who caused that.")
    reaction: Move = Field(
        description="What was done then: `return` the answer, ask `again`, `rotate` to another proxy and browser, `reroute` through "
        "another proxy, `give_up`."
    )
    rotated: bool = Field(description="Whether the identity was changed because of it.")
    status: int | None = Field(description="HTTP status of the answer; null where there was none.")
    waited_ms: float = Field(description="How long it waited for its turn in the host's budget, in ms.")
    elapsed_ms: float = Field(description="How long it took, in ms.")
    bytes: int = Field(description="Size of the answer, decoded.")
    error: str | None = Field(description="What went wrong.")


class AttemptPage(Page[Attempt]):
    """One page of requests."""
