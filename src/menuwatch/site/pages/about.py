"""The page about the site: its purpose, data sources and privacy."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from menuwatch.site import screen
from menuwatch.storefront import page_queries
from menuwatch.web.dependencies import ReadConn

router = APIRouter()


@router.get("/about")
async def about(request: Request, conn: ReadConn) -> Response:
    """About and privacy."""
    total = await page_queries.list_totals(conn, "all")
    settings = screen.system_of(request).settings
    context = {
        "total": total[0] if total else None,
        "counts_visits": getattr(settings, "geoip_database", None) is not None,
        "minimum_age": settings.minimum_age,
        "canonical": screen.whole(request, "/about"),
        "description": "Where the prices come from, how fresh they are, and how visits are counted.",
    }
    return screen.render(request, "about.html", context)
