"""What this site is, where its figures come from, and what is counted of those who visit."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from menuwatch.operations import shopping
from menuwatch.site import screen
from menuwatch.web.system import Reading

router = APIRouter()


@router.get("/about")
async def about(request: Request, conn: Reading) -> Response:
    """About, and privacy."""
    total = await shopping.totals(conn, "all")
    settings = screen.system_of(request).settings
    context = {
        "total": total[0] if total else None,
        "counts_visits": getattr(settings, "geoip_database", None) is not None,
        "canonical": screen.absolute(request, "/about"),
        "description": "Where the prices come from, how fresh they are, and what we count of visits.",
    }
    return screen.show(request, "about.html", context)
