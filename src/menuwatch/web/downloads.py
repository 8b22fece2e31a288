"""Exports as downloads: streamed, few at a time, and cut off where the client reads too slowly."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Message, Send

from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.errors import Conflict
from menuwatch.core.logging import get_logger
from menuwatch.exports.tables import MEDIA_TYPES
from menuwatch.ops import export
from menuwatch.ops.export import ExportRequest, RowExport
from menuwatch.web.auth import principal_of
from menuwatch.web.dependencies import AppContext

log = get_logger(__name__)

MAX_CONCURRENT = 2
"""Each keeps a connection for as long as its client takes to read it."""
MAX_SECONDS = 3600.0
"""After which one is cut off: what it reads from cannot be cleaned up meanwhile."""
GRACE_SECONDS = 30.0
"""For which a client may keep an export waiting, altogether and whatever it reads."""
MIN_RATE = 25_000
"""Bytes a second that a client must read in the rest of the time that it keeps an export waiting."""
AGAIN_SECONDS = 30
"""Seconds after which to try again."""
_SLICE = 65_536


class ExportsBusy(Conflict):
    """Too many exports are running."""


class ActiveExports:
    """The exports that an app has under way, and how slowly they may be read."""

    def __init__(self, *, grace_seconds: float = GRACE_SECONDS, min_rate: int = MIN_RATE) -> None:
        self.busy = 0
        self.users: set[str] = set()
        self.grace_seconds = grace_seconds
        self.min_rate = min_rate


class _TooSlow(Exception):
    """What was sent has not been taken in time."""


class _Download(StreamingResponse):
    """Ends an export whose client reads it too slowly: the connection closes before the last chunk. A send returns when what was sent
    before it has been taken, so the time that sends take is the client's."""

    def __init__(self, body: AsyncGenerator[bytes, None], active: ActiveExports, **more: Any) -> None:
        super().__init__(body, **more)
        self._body, self._active = body, active

    async def stream_response(self, send: Send) -> None:
        waited, sent = 0.0, 0

        async def paced(message: Message) -> None:
            nonlocal waited, sent
            begun = time.monotonic()
            try:
                async with asyncio.timeout(self._active.grace_seconds + sent / self._active.min_rate - waited):
                    await send(message)
            except TimeoutError:
                raise _TooSlow from None
            waited += time.monotonic() - begun
            sent += len(message.get("body", b""))

        async with aclosing(self._body):
            try:
                await super().stream_response(paced)
            except _TooSlow:
                # An answer that is left unfinished has the server close the connection.
                log.warning("export aborted, client too slow", action="export_cut_off", sent_bytes=sent)


def _active_exports(request: Request) -> ActiveExports:
    state = request.app.state
    if not hasattr(state, "exports"):
        state.exports = ActiveExports()
    active: ActiveExports = state.exports
    return active


async def download(request: Request, system: AppContext, selection: ExportRequest | RowExport, name: str) -> Response:
    """The export as a file called `name` with the format's ending. Raises ExportsBusy."""
    active, user = _active_exports(request), principal_of(request).name
    if user in active.users:
        raise ExportsBusy(
            "another export of yours is running, and each user may have one at a time; try again later, or run "
            "`menuwatch export`"
        )
    if active.busy >= MAX_CONCURRENT:
        raise ExportsBusy(
            f"{MAX_CONCURRENT} exports are running, the maximum; try again later, or run `menuwatch export`"
        )
    pieces = _pieces(system, active, user, selection)
    # It begins before the response: an error now is a problem, and the export also ends when the client stops reading.
    first = await anext(pieces, b"")
    return _Download(
        _joined(first, pieces),
        active,
        media_type=MEDIA_TYPES[selection.fmt],
        headers={
            "Content-Disposition": f'attachment; filename="{name}.{selection.fmt}"',
            "Cache-Control": "private, no-store",
        },
    )


async def _pieces(
    system: AppContext, active: ActiveExports, user: str, selection: ExportRequest | RowExport
) -> AsyncGenerator[bytes, None]:
    active.busy += 1
    active.users.add(user)
    try:
        archived = ParquetPartitions(system.archive.storage)
        async with (
            system.pool.connection(timeout=10) as conn,
            export.read_snapshot(conn, selection, archived, max_seconds=MAX_SECONDS),
        ):
            async for piece in export.stream(conn, selection):
                yield piece
    finally:
        active.busy -= 1
        active.users.discard(user)


async def _joined(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """In slices, so that each send is soon done."""
    async with aclosing(rest):
        piece: bytes | None = first
        while piece is not None:
            for start in range(0, len(piece), _SLICE):
                yield piece[start : start + _SLICE]
            piece = await anext(rest, None)
