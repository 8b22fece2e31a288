"""Products: search, and price history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.catalog import changes, history
from menuwatch.catalog import service as products
from menuwatch.catalog.changes import ChangeFilter
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.catalog.history import MOST_STEPS, Gap, PriceSeries, PriceStep, price_series
from menuwatch.catalog.service import Order, ProductFilter, Span
from menuwatch.core.errors import Refused
from menuwatch.dashboard import screen, tables
from menuwatch.dashboard.charts.time_chart import Series, TimeChart
from menuwatch.dashboard.decode import decoded
from menuwatch.dashboard.known_parameters import reads
from menuwatch.dashboard.pages.exports import export_list
from menuwatch.dashboard.pages.views import saved
from menuwatch.db.pool import Connection
from menuwatch.exports.tables import Format
from menuwatch.matching import products as matched
from menuwatch.ops import export
from menuwatch.ops.export import RowExport
from menuwatch.stores import service as store_service
from menuwatch.stores import store as stores
from menuwatch.web import paging
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn
from menuwatch.web.forms import FormInput

router = APIRouter(dependencies=[require(Permission.READ)])

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
SORTS = (
    ("name", "Name"),
    ("price", "Price: low to high"),
    ("-price", "Price: high to low"),
    ("updated", "Recently changed"),
)
STOCK = {"in_stock": "In stock", "oos": "Out of stock", "unknown": "Unknown"}
DAYS = {"30": "30 days", "90": "90 days", "365": "A year", "all": "All"}
_FILTERS = reads(
    "q", "store", "state", "category", "strain", "stock", "special", "brand", "min", "max", "on", "canonical_product"
)
ProductPath = Annotated[int, Path(ge=1, le=2**63 - 1)]


def picture(path: str | None, width: int = _THUMB) -> str | None:
    """The path of a product's own picture, below the server's root."""
    return None if path is None else f"/img/{quote(path)}?w={width}"


@router.get("/products", dependencies=[_FILTERS])
async def list_products(
    request: Request, conn: ReadConn, cursor: Annotated[str, Query(max_length=4000)] = ""
) -> Response:
    """Products by filters, a page at a time, and how many there are of each kind."""
    form = FormInput({name: value.replace("\x00", "")[:300] for name, value in request.query_params.items()})
    where, store = await _where(conn, form)
    order = Order(form.parse_choice("sort", [str(one) for one in Order]) or Order.NAME)
    shown, counted, after = [], None, None
    if form.ok:
        page = await products.list_products(
            conn,
            where,
            order=order,
            after=screen.parse_cursor(request, cursor, _KEYS[order]),
            limit=tables.page_size(request),
        )
        shown = decoded(page.items)
        after = paging.encode(*page.next) if page.next else None
        counted = await products.count_facets(conn, where)
    _, states = await store_service.platforms_and_states(conn)
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
        "filtered": any(form.text(name) for name in _FILTERS.dependency.names),
        "picture": picture,
        "sort": tables.sorting(request, list(map(str, Order)), falling=[Order.UPDATED]),
        "page": tables.page_of(request, len(shown), after),
        **await saved(request, conn),
    }
    return screen.render(request, "products/list.html", context, live="products")


@router.get("/products/export", dependencies=[require(Permission.EXPORT), _FILTERS, reads("format")])
async def export_products(request: Request, system: AppDep) -> Response:
    """The list as a file, with the same filters."""

    async def rows(conn: Connection, fmt: Format) -> RowExport:
        form = FormInput({name: value.replace("\x00", "")[:300] for name, value in request.query_params.items()})
        where, _ = await _where(conn, form)
        screen.refuse_invalid(form)
        return export.products_of(await products.resolve(conn, where), fmt)

    return await export_list(request, system, "products", rows)


def _options(counted: Any, chosen: str | None, names: dict[str, str] | None = None) -> list[tuple[str, str, int]]:
    """(value, label, count); the selected value is included even with a count of zero."""
    found = [(value, (names or {}).get(value, value), n) for value, n in counted.items()]
    if chosen is not None and chosen not in counted:
        found.append((chosen, (names or {}).get(chosen, chosen), 0))
    return found


async def _where(conn: Connection, form: FormInput) -> tuple[ProductFilter, stores.Store | None]:
    store = None
    if (text := form.text("store")) is not None:
        try:
            store = await stores.resolve(conn, text)
        except Refused as error:
            form.add_error("store", str(error))
    canonical = form.parse_int("canonical_product", low=1, high=2**63 - 1)
    form.parse_choice("stock", STOCK)
    form.parse_choice("special", ("yes", "no"))
    form.parse_choice("on", ("menu", "gone"))
    low, high = (form.parse_decimal(name, "an amount such as 25 or 12.50", 0, 1_000_000) for name in ("min", "max"))
    if low is not None and high is not None and low > high:
        form.add_error("max", f"less than {low}: no product matches")

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
        canonical_products=None if canonical is None else [canonical],
    )
    return where, store


@router.get("/products/{product_id}")
async def one_product(
    request: Request,
    system: AppDep,
    conn: ReadConn,
    product_id: ProductPath,
    days: Annotated[str, Query(max_length=4)] = "90",
) -> Response:
    """One product: details, prices, and history."""
    now = datetime.now(UTC)
    days = days if days in DAYS else "90"
    span = Span(since=None if days == "all" else now - timedelta(days=int(days)))
    archived = ParquetPartitions(system.archive.storage)
    (product,) = decoded([await products.get_product(conn, product_id)])
    past = await history.get_history(conn, product_id, span, limit=MOST_STEPS, archived=archived)
    series = price_series(past)
    states = decoded(past.states)
    seen = decoded(await history.list_snapshots(conn, product_id, span, limit=_SHOWN, archived=archived))
    details = decoded(await history.list_details(conn, product_id, span, limit=_SHOWN))
    newest = await changes.list_changes(
        conn, ChangeFilter(stores=[product["dispensary_id"]], products=[product_id]), limit=_SHOWN
    )
    canonical_id = await matched.canonical_id_of(conn, product_id)
    canonical, elsewhere = None, []
    if canonical_id is not None:
        canonical = await matched.get_canonical_product(conn, canonical_id)
        elsewhere = decoded((await matched.list_listings(conn, canonical_id, but=product_id, limit=_SHOWN)).items)
    potency = potency_chart(states[::-1], now)
    context = {
        "product": product,
        "usual": product["price_rec"] if product["price_rec"] is not None else product["price_med"],
        "picture": picture(product["local_image_path"], _PICTURE),
        "days": days,
        "spans": DAYS,
        "chart": price_chart(series, now, product["currency"]),
        "potency": potency if potency is not None and len(states) > 1 else None,
        "history": _history_rows(series.steps, series.gaps)[:_IN_TABLE],
        "cut": series.cut,
        "details": details,
        "changes": decoded(newest.items),
        "seen": seen,
        "raw": _raw(product),
        "canonical": canonical,
        "elsewhere": elsewhere,
    }
    return screen.render(request, "products/one.html", context, live="products")


def _history_rows(steps: Any, gaps: Any) -> list[dict[str, Any]]:
    """The chart as rows, newest first: prices, and gaps in the data."""
    rows = [{"start": one.start, "end": one.end, "step": one, "gap": None} for one in steps]
    rows += [{"start": gap.from_, "end": gap.to, "step": None, "gap": gap.reason} for gap in gaps]
    # If a step and a gap begin at the same time, the gap came later.
    return sorted(rows, key=lambda row: (row["start"], row["step"] is None), reverse=True)


def _raw(product: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """(label, our value, the platform's value) of fields that exist in both."""
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
    system: AppDep,
    conn: ReadConn,
    store_id: Annotated[int, Path(ge=1, le=2**31 - 1)],
    at: Annotated[str, Query(max_length=40)] = "",
) -> Response:
    """A store's menu at a given time, from the newest crawl before it."""
    store = await store_service.get_store(conn, store_id)
    form = FormInput({"at": at})
    now = datetime.now(UTC)
    moment = form.parse_time("at") or now
    if moment > now + timedelta(minutes=1):
        form.add_error("at", "the time is in the future")
    archived = ParquetPartitions(system.archive.storage)
    past = await history.get_menu(conn, store_id, moment, archived=archived) if form.ok else None
    items = past.items if past else []
    context = {
        "store": store,
        "form": form,
        "moment": moment,
        "crawl": past if past and past.crawled_at else None,
        "items": items[:_ON_MENU],
        "total": len(items),
    }
    return screen.render(request, "products/menu.html", context)


