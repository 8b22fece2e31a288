"""Products: what is on the menus, found by words and kind, and what one cost over time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import Refused
from menuwatch.dashboard import screen
from menuwatch.dashboard.price_chart import potency_chart, price_chart
from menuwatch.dashboard.reading import decoded
from menuwatch.dashboard.saved import saved
from menuwatch.db.pool import Connection
from menuwatch.exports.packs import Packs
from menuwatch.operations import changes, history, products, store_crawling
from menuwatch.operations import stores as store_operations
from menuwatch.operations.changes import ChangeFilter
from menuwatch.operations.price_series import STEPS, series_of
from menuwatch.operations.product_facets import facets
from menuwatch.operations.products import Order, ProductFilter, Span
from menuwatch.stores import store as stores
from menuwatch.web import paging
from menuwatch.web.auth import allowed
from menuwatch.web.forms import Form
from menuwatch.web.system import Reading, Sys

router = APIRouter(dependencies=[allowed(Permission.READ)])

_ON_PAGE = 50
_SHOWN = 10
_IN_TABLE = 200
_ON_MENU = 500
_THUMB, _PICTURE = 200, 400
"""Widths of pictures that need no signature (IMAGE_PRESETS)."""
_KEYS: dict[Order, Any] = {
    Order.NAME: tuple[str, int],
    Order.PRICE: tuple[Decimal, int],
    Order.PRICE_DESCENDING: tuple[Decimal, int],
    Order.UPDATED: tuple[datetime, int],
}
SORTS = (("name", "Name"), ("price", "Cheapest first"), ("-price", "Dearest first"), ("updated", "Changed lately"))
STOCK = {"in_stock": "In stock", "oos": "Out of stock", "unknown": "Not said"}
DAYS = {"30": "30 days", "90": "90 days", "365": "A year", "all": "All"}
ProductPath = Annotated[int, Path(ge=1, le=2**63 - 1)]


def picture(path: str | None, width: int = _THUMB) -> str | None:
    """The path of a product's own picture, below the server's root."""
    return None if path is None else f"/img/{quote(path)}?w={width}"


@router.get("/products")
async def list_products(
    request: Request, conn: Reading, cursor: Annotated[str, Query(max_length=4000)] = ""
) -> Response:
    """Products by filters, a page at a time, and how many there are of each kind."""
    form = Form({name: value.replace("\x00", "")[:300] for name, value in request.query_params.items()})
    where, store = await _where(conn, form)
    order = Order(form.one_of("sort", [str(one) for one in Order]) or Order.NAME)
    shown, counted, following = [], None, None
    if form.ok:
        found = await products.page(
            conn, where, order=order, after=screen.place(request, cursor, _KEYS[order]), limit=_ON_PAGE
        )
        shown = decoded(found.rows)
        following = paging.encode(*found.next) if found.next else None
        counted = await facets(conn, where)
    _, states = await store_crawling.platforms_and_states(conn)
    filters = ("q", "store", "state", "category", "strain", "stock", "special", "brand", "min", "max", "on")
    context = {
        "form": form,
        "products": shown,
        "facets": counted,
        "store": store,
        "states": [(one, one) for one in states],
        "categories": _options(counted.of("category") if counted else {}, form.text("category")),
        "strains": _options(counted.of("strain") if counted else {}, form.text("strain")),
        "stocks": _options(counted.of("stock") if counted else {}, form.text("stock"), STOCK),
        "sorts": SORTS,
        "filtered": any(form.text(name) for name in filters),
        "picture": picture,
        "next": following,
        "first": bool(cursor),
        "query": lambda **changed: screen.query(request, **changed),
        **await saved(request, conn, "/products"),
    }
    return screen.show(request, "products/list.html", context, live="products", status=200 if form.ok else 422)


def _options(counted: Any, chosen: str | None, names: dict[str, str] | None = None) -> list[tuple[str, str, int]]:
    """(value, name, count); what is chosen is there also where nothing has it."""
    found = [(value, (names or {}).get(value, value), n) for value, n in counted.items()]
    if chosen is not None and chosen not in counted:
        found.append((chosen, (names or {}).get(chosen, chosen), 0))
    return found


async def _where(conn: Connection, form: Form) -> tuple[ProductFilter, stores.Store | None]:
    store = None
    if (text := form.text("store")) is not None:
        try:
            store = await stores.find(conn, text)
        except Refused as error:
            form.refuse("store", str(error))
        if store is None:
            form.refuse("store", f"no store has the number or slug {text[:60]!r}")
    form.one_of("stock", STOCK)
    form.one_of("special", ("yes", "no"))
    form.one_of("on", ("menu", "gone"))
    low, high = _price(form, "min"), _price(form, "max")
    if low is not None and high is not None and low > high:
        form.refuse("max", f"less than {low}: nothing costs that")

    def only(name: str) -> list[str] | None:
        text = form.text(name)
        return None if text is None else [text]

    where = ProductFilter(
        stores=None if store is None else [store.id],
        states=only("state"),
        brands=only("brand"),
        categories_canon=only("category"),
        strains_canon=only("strain"),
        stock=only("stock"),
        special={"yes": True, "no": False}.get(form.value("special")),
        present={"menu": True, "gone": False}.get(form.value("on")),
        q=form.text("q"),
        price_min=low,
        price_max=high,
    )
    return where, store


def _price(form: Form, name: str) -> Decimal | None:
    text = form.text(name)
    if text is None:
        return None
    try:
        found = Decimal(text.lstrip("$"))
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite() or not 0 <= found <= 1_000_000:
        form.refuse(name, f"an amount as 25 or 12.50, not {text[:40]!r}")
        return None
    return found


@router.get("/products/{product_id}")
async def one_product(
    request: Request,
    system: Sys,
    conn: Reading,
    product_id: ProductPath,
    days: Annotated[str, Query(max_length=4)] = "90",
) -> Response:
    """One product: what it is and costs, and how that came about."""
    now = datetime.now(UTC)
    days = days if days in DAYS else "90"
    span = Span(since=None if days == "all" else now - timedelta(days=int(days)))
    packs = Packs(system.archive.root)
    (product,) = decoded([await products.one(conn, product_id)])
    found = await products.history(conn, product_id, span, limit=STEPS, packs=packs)
    series = series_of(found)
    states = decoded(found.states)
    seen = decoded(await products.snapshots(conn, product_id, span, limit=_SHOWN, packs=packs))
    newest = await changes.newest(
        conn, ChangeFilter(stores=[product["dispensary_id"]], products=[product_id]), limit=_SHOWN
    )
    potency = potency_chart(states[::-1], now)
    context = {
        "product": product,
        "usual": product["price_rec"] if product["price_rec"] is not None else product["price_med"],
        "picture": picture(product["local_image_path"], _PICTURE),
        "days": days,
        "spans": DAYS,
        "chart": price_chart(series, now),
        "potency": potency if potency is not None and len(states) > 1 else None,
        "told": _told(series.steps, series.gaps)[:_IN_TABLE],
        "cut": series.cut,
        "changes": decoded(newest.rows),
        "seen": seen,
        "raw": _raw(product),
        "query": lambda **changed: screen.query(request, **changed),
    }
    return screen.show(request, "products/one.html", context, live="products")


def _told(steps: Any, gaps: Any) -> list[dict[str, Any]]:
    """The chart as rows, newest first: what it cost, and the stretches of which nothing is known."""
    rows = [{"start": one.start, "end": one.end, "step": one, "gap": None} for one in steps]
    rows += [{"start": one.start, "end": one.end, "step": None, "gap": one.reason} for one in gaps]
    # Of what begins at the same time the gap came later: it is what followed.
    return sorted(rows, key=lambda row: (row["start"], row["step"] is None), reverse=True)


def _raw(product: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """(what, our word, the platform's word) of what is told in both."""
    return [
        ("Name", product["name"], product["name_raw"]),
        ("Brand", product["brand_name"], product["brand_name_raw"]),
        ("Category", product["category_canon"], product["category"]),
        ("Subcategory", product["subcategory_canon"], product["subcategory"]),
        ("Strain", product["strain_canon"], product["strain_type"]),
        ("Stock", STOCK.get(product["stock_status"]), product["status_raw"]),
    ]


@router.get("/stores/{store_id}/menu")
async def menu(
    request: Request,
    system: Sys,
    conn: Reading,
    store_id: Annotated[int, Path(ge=1, le=2**31 - 1)],
    at: Annotated[str, Query(max_length=40)] = "",
) -> Response:
    """What a store offered at a moment, as the newest crawl before it saw it."""
    store = await store_operations.one(conn, store_id)
    form = Form({"at": at})
    moment = _moment(form)
    found = await history.menu_at(conn, store_id, moment, packs=Packs(system.archive.root)) if form.ok else None
    items = decoded(found.items) if found else []
    context = {
        "store": store,
        "form": form,
        "moment": moment,
        "crawl": found.crawl if found else None,
        "items": items[:_ON_MENU],
        "total": len(items),
    }
    return screen.show(request, "products/menu.html", context, status=200 if form.ok else 422)


def _moment(form: Form) -> datetime:
    text = form.text("at")
    now = datetime.now(UTC)
    if text is None:
        return now
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        form.refuse("at", f"a time as 2026-11-21T18:00, not {text[:40]!r}")
        return now
    found = found if found.tzinfo else found.replace(tzinfo=UTC)
    if found > now + timedelta(minutes=1):
        form.refuse("at", "that is still to come")
    return found
