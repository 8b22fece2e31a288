"""Exports: whole tables by day, and the lists of other screens with their filters."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import Refused
from menuwatch.dashboard import screen
from menuwatch.dashboard.known_parameters import reads
from menuwatch.db.pool import Connection
from menuwatch.exports.tables import ExportTable, Format
from menuwatch.geo.states import CODES
from menuwatch.ops.export import ExportRequest, RowExport
from menuwatch.stores import service as store_service
from menuwatch.stores import store as stores
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppContext, AppDep, ReadConn
from menuwatch.web.downloads import ExportsBusy, download
from menuwatch.web.forms import FormInput

router = APIRouter(prefix="/exports", dependencies=[require(Permission.EXPORT)])

TABLES = {
    ExportTable.CHANGES: ("Changes", "Price and stock changes, with the values before and after"),
    ExportTable.SNAPSHOTS: ("Snapshots", "One row per product and crawl"),
    ExportTable.STATES: ("States", "One row per state of a product, with its first and last crawl"),
    ExportTable.DETAILS: ("Details", "One row per batch, lab result and sold count of a product"),
    ExportTable.PRODUCTS: ("Products", "Current products; with days, only those updated on them"),
    ExportTable.OFFERS: ("Offers", "One row per size or package of each product on a menu; with days, as for products"),
    ExportTable.STORES: ("Stores", "Stores with position and currency; with days, only those last crawled on them"),
    ExportTable.CANONICAL_PRODUCTS: (
        "Canonical products",
        "The same item across all stores and sizes, including merged ones",
    ),
    ExportTable.BRANDS: ("Brands", "Brands of canonical products, including merged ones"),
    ExportTable.LOCATIONS: ("Locations", "Shops across platforms and licences, including merged ones"),
    ExportTable.PRODUCT_MATCHES: (
        "Product matches",
        "The canonical product of each product, with confidence and reasons",
    ),
    ExportTable.MATCH_EVENTS: (
        "Merged and split products",
        "Canonical products that were merged or split, with both names",
    ),
}
_FILTERS = ("since", "until", "store", "state")
FORMATS = {Format.CSV: "CSV", Format.PARQUET: "Parquet", Format.JSONL: "JSON lines"}


@router.get("", dependencies=[reads(*_FILTERS)])
async def show(request: Request, conn: ReadConn) -> Response:
    """The tables, with a picker of days, stores and states."""
    form = _form(request)
    await _selection(conn, form, ExportTable.CHANGES, Format.CSV)
    _, states = await store_service.platforms_and_states(conn)
    today = datetime.now(UTC).date()
    context = {
        "form": form,
        "tables": TABLES,
        "formats": FORMATS,
        "states": [(one, one) for one in states],
        "days": [
            ("Today", today),
            ("Yesterday", today - timedelta(days=1)),
            ("Last 7 days", today - timedelta(days=6)),
        ],
        "today": today,
    }
    return screen.render(request, "exports.html", context)


@router.get("/{what}", dependencies=[reads(*_FILTERS, "format")])
async def download_table(request: Request, system: AppDep, what: ExportTable) -> Response:
    """One table as a file."""
    form = _form(request)
    fmt = parse_format(request)
    async with system.pool.connection(timeout=10) as conn:
        selection = await _selection(conn, form, what, fmt)
    screen.refuse_invalid(form)
    parts = [form.value("state"), form.value("since"), form.value("until")]
    named = "_".join(dict.fromkeys(part for part in parts if part)) or _now()
    return await _send(request, system, selection, f"menuwatch-{what}-{re.sub(r'[^A-Za-z0-9_-]', '', named)}")


def _form(request: Request) -> FormInput:
    return FormInput({name: request.query_params.get(name, "").replace("\x00", "")[:200].strip() for name in _FILTERS})


async def _selection(conn: Connection, form: FormInput, what: ExportTable, fmt: Format) -> ExportRequest:
    since, until = form.parse_date("since"), form.parse_date("until")
    if since is not None and until is not None and until < since:
        form.add_error("until", "the last day is before the first day")
    store = None
    if (text := form.text("store")) is not None:
        try:
            store = await stores.resolve(conn, text)
        except Refused as error:
            form.add_error("store", str(error))
    _, states = await store_service.platforms_and_states(conn)
    state = form.parse_choice("state", sorted({*states, *CODES}))
    return ExportRequest(
        what=what,
        fmt=fmt,
        since=_midnight(since),
        until=_midnight(until + timedelta(days=1)) if until else None,
        stores=[store.id] if store else None,
        states=[state] if state else None,
    )


def _midnight(day: date | None) -> datetime | None:
    return None if day is None else datetime(day.year, day.month, day.day, tzinfo=UTC)


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H%MZ}"


def parse_format(request: Request) -> Format:
    """The format of a download; raises Refused."""
    try:
        return Format(request.query_params.get("format") or Format.CSV)
    except ValueError:
        raise Refused(f"unknown format: use one of {', '.join(Format)}") from None


async def export_list(
    request: Request, system: AppContext, name: str, rows: Callable[[Connection, Format], Awaitable[RowExport]]
) -> Response:
    """A list of another screen as a file. `rows` reads the filters of the request."""
    fmt = parse_format(request)
    async with system.pool.connection(timeout=10) as conn:
        selection = await rows(conn, fmt)
    return await _send(request, system, selection, f"menuwatch-{name}-{_now()}")


async def _send(request: Request, system: AppContext, selection: ExportRequest | RowExport, name: str) -> Response:
    try:
        return await download(request, system, selection, name)
    except ExportsBusy as error:
        raise HTTPException(503, str(error)) from error
