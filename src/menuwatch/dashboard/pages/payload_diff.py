"""The differences of two payloads: by default of one and the good one before it, or of any two of any stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.archive import diff as archive_diff
from menuwatch.archive import service as payloads
from menuwatch.archive.diff import Compared
from menuwatch.catalog.diff import Item
from menuwatch.dashboard import screen
from menuwatch.dashboard.known_parameters import reads
from menuwatch.dashboard.pages.exports import parse_format
from menuwatch.dashboard.pages.payloads import PayloadPath
from menuwatch.exports.encoders import encode_rows
from menuwatch.exports.tables import DIFF_COLUMNS, MEDIA_TYPES
from menuwatch.geo.units import currency
from menuwatch.stores import store as stores
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppContext, AppDep

router = APIRouter(prefix="/payloads/{payload_id}/diff", dependencies=[require(Permission.READ)])

Other = Annotated[int | None, Query(alias="with", ge=1, le=2**63 - 1)]


async def _compare(system: AppContext, payload_id: int, other: int | None, *, swap: bool) -> Compared:
    """The payload compared with the other one, or with the ok one before it; the older one first, unless swapped."""
    async with system.pool.connection(timeout=10) as conn:
        payload = await payloads.get_payload(conn, payload_id)
        if other is None:
            pair = await payloads.choose_pair(conn, payload.dispensary_id, None, payload_id)
        else:
            pair = (await payloads.get_payload(conn, other), payload)
    first, second = sorted(pair, key=lambda each: (each.fetched_at, each.id), reverse=swap)
    # Normalizing takes a while: no connection is held meanwhile.
    return await archive_diff.compare(system.archive, system.platforms, first, second)


@router.get("")
async def show_diff(
    request: Request,
    system: AppDep,
    payload_id: PayloadPath,
    other: Other = None,
    swap: bool = False,
    q: Annotated[str, Query(max_length=200)] = "",
    only: Annotated[str, Query(max_length=10)] = "",
) -> Response:
    """Compares it with another payload. `q` is text in the names of products; `only=prices` leaves out all but prices."""
    whole = await _compare(system, payload_id, other, swap=swap)
    found = _with_name(whole, q.strip().casefold())
    payload, beside = (whole.older, whole.newer) if whole.older.id == payload_id else (whole.newer, whole.older)
    async with system.pool.connection(timeout=10) as conn:
        known = await payloads.catalog_ids(conn, payload, product_ids(found))
        before, after = await payloads.list_comparable(conn, payload_id)
        store = await stores.get(conn, payload.dispensary_id)
        other_store = await stores.get(conn, beside.dispensary_id)
        crawl = (await payloads.get_usage(conn, whole.newer))["crawl"]
    kinds = (found.diff.added, found.diff.removed, found.diff.price_changes, found.diff.stock_changes)
    context = {
        "payload": payload,
        "store": store,
        "currency": currency(None if store is None else store.state),
        "other_store": other_store if beside.dispensary_id != payload.dispensary_id else None,
        "older": whole.older,
        "newer": whole.newer,
        "crawl": crawl,
        "before": before,
        "after": after,
        "beside": beside,
        "swap": swap,
        "q": q,
        "only": only if only == "prices" else "",
        "known": known,
        "diff": found.diff,
        "whole": whole.diff,
        "prices": price_rows(found),
        "stocks": stock_rows(found),
        "unreadable": found.unreadable,
        "large": is_large(whole),
        "most": MOST,
        "nothing": not any(kinds) and not found.unreadable,
    }
    return screen.render(request, "payloads/diff.html", context)


@router.get("/export", dependencies=[require(Permission.EXPORT), reads("format")])
async def export_diff(
    request: Request,
    system: AppDep,
    payload_id: PayloadPath,
    other: Other = None,
    swap: bool = False,
    q: Annotated[str, Query(max_length=200)] = "",
    only: Annotated[str, Query(max_length=10)] = "",
) -> Response:
    """The comparison as a file, all rows of it."""
    fmt = parse_format(request)
    found = _with_name(await _compare(system, payload_id, other, swap=swap), q.strip().casefold())
    rows = [row for row in _export_rows(found) if only != "prices" or row["change"] == "price"]
    name = f"menuwatch-diff-{found.older.id}-{found.newer.id}.{fmt}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-store"}
    return Response(encode_rows(fmt, DIFF_COLUMNS, rows), media_type=MEDIA_TYPES[fmt], headers=headers)


def _with_name(found: Compared, text: str) -> Compared:
    """Only products whose name or brand contains the text, in any case."""
    if not text:
        return found

    def fits(one: Any) -> bool:
        return text in f"{one.name or ''} {getattr(one, 'brand_name', None) or ''}".casefold()

    names = ("added", "removed", "price_changes", "stock_changes")
    kept = msgspec.structs.replace(
        found.diff, **{name: tuple(filter(fits, getattr(found.diff, name))) for name in names}
    )
    return Compared(older=found.older, newer=found.newer, diff=kept, unreadable=tuple(filter(fits, found.unreadable)))


def _export_rows(found: Compared) -> Iterator[dict[str, Any]]:
    def row(change: str, one: Any, shown: Field) -> dict[str, Any]:
        texts = {
            name: None if value is None else str(value)
            for name, value in (("before", shown.before), ("after", shown.after))
        }
        return {
            "change": change,
            "provider_product_id": one.provider_product_id,
            "name": one.name,
            "field": shown.name,
            **texts,
            "percent": shown.percent,
        }

    def price(item: Item) -> str | None:
        return None if item.price_rec is None else str(item.price_rec)

    for item in found.diff.added:
        yield row("added", item, Field("recreational", None, price(item)))
    for item in found.diff.removed:
        yield row("removed", item, Field("recreational", price(item), None))
    for one in found.diff.price_changes:
        for shown in _price_fields(one.before, one.after):
            yield row("price", one, shown)
    for one in found.diff.stock_changes:
        for shown in _stock_fields(one.before, one.after):
            yield row("stock", one, shown)


MOST = 200
"""Rows of each kind that are shown."""
LARGE_SHARE = 0.3
"""Share of a menu's products; if more than this appeared or vanished, the page shows a warning."""
_PRICES = ("recreational", "recreational special", "medical", "medical special")


