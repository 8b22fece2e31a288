"""Images: how many products have their picture, why others have none, and what is kept on disk."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen
from menuwatch.dashboard.pages.products import picture
from menuwatch.imaging.derived import Derived
from menuwatch.imaging.files import FOLDER
from menuwatch.operations import picture_board
from menuwatch.web import paging
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading, Sys, System, Writing

router = APIRouter(dependencies=[allowed(Permission.READ)])

_FAILURES = 20
_NEWEST = 24
_COUNTED_FOR_SECONDS = 60.0


@router.get("/images")
async def images(
    request: Request, system: Sys, conn: Reading, cursor: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Pictures at a glance."""
    after = screen.place(request, cursor, tuple[int])
    failed = await picture_board.failures(conn, before=after[0] if after else None, limit=_FAILURES + 1)
    shown = failed[:_FAILURES]
    context = {
        "board": await picture_board.board(conn),
        "most": picture_board.MOST_COUNTED,
        "reasons": await picture_board.reasons(conn),
        "failures": shown,
        "newest": await picture_board.newest(conn, _NEWEST),
        "cache": await _cache(request, system),
        "downloads": system.settings.image_downloads,
        "picture": picture,
        "next": paging.encode(shown[-1]["id"]) if len(failed) > _FAILURES else None,
        "first": bool(cursor),
        "query": lambda **changed: screen.query(request, **changed),
    }
    return screen.show(request, "images.html", context, live="images")


async def _cache(request: Request, system: System) -> dict[str, Any]:
    """What the resized pictures take of their room, in bytes: counted on disk, and no more often than once a minute."""
    state: Any = request.app.state
    room = system.settings.image_cache_mb * 1_000_000
    at, used = getattr(state, "resized", (0.0, 0))
    if not at or time.monotonic() - at > _COUNTED_FOR_SECONDS:
        used = await asyncio.to_thread(Derived(system.settings.storage / "cache" / FOLDER, room).used)
        state.resized = time.monotonic(), used
    return {"used": used, "room": room, "share": min(used / room, 1.0) if room else None}


@router.post("/images/retry", dependencies=[allowed(Permission.IMAGES)])
async def retry(request: Request, conn: Writing) -> Response:
    """Asks anew for every picture that was given up."""
    again = await picture_board.retry_failed(conn)
    said = f"{again:,} wait again: workers ask for them as politeness allows." if again else "Nothing was given up."
    return screen.back(request, "/images", said)
