"""The archive: list, look at, download, compare, release."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api import paging
from menuwatch.api.answers import answer, matches, page
from menuwatch.api.schemas.common import PayloadPath, StorePath
from menuwatch.api.schemas.payloads import (
    DiffQuery,
    LatestQuery,
    Payload,
    PayloadDiff,
    PayloadPage,
    PayloadQuery,
    Released,
    StorePayloadQuery,
)
from menuwatch.operations import payloads
from menuwatch.operations.payload_diff import shown
from menuwatch.web.auth import allowed_by_method
from menuwatch.web.system import Reading, Sys, Writing

router = APIRouter(prefix="/api/payloads", tags=["payloads"], dependencies=[allowed_by_method(Permission.PAYLOADS)])


def _page(request: Request, mark: str, found: list[Any], limit: int) -> Response:
    shown = found[:limit]
    last = shown[-1] if len(found) > limit else None
    return page(request, shown, paging.encode(mark, last.fetched_at, last.id) if last else None)


def _before(cursor: str | None, mark: str) -> tuple[datetime, int] | None:
    return None if cursor is None else paging.decode(cursor, mark, tuple[datetime, int])


@router.get("", response_model=PayloadPage, summary="List archived payloads, newest first")
async def list_payloads(request: Request, conn: Reading, query: Annotated[PayloadQuery, Query()]) -> Response:
    """Every answer of a platform that was archived, with what is known of it."""
    mark = paging.mark("payloads", query.dispensary_id, query.status)
    found = await payloads.page(
        conn,
        dispensary_id=query.dispensary_id,
        status=query.status,
        before=_before(query.cursor, mark),
        limit=query.limit + 1,
    )
    return _page(request, mark, found, query.limit)


@router.get("/{payload_id}", response_model=Payload, summary="One payload's metadata")
async def get_payload(request: Request, conn: Reading, payload_id: PayloadPath) -> Response:
    """What is known of one archived answer; its content is at `/api/payloads/{id}/data`."""
    return answer(request, await payloads.one(conn, payload_id))


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
    summary="The archived document itself",
    response_class=Response,
    responses={
        200: {
            "description": "The document: `pages` holds the platform's answers verbatim, in order; `broken` holds answers that are "
            "not JSON, Base64-encoded.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        },
        304: {"description": "The client has it already."},
    },
)
async def get_payload_data(request: Request, system: Sys, payload_id: PayloadPath) -> Response:
    """The file as it was archived, compressed for clients that take gzip. It never changes: its ETag is the SHA-256 of the document,
    with `-gzip` behind it where it is sent compressed."""
    async with system.pool.connection(timeout=10) as conn:
        payload = await payloads.one(conn, payload_id)
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


@router.get("/store/{dispensary_id}", response_model=PayloadPage, summary="One store's payloads, newest first")
async def list_store_payloads(
    request: Request, conn: Reading, dispensary_id: StorePath, query: Annotated[StorePayloadQuery, Query()]
) -> Response:
    """Every answer that was archived for one store."""
    mark = paging.mark("store payloads", dispensary_id, query.status)
    found = await payloads.of_store(
        conn, dispensary_id, status=query.status, before=_before(query.cursor, mark), limit=query.limit + 1
    )
    return _page(request, mark, found, query.limit)


@router.get("/store/{dispensary_id}/latest", response_model=Payload, summary="One store's newest payload")
async def get_latest_payload(
    request: Request, conn: Reading, dispensary_id: StorePath, query: Annotated[LatestQuery, Query()]
) -> Response:
    """The newest archived answer of a store, whatever its status unless one is asked for. `Content-Location` is its own address."""
    found = await payloads.latest(conn, dispensary_id, query.status)
    return answer(request, found, headers={"Content-Location": f"/api/payloads/{found.id}"})


@router.get(
    "/store/{dispensary_id}/diff", response_model=PayloadDiff, summary="What differs between two of a store's menus"
)
async def diff_payloads(
    request: Request, system: Sys, dispensary_id: StorePath, query: Annotated[DiffQuery, Query()]
) -> Response:
    """Compares two archived menus product by product, as if they followed each other. Without parameters these are the two newest
    ok ones; naming a quarantined one shows what it would change. `Content-Location` is the address of this very comparison."""
    async with system.pool.connection(timeout=10) as conn:
        first, second = await payloads.to_compare(conn, dispensary_id, query.from_, query.to)
    # Normalizing takes a while: no connection is held meanwhile.
    found = shown(await payloads.compare(system.archive, system.platforms, first, second))
    place = f"/api/payloads/store/{dispensary_id}/diff?from={first.id}&to={second.id}"
    return answer(request, found, headers={"Content-Location": place})


@router.post("/{payload_id}/release", response_model=Released, summary="Take a payload out of quarantine")
async def release_payload(request: Request, conn: Writing, payload_id: PayloadPath) -> Response:
    """A person has looked at a suspect menu and it is right: it counts as `ok` from now on, and is applied ahead of other work."""
    task_id = await payloads.release(conn, payload_id)
    return answer(request, {"payload": await payloads.one(conn, payload_id), "task_id": task_id})