@dataclass(frozen=True, slots=True)
class Field:
    """One field of one product: its name, old and new value (None: absent)."""

    name: str
    before: Any
    after: Any
    money: bool = False

    @property
    def percent(self) -> Decimal | None:
        """Change of a price in percent of the one before; None for all else."""
        if not self.money or not self.before or self.after is None:
            return None
        return round(Decimal((self.after - self.before) / self.before * 100), 1)


@dataclass(frozen=True, slots=True)
class Row:
    """One product that changed."""

    provider_product_id: str
    name: str
    fields: Sequence[Field] = field(default_factory=list)


def price_rows(found: Compared) -> list[Row]:
    """The products whose prices differ, with the fields that do."""
    return [
        Row(one.provider_product_id, one.name, _without_repeats(_price_fields(one.before, one.after)))
        for one in found.diff.price_changes[:MOST]
    ]


def stock_rows(found: Compared) -> list[Row]:
    """The products whose stock differs, with the fields that do."""
    return [
        Row(one.provider_product_id, one.name, list(_stock_fields(one.before, one.after)))
        for one in found.diff.stock_changes[:MOST]
    ]


def _price_fields(before: Any, after: Any) -> Iterator[Field]:
    old, new = _by_option(before), _by_option(after)
    for option in [*old, *(name for name in new if name not in old)]:
        was, now = old.get(option), new.get(option)
        for place, name in enumerate(_PRICES):
            left, right = was[place] if was else None, now[place] if now else None
            if left != right:
                yield Field(_label(option, name), left, right, money=True)
        if was is None or now is None:
            yield Field(f"option {option}", "listed" if was else None, "listed" if now else None)


def _stock_fields(before: Any, after: Any) -> Iterator[Field]:
    if before[0] != after[0]:
        yield Field("status", _words(before[0]), _words(after[0]))
    old, new = _by_option(before[1]), _by_option(after[1])
    for option in [*old, *(name for name in new if name not in old)]:
        was, now = old.get(option, (None, None, False)), new.get(option, (None, None, False))
        if was[0] != now[0] and (len(old) > 1 or len(new) > 1):
            yield Field(_label(option, "status"), _words(was[0]), _words(now[0]))
        if was[1:] != now[1:]:
            yield Field(_label(option, "left"), _left(was), _left(now))


def _label(option: str, name: str) -> str:
    """Option and name of a value; the platforms call the option of products without sizes N/A."""
    return name if option == "N/A" else f"{option}, {name}"


def _without_repeats(fields: Iterator[Field]) -> list[Field]:
    """Equal changes of recreational and medical prices as one."""
    found: dict[tuple[Any, ...], Field] = {}
    for one in fields:
        key = (one.name.replace("medical", "recreational"), one.before, one.after)
        known = found.get(key)
        found[key] = one if known is None else replace(known, name=known.name.replace("recreational", "rec. and med."))
    return list(found.values())


def _by_option(options: Sequence[Sequence[Any]]) -> Mapping[str, tuple[Any, ...]]:
    return {one[0]: tuple(one[1:]) for one in options}


def _words(status: str | None) -> str | None:
    return None if status is None else {"in_stock": "in stock", "oos": "out of stock"}.get(status, "unknown")


def _left(option: Sequence[Any]) -> str | None:
    return None if option[1] is None else f"{option[1]:,}{'+' if option[2] else ''}"


def product_ids(found: Compared) -> set[str]:
    """The platform's ids of the products shown."""
    diff = found.diff
    kinds = (diff.added, diff.removed, diff.price_changes, diff.stock_changes)
    shown = {one.provider_product_id for kind in kinds for one in kind[:MOST]}
    return shown | {one.provider_product_id for one in found.unreadable[:MOST] if one.provider_product_id}


def is_large(found: Compared) -> bool:
    """Whether so much appeared or vanished that it may be another store's menu, or half of one."""
    size = max(found.older.product_count, found.newer.product_count, 1)
    return (len(found.diff.added) + len(found.diff.removed)) / size > LARGE_SHARE
