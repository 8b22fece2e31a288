"""The archive: list, get, download, compare, release."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import BIGINT_MAX, Input, PageQuery, PayloadPath, StoreId, StorePath
from menuwatch.api.paging import Keyset
from menuwatch.api.responses import answer, matches, returns, returns_page
from menuwatch.archive import diff
from menuwatch.archive import service as payloads
from menuwatch.archive.diff import PayloadDiff
from menuwatch.archive.service import PayloadFilter, ReleasedPayload
from menuwatch.archive.store import Payload, Status
from menuwatch.db.pool import Connection
from menuwatch.web.auth import require_by_method
from menuwatch.web.dependencies import AppDep, ReadConn, WriteConn


class StorePayloadQuery(PageQuery):
    """Which payloads of a store."""

    status: Status | None = Field(None, description="Only payloads with this status.")


class PayloadQuery(StorePayloadQuery):
    """Which payloads."""

    dispensary_id: StoreId | None = Field(None, description="Only payloads of this store.")


class LatestQuery(Input):
    """Which payload counts as the latest."""

    status: Status | None = Field(
        None, description="The newest payload with this status; the newest of all if omitted."
    )


class DiffQuery(Input):
    """Which payloads are compared."""

    from_: int | None = Field(
        None,
        alias="from",
        ge=1,
        le=BIGINT_MAX,
        description="Id of the older payload; if omitted, the ok one before `to`.",
    )
    to: int | None = Field(
        None, ge=1, le=BIGINT_MAX, description="Id of the newer payload; if omitted, the newest ok one."
    )


router = APIRouter(prefix="/api/payloads", tags=["payloads"], dependencies=[require_by_method(Permission.PAYLOADS)])


async def _list(request: Request, conn: Connection, query: PageQuery, filters: PayloadFilter) -> Response:
    keys = Keyset(query, tuple[datetime, int], "payloads", filters)
    rows = await payloads.list_payloads(conn, filters, before=keys.after, limit=keys.limit)
    return keys.page(request, rows, lambda payload: (payload.fetched_at, payload.id))


@router.get("", **returns_page(Payload), summary="List archived payloads, newest first")
async def list_payloads(request: Request, conn: ReadConn, query: Annotated[PayloadQuery, Query()]) -> Response:
    """Lists all archived responses of the platforms."""
    return await _list(request, conn, query, PayloadFilter(dispensary_id=query.dispensary_id, status=query.status))


@router.get("/{payload_id}", **returns(Payload), summary="Get a payload's metadata")
async def get_payload(request: Request, conn: ReadConn, payload_id: PayloadPath) -> Response:
    """Returns the metadata of one archived response; its content is at `/api/payloads/{id}/data`."""
    return answer(request, await payloads.get_payload(conn, payload_id))


def takes_gzip(header: str | None) -> bool:
    """Whether an Accept-Encoding header allows gzip, and does not rather have it plain (RFC 9110 section 12.5.3); without the header
    nothing but plain is sent."""
    if header is None:
        return False
    weights: dict[str, float] = {}
    for part in header.split(","):
        name, _, more = part.partition(";")
        key, _, value = more.partition("=")
        try:
            weights[name.strip().lower()] = float(value) if key.strip().lower() == "q" else 1.0
        except ValueError:
            weights[name.strip().lower()] = 0.0
    weight = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0)))
    return weight > 0 and weight >= weights.get("identity", 0.0)


@router.get(
    "/{payload_id}/data",
    summary="Download an archived document",
    response_class=Response,
    responses={
        200: {
            "description": "The document: `pages` holds the platform's responses verbatim, in order; `broken` holds "
            "responses that are not JSON, Base64-encoded.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        },
        304: {"description": "Not modified."},
    },
)
async def get_payload_data(request: Request, system: AppDep, payload_id: PayloadPath) -> Response:
    """Returns the file as archived, compressed for clients that accept gzip. It never changes: its ETag is the SHA-256 of the
    document, with the suffix `-gzip` if sent compressed."""
    async with system.pool.connection(timeout=10) as conn:
        payload = await payloads.get_payload(conn, payload_id)
    packed = takes_gzip(request.headers.get("accept-encoding"))
    headers = {
        # Other bytes are another representation, and need another strong tag.
        "ETag": f'"{payload.sha256}{"-gzip" if packed else ""}"',
        "Cache-Control": "private, max-age=31536000, immutable",
        "Vary": "Accept-Encoding",
    }
    if matches(request.headers.get("if-none-match"), headers["ETag"]):
        return Response(status_code=304, headers=headers)
    if packed:
        headers["Content-Encoding"] = "gzip"
        body = await payloads.packed(system.archive, payload)
    else:
        body = await payloads.unpacked(system.archive, payload)
    return Response(body, headers=headers, media_type="application/json")


@router.get("/store/{dispensary_id}", **returns_page(Payload), summary="List a store's payloads, newest first")
async def list_store_payloads(
    request: Request, conn: ReadConn, dispensary_id: StorePath, query: Annotated[StorePayloadQuery, Query()]
) -> Response:
    """Lists all archived responses for one store."""
    await payloads.check_store(conn, dispensary_id)
    return await _list(request, conn, query, PayloadFilter(dispensary_id=dispensary_id, status=query.status))


@router.get("/store/{dispensary_id}/latest", **returns(Payload), summary="Get a store's newest payload")
async def get_latest_payload(
    request: Request, conn: ReadConn, dispensary_id: StorePath, query: Annotated[LatestQuery, Query()]
) -> Response:
    """Returns the newest archived response of a store, of any status unless one is given. `Content-Location` is its own URL."""
    payload = await payloads.latest_payload(conn, dispensary_id, query.status)
    return answer(request, payload, headers={"Content-Location": f"/api/payloads/{payload.id}"})


@router.get("/store/{dispensary_id}/diff", **returns(PayloadDiff), summary="Compare two menus of a store")
async def diff_payloads(
    request: Request, system: AppDep, dispensary_id: StorePath, query: Annotated[DiffQuery, Query()]
) -> Response:
    """Compares two archived menus product by product, as if they were consecutive. Without parameters these are the two newest ok
    ones; a quarantined one shows what it would change. `Content-Location` is the URL of this comparison."""
    async with system.pool.connection(timeout=10) as conn:
        first, second = await payloads.choose_pair(conn, dispensary_id, query.from_, query.to)
    # Normalizing takes a while: no connection is held meanwhile.
    comparison = diff.to_response(await diff.compare(system.archive, system.platforms, first, second))
    url = f"/api/payloads/store/{dispensary_id}/diff?from={first.id}&to={second.id}"
    return answer(request, comparison, headers={"Content-Location": url})


class Review(Input):
    """The result of a review."""

    note: str | None = Field(None, max_length=payloads.LONGEST_NOTE, description="Note kept with the payload.")


@router.post("/{payload_id}/release", **returns(ReleasedPayload), summary="Release a payload from quarantine")
async def release_payload(
    request: Request, conn: WriteConn, payload_id: PayloadPath, review: Review | None = None
) -> Response:
    """Accepts a suspicious menu after review: its status becomes `ok`, and it is applied with raised priority."""
    task_id = await payloads.release(conn, payload_id, review.note if review else None)
    return answer(request, ReleasedPayload(payload=await payloads.get_payload(conn, payload_id), task_id=task_id))


@router.post("/{payload_id}/reject", **returns(Payload), summary="Reject a quarantined payload")
async def reject_payload(
    request: Request, conn: WriteConn, payload_id: PayloadPath, review: Review | None = None
) -> Response:
    """Refuses a suspicious menu after review: its status becomes `rejected`. It is kept and never applied."""
    await payloads.reject(conn, payload_id, review.note if review else None)
    return answer(request, await payloads.get_payload(conn, payload_id))
