"""Changes between crawls: prices, stock, new and removed products."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.catalog import changes
from menuwatch.catalog import service as products
from menuwatch.catalog.changes import ChangeFilter, Kind
from menuwatch.catalog.service import Order, ProductFilter, Span
from menuwatch.catalog.taxonomy.categories import CATEGORIES
from menuwatch.core.errors import Refused
from menuwatch.core.moments import parse_past
from menuwatch.dashboard import screen
from menuwatch.dashboard.charts.bars import draw_trend
from menuwatch.dashboard.decode import decoded
from menuwatch.dashboard.known_parameters import reads
from menuwatch.dashboard.pages.exports import export_list
from menuwatch.dashboard.pages.views import saved
from menuwatch.db.pool import Connection
from menuwatch.geo.units import currency
from menuwatch.ops import export
from menuwatch.ops.export import RowExport
from menuwatch.stores import service as store_service
from menuwatch.stores import store as stores
from menuwatch.web import paging
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn
from menuwatch.web.forms import FormInput

router = APIRouter(prefix="/changes", dependencies=[require(Permission.READ)])

_ON_PAGE = 50
_TREND = timedelta(days=30)
"""Span of the price trend beside each product."""
KINDS = {
    "": "All changes",
    Kind.PRICE_DROP: "Price drops",
    Kind.PRICE_RISE: "Price rises",
    Kind.OUT_OF_STOCK: "Out of stock",
    Kind.BACK_IN_STOCK: "Back in stock",
    "new": "New",
    "gone": "Gone",
    Kind.MERGED: "Merged",
    Kind.SPLIT: "Split",
}
SINCE = {"24h": "24 hours", "7d": "7 days", "30d": "30 days", "90d": "90 days", "all": "All"}
_USUAL = "7d"
PERCENTS = {"5": "5 % or more", "10": "10 % or more", "20": "20 % or more", "50": "50 % or more"}

_FILTERS = reads("kind", "since", "percent", "category", "store", "brand", "state", "canonical_product")


@router.get("", dependencies=[_FILTERS])
async def list_changes(
    request: Request, conn: ReadConn, cursor: Annotated[str, Query(max_length=400)] = ""
) -> Response:
    """Changes by kind, newest first, with the price trend of each product."""
    form, where, store = await _read_filter(request, conn)
    after = screen.parse_cursor(request, cursor, tuple[datetime, int])
    rows: list[dict[str, Any]] = []
    links = screen.page_links(request, None)
    if isinstance(where, ProductFilter) and form.ok:
        page = await products.list_products(conn, where, order=Order.UPDATED, after=after, limit=_ON_PAGE)
        rows = [row | {"product_id": row["id"]} for row in decoded(page.items)]
        links = screen.page_links(request, paging.encode(*page.next) if page.next else None)
    elif isinstance(where, ChangeFilter) and form.ok:
        found = await changes.list_changes(conn, where, after=after, limit=_ON_PAGE)
        rows = decoded(found.items)
        links = screen.page_links(request, paging.encode(*found.next) if found.next else None)
    now = datetime.now(UTC)
    listed = {
        row["product_id"]: row["currency"] if "currency" in row else currency(row["state"])
        for row in rows
        if "product_id" in row
    }
    trends = await changes.price_trends(conn, list(listed), now - _TREND) if listed else {}
    _, states = await store_service.platforms_and_states(conn)
    context = {
        "form": form,
        "store": store,
        "rows": rows,
        "of_products": isinstance(where, ProductFilter),
        "trends": {number: draw_trend(points, now - _TREND, now, listed[number]) for number, points in trends.items()},
        "kinds": KINDS,
        "states": [(one, one) for one in states],
        "categories": [(one, one.replace("_", " ")) for one in sorted(CATEGORIES)],
        "since": [*SINCE.items(), *([] if (given := form.text("since") or _USUAL) in SINCE else [(given, given)])],
        "since_default": _USUAL,
        "percents": list(PERCENTS.items()),
        "filtered": any(
            form.text(name) for name in ("store", "brand", "category", "state", "percent", "canonical_product")
        ),
        **links,
        **await saved(request, conn),
    }
    return screen.render(request, "changes.html", context, live="products")


@router.get("/export", dependencies=[require(Permission.EXPORT), _FILTERS, reads("format")])
async def export_changes(request: Request, system: AppDep) -> Response:
    """The list as a file, with the same filters."""

    async def rows(conn: Connection, fmt: Any) -> RowExport:
        form, where, _ = await _read_filter(request, conn)
        screen.refuse_invalid(form)
        if isinstance(where, ProductFilter):
            return export.products_of(await products.resolve(conn, where), fmt)
        return export.changes_of(await changes.resolve(conn, where), fmt)

    kind = request.query_params.get("kind") or ""
    name = (
        f"{kind}-products" if kind in ("new", "gone") else f"{kind.replace('_', '-')}-changes" if kind in KINDS else ""
    )
    return await export_list(request, system, name.strip("-") or "changes", rows)


def _parse_since(form: FormInput) -> datetime | None:
    """The time since which changes are listed: an age, a date or a time; None for all. An error goes to the form."""
    text = form.text("since") or _USUAL
    if text == "all":
        return None
    try:
        moment = parse_past(text, datetime.now(UTC), "").astimezone(UTC)
    except (Refused, OverflowError) as error:
        form.add_error("since", str(error).strip() if isinstance(error, Refused) else f"{text[:40]!r} is out of range")
        return None
    return moment


async def _read_filter(
    request: Request, conn: Connection
) -> tuple[FormInput, ChangeFilter | ProductFilter, stores.Store | None]:
    form = FormInput({name: value.replace("\x00", "")[:300] for name, value in request.query_params.items()})
    kind = form.parse_choice("kind", [str(one) for one in KINDS]) or ""
    since = _parse_since(form)
    percent = form.parse_choice("percent", PERCENTS)
    category = form.parse_choice("category", sorted(CATEGORIES))
    canonical = form.parse_int("canonical_product", low=1, high=2**63 - 1)
    store = None
    if (text := form.text("store")) is not None:
        try:
            store = await stores.resolve(conn, text)
        except Refused as error:
            form.add_error("store", str(error))

    def only(value: Any) -> list[Any] | None:
        return None if value is None else [value]

    if kind in ("new", "gone"):
        every = datetime(2000, 1, 1, tzinfo=UTC)
        brand = form.text("brand")
        spellings: Sequence[str] | None = None if brand is None else await products.brand_spellings(conn, [brand])
        found = ProductFilter(
            stores=only(store.id if store else None),
            states=only(form.text("state")),
            brands=spellings,
            categories_canon=only(category),
            new_since=(since or every) if kind == "new" else None,
            gone_since=(since or every) if kind == "gone" else None,
            canonical_products=only(canonical),
        )
        return form, found, store
    where = ChangeFilter(
        kind=Kind(kind) if kind else None,
        span=Span(since=since),
        stores=only(store.id if store else None),
        states=only(form.text("state")),
        brands=only(form.text("brand")),
        categories=only(category),
        percent=None if percent is None else Decimal(percent),
        canonical_products=only(canonical),
    )
    return form, where, store