_A_MOMENT = 1.0
"""Seconds after which a line is broken where a gap begins: its last point stands at the beginning."""


def price_chart(series: PriceSeries, now: datetime, currency: str = "USD") -> TimeChart:
    """The list price, the price paid, and that again while out of stock."""
    times, usual, costs, out = [], [], [], []
    for at, step in _points(series, now):
        times.append(datetime.fromtimestamp(at, UTC))
        shown = step if step is not None and step.listed else None
        usual.append(None if shown is None or shown.regular is None else float(shown.regular))
        costs.append(None if shown is None or shown.price is None else float(shown.price))
        out.append(costs[-1] if shown is not None and shown.in_stock is False else None)
    return TimeChart(
        "price",
        "Price over time",
        times,
        [
            Series("List price", usual, "none", steps=True, dash=True),
            Series("Price", costs, "info", steps=True),
            Series("Out of stock", out, "bad", steps=True, fill=True),
        ],
        unit="money",
        currency=currency,
        height=280,
        bands=[(1, 2)],
    )


def _points(series: PriceSeries, now: datetime) -> list[tuple[float, PriceStep | None]]:
    """(second, what was then): each from its time until the next one's."""
    if not series.steps:
        return []
    starts = {step.start for step in series.steps}
    edges = {gap.from_ for gap in series.gaps} | {gap.to for gap in series.gaps if gap.to is not None}
    first = series.steps[0].start
    found: list[tuple[float, PriceStep | None]] = []
    for moment in sorted(one for one in starts | edges | {now} if first <= one <= now):
        at = moment.timestamp()
        step, gap = _at(series.steps, moment), _in(series.gaps, moment)
        if gap is None or (gap.from_ == moment and moment < now):
            # What was until now lasts until now, also where nothing of it is drawn from here on.
            if found and found[-1][1] is not None and at - found[-1][0] > _A_MOMENT:
                found.append((at - _A_MOMENT, found[-1][1]))
            found.append((at, step))
        if gap is not None:
            # A gap begins where it was seen for the last time.
            found.append((at + _A_MOMENT if gap.from_ == moment else at, None))
    return found


