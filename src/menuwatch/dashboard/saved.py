"""What screens with filters say of the views that somebody saved of them (views.html)."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from fastapi import Request

from menuwatch.dashboard import screen
from menuwatch.db.pool import Connection
from menuwatch.operations import views


async def saved(request: Request, conn: Connection, path: str) -> dict[str, Any]:
    """The views of the screen at that path, and what is seen now as one could be saved: its filters without the place in the list."""
    kept = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor" and value]
    return {
        "views": await views.listed(conn, screen.principal(request).name, path),
        "view_query": urlencode(kept),
        "view_path": path,
    }
