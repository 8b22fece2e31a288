"""Counts beside screens in the navigation: open failures and quarantined payloads."""

from __future__ import annotations

import asyncio
import time

import psycopg
from fastapi import Request
from msgspec import Struct
from psycopg_pool import PoolTimeout

from menuwatch.accounts.model import Permission
from menuwatch.archive import service as payloads
from menuwatch.core.format import pluralize
from menuwatch.db.pool import Pool
from menuwatch.queue.failures import count_open_causes

_SECONDS = 0.8
"""How old counts may be: less than the second between two refreshes of a live page."""
_MOST_CAUSES = 99


class Badge(Struct, frozen=True):
    """A count, and what it counts."""

    text: str
    what: str


class Badges:
    """Counts of one app, by the path of their screen."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._read_at = -_SECONDS
        self._counts: dict[str, Badge] = {}
        self._lock = asyncio.Lock()

    async def get(self) -> dict[str, Badge]:
        """The counts that are not 0. None are shown while the database cannot be read: the page itself says why."""
        async with self._lock:
            if time.monotonic() - self._read_at >= _SECONDS:
                try:
                    self._counts = await self._read()
                except (psycopg.Error, PoolTimeout):
                    self._counts = {}
                self._read_at = time.monotonic()
            return self._counts

    async def _read(self) -> dict[str, Badge]:
        async with self._pool.connection(timeout=2) as conn:
            causes = await count_open_causes(conn, limit=_MOST_CAUSES + 1)
            held = await payloads.count_quarantined(conn)
        found = {}
        if causes:
            text = f"{_MOST_CAUSES}+" if causes > _MOST_CAUSES else str(causes)
            found["/failures"] = Badge(text, "open causes in the last 24 hours")
        if held:
            text = f"{payloads.MOST_COUNTED:,}+" if held > payloads.MOST_COUNTED else f"{held:,}"
            found["/quarantine"] = Badge(text, f"{pluralize(held, 'payload').partition(' ')[2]} in quarantine")
        return found


async def count_badges(request: Request) -> None:
    """Dependency of every page: puts the counts where the frame finds them."""
    principal = getattr(request.state, "principal", None)
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    if principal is None or not principal.may(Permission.READ) or path.startswith("/live"):
        return
    if request.method == "GET":
        request.state.badges = await request.app.state.badges.get()
