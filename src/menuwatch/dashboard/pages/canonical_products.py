"""A canonical product: its listings at all stores, why they belong together, and merges and splits."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen, tables
from menuwatch.dashboard.decode import decoded
from menuwatch.dashboard.pages.matching import judge, sort_reasons
from menuwatch.dashboard.pages.products import picture
from menuwatch.matching import products
from menuwatch.matching.corrections import CorrectionFilter, list_corrections
from menuwatch.web import paging
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn

router = APIRouter(prefix="/matching/products", dependencies=[require(Permission.READ)])

_EVENTS, _CORRECTIONS = 50, 20


@router.get("/{canonical_id}")
async def one_canonical_product(
    request: Request,
    conn: ReadConn,
    canonical_id: Annotated[int, Path(ge=1, le=2**63 - 1)],
    cursor: Annotated[str, Query(max_length=400)] = "",
) -> Response:
    """One product at all stores. A merged one leads to its successor."""
    product = await products.get_canonical_product(conn, canonical_id)
    page = await products.list_listings(
        conn,
        canonical_id,
        after=screen.parse_cursor(request, cursor, tuple[bool, Decimal, int]),
        limit=tables.page_size(request),
    )
    listings = decoded(page.items)
    for one in listings:
        one["judged"] = None if one["confidence"] is None else judge(one["confidence"])
        one["why"] = sort_reasons(one["reasons"], True)
    ids = [one["product_id"] for one in listings]
    (shown,) = decoded([product])
    context = {
        "product": shown,
        "listings": listings,
        "page": tables.page_of(request, len(listings), paging.encode(*page.next) if page.next else None),
        "events": await products.list_events(conn, canonical_id, limit=_EVENTS),
        "corrections": decoded(
            await list_corrections(conn, CorrectionFilter(active=True, products=ids), limit=_CORRECTIONS)
        ),
        "picture": picture,
        "may": screen.may(request, Permission.MATCHING),
    }
    return screen.render(request, "matching/product.html", context, live="products")
