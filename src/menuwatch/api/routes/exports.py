"""Whole tables, as streams."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import Input, Instant, State, StoreId, Text
from menuwatch.api.problems import InvalidRequest, Unavailable
from menuwatch.exports.tables import MEDIA_TYPES, ExportTable, Format
from menuwatch.ops import export
from menuwatch.ops.export import ExportRequest
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep
from menuwatch.web.downloads import AGAIN_SECONDS, ExportsBusy, download

router = APIRouter(prefix="/api/export", tags=["catalog"], dependencies=[require(Permission.EXPORT)])


class ExportQuery(Input):
    """What of a table, and in which format."""

    format: Format = Field(Format.CSV, description="File format.")
    since: Instant | None = Field(
        None, description="Only rows crawled, changed or valid at or after this time (ISO 8601 with offset)."
    )
    until: Instant | None = Field(None, description="Only rows before this time (ISO 8601 with offset).")
    state: list[State] | None = Field(None, description="Only stores in these states, for example NM (repeatable).")
    store: list[StoreId] | None = Field(None, description="Only these stores (repeatable).")
    platform: list[Text] | None = Field(None, description="Only these platforms (repeatable).")


@router.get(
    "/{what}",
    summary="Export a table as one file",
    response_class=Response,
    responses={
        200: {
            "description": "The file. Amounts are exact, times are UTC; JSON columns are text in CSV and Parquet. If "
            "the connection ends before the last chunk, the file is incomplete: the server disconnects clients that "
            "read less than 25 kB per second. `menuwatch export` has no such limit.",
            "content": {media.partition(";")[0]: {"schema": {"type": "string"}} for media in MEDIA_TYPES.values()},
        }
    },
)
async def export_table(
    request: Request,
    system: AppDep,
    what: Annotated[
        ExportTable,
        Path(
            description="`products`: current products; `offers`: one row per option of the products on menus; `stores`; "
            "`snapshots`: one row per product and crawl; `states`: one row "
            "per state of a product; `changes`: price and stock changes with before and after; `details`: one row per batch, lab "
            "result and sold count of a product; `canonical-products`, `brands` and `locations`: what rows name by id, merged "
            "ones with their successor; `product-matches`: which canonical product each product is, with confidence and "
            "reasons; `match-events`: canonical products that were merged or split."
        ),
    ],
    query: Annotated[ExportQuery, Query()],
) -> Response:
    """Returns all rows that match the filters, as of one moment and without paging. `menuwatch export` writes the same file."""
    if query.since is not None and query.until is not None and query.since >= query.until:
        raise InvalidRequest.parameter("until", "must be after since")
    if query.store:
        async with system.pool.connection(timeout=10) as conn:
            unknown = await export.unknown_stores(conn, query.store)
        if unknown:
            raise InvalidRequest.parameter("store", f"store {unknown[0]} does not exist")
    selection = ExportRequest(
        what=what,
        fmt=query.format,
        since=query.since,
        until=query.until,
        stores=query.store,
        states=query.state,
        platforms=query.platform,
    )
    try:
        return await download(request, system, selection, f"menuwatch-{what}")
    except ExportsBusy as error:
        raise Unavailable(str(error), headers={"Retry-After": str(AGAIN_SECONDS)}) from error
