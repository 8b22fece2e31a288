"""Hosts: what they allow, what they said."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import Path
from pydantic import BaseModel, Field, Strict, model_validator

from menuwatch.api.schemas.common import Input, Page, PageQuery, Text

HostPath = Annotated[
    str, Path(max_length=260, description="Name of the host, with its port where its addresses name one.")
]


class Host(BaseModel):
    """One host."""

    host: str = Field(description="Its name, with its port where addresses name one.")
    state: Literal["open", "slow", "trying", "cooling", "circuit", "paused"] = Field(
        description="`slow`: asked less often than its rate allows; `trying`: its circuit was open, one identity finds out whether "
        "it still is; nobody asks it while it is `cooling` (it asked for that), `circuit` (it refused everybody) or `paused` (by an "
        "operator)."
    )
    reason: str | None = Field(description="Why it is in that state.")
    since: datetime | None = Field(description="Since when.")
    until: datetime | None = Field(
        description="Until when nobody asks it; null: it is asked, or only a person can change it."
    )
    advice: str | None = Field(description="What a person can do about it; null where nothing is wrong.")
    rate: float = Field(description="Limit: requests a second.")
    burst: int = Field(description="Limit: requests that may follow each other at once.")
    concurrency: int = Field(description="Limit: identities that talk to it at the same time.")
    min_gap: float = Field(description="Limit: seconds between two requests.")
    pace: float = Field(description="Requests a second at present: at most `rate`, halved on trouble.")
    leases: int = Field(description="Identities that talk to it now.")
    requests: int = Field(description="Requests that were ever made.")
    refusals: int = Field(description="Of these, those that were refused, challenged or asked to slow down.")
    throttles: int = Field(description="Times in a row that it asked to slow down.")
    troubles: int = Field(description="Times in a row that it failed or did not answer.")
    refused: int = Field(description="Identities that were refused since one was let in.")
    circuit_opens: int = Field(description="Times in a row that its circuit opened.")
    last_ok_at: datetime | None = Field(description="When it last let somebody in.")
    last_refused_at: datetime | None = Field(description="When it last refused somebody.")
    robots: Literal["unknown", "found", "none", "unreachable"] = Field(description="Its robots.txt.")
    robots_checked_at: datetime | None = Field(description="When that was last asked for.")
    robots_status: int | None = Field(description="What came back then, as an HTTP status.")
    crawl_delay: float | None = Field(description="Seconds between requests that it asks for.")
    created_at: datetime = Field(description="When it was first asked, or given limits.")
    updated_at: datetime = Field(description="When anything about it last changed.")


class HostList(BaseModel):
    """Every host."""

    items: list[Host] = Field(description="By name.")


class HostLease(BaseModel):
    """An identity that talks to a host now."""

    proxy_id: int = Field(description="Its proxy.")
    proxy: str = Field(description="The proxy's address without the password.")
    task_id: int | None = Field(description="The task that it works for.")
    leased_at: datetime = Field(description="Since when.")
    expires_at: datetime = Field(description="When the lease lapses if nobody renews it.")


class VerdictCount(BaseModel):
    """Requests that ended so."""

    verdict: str = Field(description="What came of them.")
    day: int = Field(description="In the last 24 hours.")
    total: int = Field(description="In all.")
    bytes: int = Field(description="Decoded size of all their answers.")


class Fare(BaseModel):
    """How a proxy or a browser fares at the host. Experiences halve every six hours."""

    name: str = Field(description="The proxy's address without the password, or the browser.")
    proxy_id: int | None = Field(description="Number of the proxy.")
    good: float = Field(description="Times that it was let in.")
    bad: float = Field(description="Times that it was refused, as far as that was its fault.")
    chance: float = Field(description="Its chance to be let in that follows, between 0 and 1.")


class HostEvent(BaseModel):
    """Something that befell a host."""

    id: int = Field(description="Number of the event.")
    kind: Literal["cooldown", "slower", "circuit_opened", "circuit_closed", "changed", "robots"] = Field(
        description="What it was."
    )
    reason: str = Field(description="Why, or what exactly.")
    until: datetime | None = Field(description="Until when it lasts.")
    happened_at: datetime = Field(description="When it was.")


class HostEventPage(Page[HostEvent]):
    """One page of events."""


class HostEventQuery(PageQuery):
    """How the events are walked."""


class HostDetail(BaseModel):
    """All that is known of a host."""

    host: Host = Field(description="The host.")
    leases: list[HostLease] = Field(description="Who talks to it now.")
    verdicts: list[VerdictCount] = Field(description="Requests by what came of them, the most first.")
    best: list[Fare] = Field(description="Proxies that it lets in most.")
    worst: list[Fare] = Field(description="Proxies that it lets in least.")
    browsers: list[Fare] = Field(description="Browsers, the best first.")
    events: list[HostEvent] = Field(description="What befell it lately, the newest first.")


Finite = Annotated[float, Strict(), Field(allow_inf_nan=False)]


class HostChange(Input):
    """Limits to set; what is left out stays as it is."""

    rate: Annotated[Finite, Field(ge=1e-6, le=1_000_000)] | None = Field(None, description="Requests a second.")
    burst: Annotated[int, Strict(), Field(ge=1, le=10_000)] | None = Field(
        None, description="Requests that may follow each other at once."
    )
    concurrency: Annotated[int, Strict(), Field(ge=1, le=10_000)] | None = Field(
        None, description="Identities that talk to it at the same time."
    )
    min_gap: Annotated[Finite, Field(ge=0, le=86_400)] | None = Field(None, description="Seconds between two requests.")

    @model_validator(mode="after")
    def _says_something(self) -> HostChange:
        if all(getattr(self, name) is None for name in HostChange.model_fields):
            raise ValueError(f"name what to set: {', '.join(HostChange.model_fields)}")
        return self


class PauseHost(Input):
    """Why a host is paused."""

    reason: Annotated[Text, Field(min_length=1, max_length=500)] | None = Field(
        None, description="Shown wherever the host is."
    )
