"""Images: how many products have their image, why others have none, and what is stored on disk."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.dashboard.pages.products import picture
from menuwatch.images import service as images_service
from menuwatch.images.cache import OTHER_SIZES, ImageCache
from menuwatch.images.files import FOLDER
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppContext, AppDep, ReadConn, WriteConn

router = APIRouter(dependencies=[require(Permission.READ)])

_FAILURES = 20
_NEWEST = 24
_COUNTED_FOR_SECONDS = 60.0


@router.get("/images")
async def images(
    request: Request, system: AppDep, conn: ReadConn, cursor: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Images at a glance."""
    after = screen.parse_number_cursor(request, cursor)
    failed = await images_service.list_failures(conn, before=after, limit=_FAILURES + 1)
    shown, links = screen.paginate(request, failed, _FAILURES, "id")
    context = {
        "overview": await images_service.overview(conn),
        "most": images_service.MAX_COUNTED,
        "reasons": await images_service.failure_reasons(conn),
        "failures": shown,
        "newest": await images_service.list_newest(conn, _NEWEST),
        "cache": await _cache(request, system),
        "downloads": system.settings.image_downloads,
        "picture": picture,
        **links,
    }
    return screen.render(request, "images.html", context, live="images")


async def _cache(request: Request, system: AppContext) -> dict[str, Any]:
    """Size of the cache of resized images in bytes, measured at most once a minute."""
    state: Any = request.app.state
    room = system.settings.image_cache_mb * 1_000_000
    at, used = getattr(state, "resized", (0.0, 0))
    if not at or time.monotonic() - at > _COUNTED_FOR_SECONDS:
        folders = (system.settings.storage / "cache" / name for name in (FOLDER, OTHER_SIZES))
        used = await asyncio.to_thread(lambda: sum(ImageCache(folder, room).used() for folder in folders))
        state.resized = time.monotonic(), used
    return {"used": used, "room": room, "share": min(used / room, 1.0) if room else None}


@router.post("/images/retry", dependencies=[require(Permission.IMAGES)])
async def retry(request: Request, conn: WriteConn) -> Response:
    """Queue every failed image download again."""
    again = await images_service.retry_failed(conn)
    said = (
        f"{again:,} queued for retry, within the rate limits of their hosts."
        if again
        else "No failed downloads to retry."
    )
    return screen.flash_to(request, "/images", said)
