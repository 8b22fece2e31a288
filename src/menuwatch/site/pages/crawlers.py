"""robots.txt and sitemaps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from xml.sax.saxutils import escape

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, StreamingResponse

from menuwatch.site import format as words
from menuwatch.site import screen
from menuwatch.storefront import page_queries
from menuwatch.web.dependencies import ReadConn

router = APIRouter()

PART = 50_000
"""Maximum URLs per sitemap (sitemaps.org)."""
_BATCH = 5_000
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
_SPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


@router.get("/robots.txt")
async def robots(request: Request) -> Response:
    """Allows everything except filter combinations of searches, and personal pages."""
    lines = [
        "User-agent: *",
        *(
            f"Disallow: {request.scope.get('root_path', '')}{path}"
            for path in ("/search?*&", "/search?q=", "/alerts", "/feeds", "/admin", "/api")
        ),
        f"Sitemap: {screen.whole(request, '/sitemap.xml')}",
    ]
    return PlainTextResponse("\n".join(lines) + "\n", headers=_kept(request))


@router.get("/sitemap.xml")
async def index(request: Request, conn: ReadConn) -> Response:
    """The sitemap index."""
    last = await page_queries.last_item_id(conn)
    parts = ["pages", *(f"items-{number}" for number in range(last // PART + 1))]
    rows = "".join(
        f"<sitemap><loc>{escape(screen.whole(request, f'/sitemap-{part}.xml'))}</loc></sitemap>" for part in parts
    )
    return _xml(request, f"{_HEAD}<sitemapindex {_SPACE}>{rows}</sitemapindex>")


@router.get("/sitemap-{part}.xml")
async def part(request: Request, part: str) -> Response:
    """One sitemap: all pages except items, or the items in a range of ids."""
    kind, _, number = part.partition("-")
    if kind == "items" and number.isascii() and number.isdecimal() and len(number) < 10:
        return StreamingResponse(_items(request, int(number)), media_type="application/xml", headers=_kept(request))
    if part == "pages":
        return StreamingResponse(_pages(request), media_type="application/xml", headers=_kept(request))
    raise HTTPException(404)


def _kept(request: Request) -> dict[str, str]:
    return {"Cache-Control": screen.kept(request, 3600)}


def _xml(request: Request, body: str) -> Response:
    return Response(body, media_type="application/xml", headers=_kept(request))


def _entry(address: str, changed: datetime | None) -> str:
    when = f"<lastmod>{changed:%Y-%m-%dT%H:%M:%S+00:00}</lastmod>" if changed is not None else ""
    return f"<url><loc>{escape(address)}</loc>{when}</url>\n"


async def _items(request: Request, number: int) -> AsyncIterator[str]:
    """Streams the sitemap, some thousand rows at a time."""
    yield f"{_HEAD}<urlset {_SPACE}>\n"
    pool = screen.system_of(request).pool
    for first in range(number * PART, (number + 1) * PART, _BATCH):
        async with pool.connection(timeout=10) as conn:
            found = await page_queries.list_sitemap_items(conn, first, first + _BATCH)
        yield "".join(
            _entry(screen.whole(request, screen.item_path(one["id"], one["name"])), one["changed_at"]) for one in found
        )
    yield "</urlset>\n"


async def _pages(request: Request) -> AsyncIterator[str]:
    yield f"{_HEAD}<urlset {_SPACE}>\n"
    yield "".join(_entry(screen.whole(request, path), None) for path in ("/", "/deals", "/stores", "/about"))
    yield "".join(
        _entry(screen.whole(request, f"/search?category={name}"), None) for name in words.CATEGORIES if name != "other"
    )
    pool = screen.system_of(request).pool
    async with pool.connection(timeout=10) as conn:
        stores = await page_queries.list_sitemap_stores(conn)
        brands = await page_queries.list_sitemap_brands(conn, PART - len(stores) - 100)
    yield "".join(
        _entry(screen.whole(request, screen.store_path(one["id"], one["name"])), one["changed_at"]) for one in stores
    )
    yield "".join(_entry(screen.whole(request, screen.brand_path(one["slug"])), None) for one in brands)
    yield "</urlset>\n"
