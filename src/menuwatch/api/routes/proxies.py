"""Proxies: list, add, locate, tag, test, disable, enable, remove."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Body, Path, Query, Request, Response
from msgspec import Struct, structs
from pydantic import Field, model_validator

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import INTEGER_MAX, Input, PageQuery, Search, Text
from menuwatch.api.paging import Keyset
from menuwatch.api.problems import InvalidRequest, InvalidValue
from menuwatch.api.responses import answer, returns, returns_page
from menuwatch.core.errors import PreconditionFailed, Refused
from menuwatch.core.shapes import doc
from menuwatch.proxies import bulk
from menuwatch.proxies import service as proxies
from menuwatch.proxies.bulk import IDS_MAX, ProxyAction, ProxyBulkResult
from menuwatch.proxies.import_file import ParsedProxy, Rejected
from menuwatch.proxies.importer import ImportResult, import_proxies
from menuwatch.proxies.location import LOCATION, Location
from menuwatch.proxies.parse import parse_line
from menuwatch.proxies.service import Proxy, ProxyFilter, Status
from menuwatch.proxies.statistics import ProxyStatistics, get_statistics
from menuwatch.proxies.testing import ProxyTest
from menuwatch.web.auth import require_by_method
from menuwatch.web.dependencies import AppDep, ReadConn, WriteConn

router = APIRouter(prefix="/api/proxies", tags=["proxies"], dependencies=[require_by_method(Permission.PROXIES)])

ProxyPath = Annotated[int, Path(ge=1, le=INTEGER_MAX, description="Id of the proxy.")]


Tag = Annotated[Text, Field(min_length=1, max_length=40)]


class ProxyQuery(PageQuery):
    """Which proxies."""

    active: bool | None = Field(None, description="Only active proxies (`true`), or only inactive ones (`false`).")
    status: Status | None = Field(
        None, description="Only this status; `failing`: active, with three failures or refusals in a row."
    )
    tag: Tag | None = Field(None, description="Only proxies with this tag.")
    q: Search | None = Field(None, description="Only proxies with this text in address or location.")


class LocationInput(Input):
    """Location of the exit IP."""

    city: Text | None = Field(None, max_length=200, description="City.")
    state: Text | None = Field(None, description="State or province (two letters).")
    country: Text | None = Field(None, description="Country (two letters).")
    timezone: Text | None = Field(None, description="IANA time zone, for example America/Phoenix.")


class NewProxies(LocationInput):
    """Proxies to add, and the location of all of them."""

    proxies: list[Text] = Field(
        min_length=1,
        max_length=100,
        description="Proxies, each as http://USER:PASSWORD@HOST:PORT (or https, socks5), HOST:PORT or "
        "HOST:PORT:USER:PASSWORD.",
        examples=[["http://user:password@203.0.113.7:8080"]],
    )
    force: bool = Field(False, strict=True, description="Activate them without a test.")


class ProxyChange(LocationInput):
    """Location and tags to set: omitted fields keep their value, null clears them."""

    tags: list[Tag] | None = Field(
        None, max_length=100, description="Tags, at most ten: lower-case letters, digits, `.`, `_`, `:` and `-`."
    )

    @model_validator(mode="after")
    def _has_changes(self) -> ProxyChange:
        if not self.model_fields_set:
            raise ValueError(f"nothing to change: give at least one of {', '.join((*LOCATION, 'tags'))}")
        return self


class BulkProxies(Input):
    """Which proxies, and how: give `ids`, a filter, or `all: true`."""

    ids: list[Annotated[int, Field(ge=1, le=INTEGER_MAX)]] | None = Field(
        None, min_length=1, max_length=IDS_MAX, description="Ids of the proxies, instead of a filter."
    )
    status: Status | None = Field(
        None, description="Only this status; `failing`: active, with three failures or refusals in a row."
    )
    tag: Tag | None = Field(None, description="Only proxies with this tag.")
    q: Search | None = Field(None, description="Only proxies with this text in address or location.")
    all: bool = Field(
        False, strict=True, description="Select all proxies; required if neither filters nor ids are given."
    )
    dry_run: bool = Field(False, strict=True, description="Only count the proxies that would change.")
    version: Text | None = Field(
        None,
        max_length=40,
        description="`version` of a preview: nothing is done (409) if other proxies would change by now.",
    )
    reason: Annotated[Text, Field(min_length=1, max_length=500)] | None = Field(
        None, description="For `disable`: reason, shown with the proxies."
    )
    force: bool = Field(False, strict=True, description="For `enable`: activate them without a test.")
    new_tag: Text | None = Field(None, max_length=200, description="For `tag` and `untag`: the tag to add or remove.")

    @model_validator(mode="after")
    def _selects(self) -> BulkProxies:
        filters = [name for name in ("status", "tag", "q") if getattr(self, name) is not None]
        if self.ids is not None and (filters or self.all):
            raise ValueError(f"`ids` cannot be combined with {', '.join(filters) or 'all'}")
        if self.all and filters:
            raise ValueError(f"`all` selects all proxies: omit it, or omit {', '.join(filters)}")
        if self.ids is None and not filters and not self.all:
            raise ValueError("this selects all proxies: give `ids` or a filter (status, tag, q), or `all: true`")
        return self

    @property
    def where(self) -> ProxyFilter:
        return ProxyFilter(ids=self.ids, status=self.status, tag=_lower(self.tag), q=self.q)


def _lower(tag: str | None) -> str | None:
    return None if tag is None else tag.lower()


class EnableProxy(Input):
    """How to enable a proxy."""

    force: bool = Field(False, strict=True, description="Enable it without a test.")


class DisableProxy(Input):
    """Reason for disabling a proxy."""

    reason: Annotated[Text, Field(min_length=1, max_length=500)] | None = Field(
        None, description="Reason, shown with the proxy."
    )


class ProxyResult(Struct, frozen=True, kw_only=True):
    """Result for one of the given proxies."""

    index: Annotated[int, doc("Index in `proxies`, from 0.")]
    outcome: Annotated[
        Literal["added", "updated", "repeated", "rejected"],
        doc(
            "`updated`: already known, its password and location were updated; `repeated`: it occurs again later in the list."
        ),
    ]
    id: Annotated[int | None, doc("Id of the proxy; null if it was rejected.")] = None
    address: Annotated[str | None, doc("Address without the password; null if it could not be parsed.")] = None
    active: Annotated[bool, doc("Whether the proxy is active now.")] = False
    reason: Annotated[str | None, doc("Why it was rejected or is not active: it failed its test, or is disabled.")]


class ProxyResults(Struct, frozen=True, kw_only=True):
    """Results for all given proxies."""

    added: int
    updated: Annotated[int, doc("Number of proxies already known.")]
    rejected: Annotated[int, doc("Number of invalid entries.")]
    inactive: Annotated[int, doc("Number of proxies that failed their test; they are probed again automatically.")]
    results: Annotated[list[ProxyResult], doc("One result per given proxy, in the same order.")]


@router.get("", **returns_page(Proxy), summary="List proxies")
async def list_proxies(request: Request, conn: ReadConn, query: Annotated[ProxyQuery, Query()]) -> Response:
    """Lists proxies with their health, by id."""
    where = ProxyFilter(active=query.active, status=query.status, tag=_lower(query.tag), q=query.q)
    keys = Keyset(query, int, "proxies", where)
    rows = await proxies.list_proxies(conn, where, after=keys.after or 0, limit=keys.limit)
    return keys.page(request, rows, lambda proxy: proxy.id)


@router.post(
    "",
    **returns(ProxyResults, 201, also={200: "No proxy is new: all were known or invalid."}),
    summary="Add proxies",
)
async def add_proxies(request: Request, system: AppDep, new: NewProxies) -> Response:
    """Tests each proxy with one request to the platform. A proxy that fails is added as inactive and probed again automatically.
    Invalid entries are reported by index; the others are added."""
    location = Location.parse(**{name: getattr(new, name) for name in LOCATION})
    parsed, rejected = _parse(new.proxies, location)
    if not parsed:
        errors = [InvalidValue(pointer=f"#/proxies/{line.number}", detail=line.reason) for line in rejected]
        raise InvalidRequest("; ".join(f"proxies[{line.number}]: {line.reason}" for line in rejected), errors)
    result = await import_proxies(system.pool, system.settings, parsed, rejected, test=not new.force)
    return answer(request, _results(result, parsed), status=201 if result.added else 200)


@router.post("/bulk/{action}", **returns(ProxyBulkResult), summary="Change many proxies")
async def bulk_change_proxies(
    request: Request,
    conn: WriteConn,
    action: Annotated[ProxyAction, Path(description="What to do.")],
    selection: BulkProxies,
) -> Response:
    """Acts on all matching proxies at once. Workers run the tests of `test` and `enable` within minutes: a proxy that fails is
    inactive, and probed again automatically. With `dry_run` it only counts them."""
    result = await bulk.apply(
        conn,
        action,
        selection.where,
        dry_run=selection.dry_run,
        tag=selection.new_tag,
        reason=selection.reason,
        force=selection.force,
        version=selection.version,
    )
    if selection.version not in (None, result.version):
        raise PreconditionFailed(f"the proxies changed since that preview: {result.would:,} would change now")
    return answer(request, result)


@router.get("/{proxy_id}/statistics", **returns(ProxyStatistics), summary="Get a proxy's statistics")
async def get_proxy_statistics(request: Request, system: AppDep, conn: ReadConn, proxy_id: ProxyPath) -> Response:
    """Returns its requests of the last 24 hours: by hour with response times, and by host with block rates."""
    return answer(request, await get_statistics(conn, proxy_id, system.host_hours))


@router.get("/{proxy_id}", **returns(Proxy), summary="Get a proxy")
async def get_proxy(request: Request, conn: ReadConn, proxy_id: ProxyPath) -> Response:
    """Returns one proxy with its health."""
    return answer(request, await proxies.get_proxy(conn, proxy_id))


@router.patch("/{proxy_id}", **returns(Proxy), summary="Set a proxy's location and tags")
async def change_proxy(request: Request, conn: WriteConn, proxy_id: ProxyPath, new: ProxyChange) -> Response:
    """The location of its exit IP determines the request language and the browser profiles."""
    location = new.model_dump(exclude_unset=True, exclude={"tags"})
    tags = (new.tags or []) if "tags" in new.model_fields_set else None
    return answer(request, await proxies.set_details(conn, proxy_id, location, tags=tags))


@router.post("/{proxy_id}/enable", **returns(Proxy), summary="Enable a proxy")
async def enable_proxy(
    request: Request, system: AppDep, proxy_id: ProxyPath, options: Annotated[EnableProxy | None, Body()] = None
) -> Response:
    """Resets its counters and tests it. If the test fails it is inactive instead of disabled, and is probed again automatically."""
    force = options is not None and options.force
    (proxy,) = await proxies.enable(system.pool, system.settings, [proxy_id], force=force)
    return answer(request, proxy)


@router.post("/{proxy_id}/disable", **returns(Proxy), summary="Disable a proxy")
async def disable_proxy(
    request: Request,
    conn: WriteConn,
    proxy_id: ProxyPath,
    body: Annotated[DisableProxy | None, Body(title="Reason")] = None,
) -> Response:
    """It stays disabled until it is enabled again. Running requests through it finish."""
    (proxy,) = await proxies.disable(conn, [proxy_id], body.reason if body is not None else None)
    return answer(request, proxy)


@router.post("/{proxy_id}/test", **returns(ProxyTest), summary="Test a proxy")
async def test_proxy(request: Request, system: AppDep, proxy_id: ProxyPath) -> Response:
    """Sends one request to the platform through the proxy and returns the result. Does not affect its counters."""
    (result,) = await proxies.run_tests(system.pool, system.settings, proxy_ids=[proxy_id])
    return answer(request, result)


@router.delete("/{proxy_id}", **returns(Proxy), summary="Remove a proxy")
async def remove_proxy(request: Request, conn: WriteConn, proxy_id: ProxyPath) -> Response:
    """Deletes the proxy; returns the deleted proxy."""
    (proxy,) = await proxies.remove(conn, [proxy_id])
    return answer(request, proxy)


def _parse(lines: list[str], location: Location) -> tuple[list[ParsedProxy], list[Rejected]]:
    """Numbered by their index in the request."""
    parsed: list[ParsedProxy] = []
    rejected: list[Rejected] = []
    for index, text in enumerate(lines):
        try:
            parsed.append(ParsedProxy(number=index, proxy=location.of(parse_line(text))))
        except Refused as error:
            rejected.append(Rejected(number=index, reason=str(error)))
    return parsed, rejected


def _results(result: ImportResult, parsed: list[ParsedProxy]) -> ProxyResults:
    results = {
        proxy.number: ProxyResult(
            index=proxy.number,
            outcome="added" if proxy.created else "updated",
            id=proxy.id,
            address=proxy.address,
            active=proxy.active,
            reason=proxy.reason,
        )
        for proxy in result.proxies
    }
    by_key = {line.proxy.key: results[line.number] for line in parsed if line.number in results}
    for line in parsed:
        if line.number not in results:
            results[line.number] = structs.replace(by_key[line.proxy.key], index=line.number, outcome="repeated")
    for rejected in result.rejected:
        results[rejected.number] = ProxyResult(index=rejected.number, outcome="rejected", reason=rejected.reason)
    return ProxyResults(
        added=result.added,
        updated=result.updated,
        rejected=len(result.rejected),
        inactive=result.failed,
        results=[results[index] for index in sorted(results)],
    )
