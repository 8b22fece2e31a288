"""Whole tables, as streams."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from menuwatch.accounts.model import Permission
from menuwatch.api.problems import InvalidRequest, Unavailable
from menuwatch.api.schemas.exports import ExportQuery
from menuwatch.exports.packs import Packs
from menuwatch.exports.sheets import MEDIA_TYPES, What
from menuwatch.operations import export
from menuwatch.operations.export import Wanted
from menuwatch.web.auth import allowed
from menuwatch.web.system import Sys, System

router = APIRouter(prefix="/api/export", tags=["catalogue"], dependencies=[allowed(Permission.EXPORT)])

MOST_AT_ONCE = 2
"""Each keeps a connection for as long as its client takes to read it."""
MOST_SECONDS = 3600.0
"""After which one is cut off: what it reads from cannot be cleaned up meanwhile."""
_AGAIN_SECONDS = 30


class _Desk:
    """How many exports an app has under way."""

    def __init__(self) -> None:
        self.busy = 0


def _desk(request: Request) -> _Desk:
    state = request.app.state
    if not hasattr(state, "exports"):
        state.exports = _Desk()
    desk: _Desk = state.exports
    return desk


@router.get(
    "/{what}",
    summary="A whole table as one file",
    response_class=Response,
    responses={
        200: {
            "description": "The file. Amounts are exact, times are UTC; JSON columns are text in CSV and Parquet. "
            "A connection that ends before the last chunk means that the file is not whole.",
            "content": {media.partition(";")[0]: {"schema": {"type": "string"}} for media in MEDIA_TYPES.values()},
        }
    },
)
async def export_table(
    request: Request,
    system: Sys,
    what: Annotated[
        What,
        Path(
            description="`products` as they are now; `snapshots`, a row per product and crawl; `states`, a row per state of a "
            "product; `changes` of price and stock with before and after."
        ),
    ],
    query: Annotated[ExportQuery, Query()],
) -> Response:
    """Everything, or what the filters leave of it, of one moment, without pages. `menuwatch export` writes the same."""
    if query.since is not None and query.until is not None and query.since >= query.until:
        raise _unusable("until", "must be after since")
    if query.store:
        async with system.pool.connection(timeout=10) as conn:
            unknown = await export.unknown_stores(conn, query.store)
        if unknown:
            raise _unusable("store", f"store {unknown[0]} does not exist")
    desk = _desk(request)
    if desk.busy >= MOST_AT_ONCE:
        raise Unavailable(
            f"{MOST_AT_ONCE} exports are under way, as many as there may be; come again, or run `menuwatch export`",
            headers={"Retry-After": str(_AGAIN_SECONDS)},
        )
    wanted = Wanted(
        what=what,
        fmt=query.format,
        since=query.since,
        until=query.until,
        stores=query.store,
        states=query.state,
        platforms=query.platform,
    )
    pieces = _pieces(system, desk, wanted)
    # It is begun before the answer is: what fails now is a problem, and what was begun is also ended when nobody reads on.
    first = await anext(pieces, b"")
    return StreamingResponse(
        _joined(first, pieces),
        media_type=MEDIA_TYPES[query.format],
        headers={
            "Content-Disposition": f'attachment; filename="menuwatch-{what}.{query.format}"',
            "Cache-Control": "private, no-store",
        },
    )


def _unusable(name: str, detail: str) -> InvalidRequest:
    return InvalidRequest(f"{name}: {detail}", [{"parameter": name, "in": "query", "detail": detail}])


async def _pieces(system: System, desk: _Desk, wanted: Wanted) -> AsyncIterator[bytes]:
    desk.busy += 1
    try:
        packs = Packs(system.archive.root)
        async with (
            system.pool.connection(timeout=10) as conn,
            export.one_moment(conn, wanted, packs, most_seconds=MOST_SECONDS),
        ):
            async for piece in export.stream(conn, wanted):
                yield piece
    finally:
        desk.busy -= 1


async def _joined(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    async for piece in rest:
        yield piece