def _at(steps: Sequence[PriceStep], at: datetime) -> PriceStep | None:
    last = None
    for step in steps:
        if step.start > at:
            break
        last = step
    return last


def _in(gaps: Sequence[Gap], at: datetime) -> Gap | None:
    return next((gap for gap in gaps if gap.from_ <= at and (gap.to is None or at < gap.to)), None)


def potency_chart(states: Sequence[dict[str, Any]], now: datetime) -> TimeChart | None:
    """THC and CBD of the states, oldest first; None if there is nothing to draw. Units other than percent are left out."""
    times = [state["from"] for state in states]
    percents = [[_percent(state[name]) if state["present"] else None for state in states] for name in ("thc", "cbd")]
    if all(value is None for values in percents for value in values):
        return None
    thc, cbd = ([*values, values[-1]] for values in percents)
    series = [Series("THC", thc, "good", steps=True), Series("CBD", cbd, "warn", steps=True)]
    return TimeChart("potency", "Potency over time", [*times, now], series, unit="percent")


def _percent(content: dict[str, Any] | None) -> float | None:
    if content is None or str(content.get("unit")).upper() not in ("PERCENTAGE", "PERCENT", "%"):
        return None
    found = content["hi"] if content.get("hi") is not None else content["lo"]
    return float(found) / 100
