"""Proxies. Passwords come in and never go out."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import Path
from pydantic import BaseModel, Field

from menuwatch.api.schemas.common import INTEGER_MAX, Input, Page, PageQuery, Text
from menuwatch.fetch.verdict import Verdict

ProxyPath = Annotated[int, Path(ge=1, le=INTEGER_MAX, description="Number of the proxy.")]


class ProxyQuery(PageQuery):
    """Which proxies."""

    active: bool | None = Field(None, description="Only those that may be used, or only those that are out.")


class Proxy(BaseModel):
    """One proxy with its health. Its password is never shown."""

    id: int = Field(description="Number of the proxy.")
    address: str = Field(description="All of it but the password.")
    protocol: Literal["http", "https", "socks5"] = Field(description="How it is spoken to.")
    host: str = Field(description="Name or address.")
    port: int = Field(description="Port.")
    username: str | None = Field(description="User, where it has one.")
    has_password: bool = Field(description="Whether it has a password.")
    password_sealed: bool = Field(description="Whether the password is encrypted in the database (SECRET_KEY).")
    status: Literal["active", "inactive", "disabled"] = Field(
        description="`active`: it may be used; `inactive`: out for its health, and tried again at `probe_at`; `disabled`: an operator "
        "took it out."
    )
    reason: str | None = Field(description="Why it is not active; null where it is.")
    city: str | None = Field(description="City that it stands in.")
    state: str | None = Field(description="State or province, two letters.")
    country: str | None = Field(description="Country, two letters.")
    timezone: str | None = Field(description="IANA time zone.")
    success_count: int = Field(description="Requests that it carried well.")
    failure_count: int = Field(description="Faults of its own since the last success; five deactivate it.")
    consecutive_403_count: int = Field(description="Refusals since the last success; five deactivate it.")
    avg_response_time_ms: float | None = Field(description="Moving average of its answers, in ms.")
    last_used_at: datetime | None = Field(description="When it was last used.")
    last_failure_at: datetime | None = Field(description="When it last failed.")
    last_error: str | None = Field(description="What was wrong then.")
    deactivated_at: datetime | None = Field(description="When its health took it out.")
    disabled_at: datetime | None = Field(description="When an operator took it out.")
    disabled_reason: str | None = Field(description="Why.")
    probe_at: datetime | None = Field(description="When it is tried again.")
    probe_failures: int = Field(description="Tries in a row that failed.")
    created_at: datetime = Field(description="When it was added.")
    updated_at: datetime = Field(description="When it was last changed.")


class ProxyPage(Page[Proxy]):
    """One page of proxies."""


class NewProxies(Input):
    """Proxies to add."""

    proxies: list[Text] = Field(
        min_length=1,
        max_length=100,
        description="Each as http://USER:PASSWORD@HOST:PORT (or https, socks5), HOST:PORT or HOST:PORT:USER:PASSWORD.",
        examples=[["http://user:password@203.0.113.7:8080"]],
    )
    city: Text | None = Field(None, max_length=200, description="City that all of them stand in.")
    state: Text | None = Field(None, description="State or province, two letters.")
    country: Text | None = Field(None, description="Country, two letters.")
    timezone: Text | None = Field(None, description="IANA time zone, as America/Phoenix.")
    force: bool = Field(False, strict=True, description="Put them to work without a test.")


class ProxyResult(BaseModel):
    """What became of one of the proxies that were given."""

    index: int = Field(description="Its place in `proxies`, from 0.")
    outcome: Literal["added", "updated", "repeated", "rejected"] = Field(
        description="`updated`: it was known and got its new password and place; `repeated`: it stands again further down."
    )
    id: int | None = Field(description="Number of the proxy; null where there is none.")
    address: str | None = Field(description="All of it but the password.")
    active: bool = Field(description="Whether it may be used now.")
    reason: str | None = Field(description="Why it was rejected, or is not active: it failed its test, or is disabled.")


class ProxyResults(BaseModel):
    """What became of all of them."""

    added: int = Field(description="Proxies that are new.")
    updated: int = Field(description="Proxies that were known.")
    rejected: int = Field(description="Texts that are no proxies.")
    inactive: int = Field(description="Proxies that failed their test; they are tried again by themselves.")
    results: list[ProxyResult] = Field(description="One for each that was given, in the same order.")


class EnableProxy(Input):
    """How to put a proxy back to work."""

    force: bool = Field(False, strict=True, description="Without a test.")


class DisableProxy(Input):
    """Why a proxy is taken out."""

    reason: Annotated[Text, Field(min_length=1, max_length=500)] | None = Field(
        None, description="Shown wherever the proxy is."
    )


class ProxyTest(BaseModel):
    """What came of one request through a proxy."""

    id: int = Field(description="Number of the proxy.")
    address: str = Field(description="All of it but the password.")
    ok: bool = Field(description="Whether the platform answered, whatever it said: the proxy does its part.")
    verdict: Verdict = Field(description="What happened.")
    status: int | None = Field(description="HTTP status of the answer; null where there was none.")
    elapsed_ms: float = Field(description="What it took, in ms.")
    reason: str = Field(description="What came of it.")
