"""Locations: one shop across platforms and licences; what people decide about its menus and licences; licence registers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field, model_validator

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import INTEGER_MAX, Input, Instant, LongPageQuery, NearQuery, Search, Text
from menuwatch.api.paging import Keyset
from menuwatch.api.responses import answer, returns, returns_page
from menuwatch.geo.states import parse_state
from menuwatch.matching.locations import service as locations
from menuwatch.matching.locations.model import (
    Licence,
    LicenceFilter,
    LicenceImport,
    Location,
    LocationDetail,
    LocationFilter,
    LocationStatus,
    Subject,
)
from menuwatch.web.auth import require_by_method
from menuwatch.web.dependencies import ReadConn, WriteConn

router = APIRouter(tags=["locations"], dependencies=[require_by_method(Permission.STORES)])

LocationPath = Annotated[int, Path(ge=1, le=INTEGER_MAX, description="Id of a location.")]


class LocationQuery(LongPageQuery, NearQuery):
    """Which locations."""

    state: list[Text] | None = Field(None, description="Only locations in these states (repeatable).")
    status: LocationStatus | None = Field(
        None,
        description="Only locations of this status. `open`: a menu was read in the last 7 days; `licence_ended`: the same, but all "
        "known licences ended; `no_menu`: no current menu; `closed`: no current menu, and all known licences ended.",
    )
    several: bool | None = Field(None, description="Only locations with several menus (`true`) or one (`false`).")
    q: Search | None = Field(None, description="Only locations whose name, chain, address or city contains this text.")
    updated_since: Instant | None = Field(
        None,
        description="Only locations that moved, or were renamed, merged or split at or after this time (ISO 8601 with offset).",
    )


class LicenceQuery(LongPageQuery):
    """Which licences."""

    state: list[Text] | None = Field(None, description="Only licences of these states (repeatable).")
    linked: bool | None = Field(None, description="Only licences with (`true`) or without (`false`) a location.")
    ended: bool | None = Field(
        None, description="Only licences that are gone, expired or inactive (`true`), or only valid ones (`false`)."
    )
    q: Search | None = Field(
        None, description="Only licences whose number, holder, trade name or city contains this text."
    )


class Decision(Input):
    """A menu or a licence; exactly one of the two."""

    store_id: int | None = Field(None, ge=1, le=INTEGER_MAX, strict=True, description="Id of a store.")
    licence_id: int | None = Field(None, ge=1, le=INTEGER_MAX, strict=True, description="Id of a licence.")

    @model_validator(mode="after")
    def _one(self) -> Decision:
        if (self.store_id is None) == (self.licence_id is None):
            raise ValueError("give either store_id or licence_id")
        return self

    def subject(self) -> Subject:
        return Subject(store_id=self.store_id, licence_id=self.licence_id)


class LocationMerge(Input):
    """Which location a location is merged into."""

    into: int = Field(ge=1, le=INTEGER_MAX, strict=True, description="Id of the location that stays.")


class Register(Input):
    """A licence register."""

    state: Text = Field(min_length=2, max_length=40, description="State of the register, two letters.", examples=["NY"])
    content: Text = Field(
        min_length=1,
        max_length=900_000,
        description="CSV with a header, JSON lines or a JSON list. Larger registers: `menuwatch licences import`.",
        examples=["number,holder,address,city,zipcode\nCCD-1,Green Mesa LLC,12 Main St,Santa Fe,87501"],
    )
    partial: bool = Field(
        False, strict=True, description="The register lists only some licences: none is marked as gone."
    )


@router.get("/api/locations", **returns_page(Location), summary="List locations")
async def list_locations(request: Request, conn: ReadConn, query: Annotated[LocationQuery, Query()]) -> Response:
    """Lists shops by id: each once, whatever the number of its platforms and licences."""
    where = LocationFilter(
        states=query.state,
        status=query.status,
        several=query.several,
        q=query.q,
        circle=query.circle,
        updated_since=query.updated_since,
    )
    keys = Keyset(query, int, "locations", where)
    rows = await locations.list_locations(conn, where, after=keys.after, limit=keys.limit)
    return keys.page(request, rows, lambda location: location.id)


@router.get("/api/locations/{location_id}", **returns(LocationDetail), summary="Get a location")
async def get_location(request: Request, conn: ReadConn, location_id: LocationPath) -> Response:
    """Returns one shop with its menus, licences, history and nearby locations. The id of a merged location returns its
    successor."""
    return answer(request, await locations.get_location(conn, location_id))


@router.post("/api/locations/{location_id}/link", **returns(LocationDetail), summary="Link a store or licence")
async def link_location(request: Request, conn: WriteConn, location_id: LocationPath, body: Decision) -> Response:
    """Links a store or a licence to this location. The matcher never overrules it. Refused (409) if a person decided the opposite."""
    number = await locations.link(conn, body.subject(), location_id)
    return answer(request, await locations.get_location(conn, number))


@router.post(
    "/api/locations/{location_id}/merge", **returns(LocationDetail), summary="Merge a location into another one"
)
async def merge_location(request: Request, conn: WriteConn, location_id: LocationPath, body: LocationMerge) -> Response:
    """Makes two locations one; this id then redirects to the other one. Refused (409) if a person decided the opposite."""
    number = await locations.merge(conn, location_id, body.into)
    return answer(request, await locations.get_location(conn, number))


@router.post("/api/locations/{location_id}/unlink", **returns(LocationDetail), summary="Unlink a store or licence")
async def unlink_location(request: Request, conn: WriteConn, location_id: LocationPath, body: Decision) -> Response:
    """Unlinks a store or a licence from this location: the matcher never links it again. A store gets its own location."""
    number = await locations.unlink(conn, body.subject(), location_id)
    return answer(request, await locations.get_location(conn, number))


@router.post("/api/locations/{location_id}/release", **returns(LocationDetail), summary="Withdraw a decision")
async def release_location(request: Request, conn: WriteConn, location_id: LocationPath, body: Decision) -> Response:
    """Withdraws people's decisions about a store or a licence: the matcher assigns it again, within seconds."""
    number = await locations.resolve(conn, location_id)
    await locations.release(conn, body.subject())
    return answer(request, await locations.get_location(conn, number))


@router.get("/api/licences", **returns_page(Licence), summary="List licences")
async def list_licences(request: Request, conn: ReadConn, query: Annotated[LicenceQuery, Query()]) -> Response:
    """Lists the licences of all imported registers by id, with their locations."""
    where = LicenceFilter(states=query.state, linked=query.linked, ended=query.ended, q=query.q)
    keys = Keyset(query, int, "licences", where)
    rows = await locations.list_licences(conn, where, after=keys.after, limit=keys.limit)
    return keys.page(request, rows, lambda licence: licence.id)


@router.post("/api/licences/import", **returns(LicenceImport), summary="Import a licence register")
async def import_licences(request: Request, conn: WriteConn, body: Register) -> Response:
    """Imports the register of a state. Idempotent: licences are added, updated, or marked as gone. Lines that are not licences are
    skipped and returned with the reason. Stores are linked to the licences within seconds."""
    state = parse_state(body.state)
    result = await locations.import_register(conn, body.content.encode(), state, partial=body.partial)
    return answer(request, result)
