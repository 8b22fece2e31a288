"""Answers: a page of a menu, the records of stores, and the errors of answers that are neither.

`data.filteredProducts.{products[], queryInfo{totalCount, totalPages}}`; recordings also have their items in other envelopes
(`ENVELOPES`). GraphQL errors are a BadPayload, as is anything `platforms.envelope` reports for an answer that is not JSON.

Of a store's record, coordinates are [longitude, latitude]; names may end with spaces ("4K Cannabis "); ids are 24 hexadecimal
digits or 17 letters and digits, so they are opaque. A name may change while the slug (`cName`) stays.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from menuwatch.catalog.taxonomy.text import clean
from menuwatch.core import strict_json as strict
from menuwatch.core.errors import BadPayload
from menuwatch.platforms.dutchie.normalize import ITEMS
from menuwatch.platforms.dutchie.payload import ITEMS_PATH, Ids
from menuwatch.platforms.envelope import (
    Envelope,
    check_count,
    check_list,
    decode,
    excerpt,
    missing,
    parse_count,
    read_wrapped,
    short_value,
    with_status,
)
from menuwatch.platforms.model import FoundStore, Page, PageInfo
from menuwatch.platforms.store_records import StoreRecord, iana_timezone, read_record, valid_coordinates

_NOT_PERSISTED = re.compile(r"persisted[\s_-]*query[\s_-]*(?:not[\s_-]*(?:found|supported)|is not|hash)", re.IGNORECASE)
_LONGEST_ERRORS = 100_000


class _Known(msgspec.Struct):
    """What every item of a menu has, whatever its envelope."""

    Name: Any
    Options: Any


ENVELOPES = (
    Envelope(
        items=ITEMS_PATH,
        total="data.filteredProducts.queryInfo.totalCount",
        pages="data.filteredProducts.queryInfo.totalPages",
    ),
    Envelope(items="data.getPersonalizedProducts.products"),  # a shop's front rows: never the whole menu
    Envelope(items="filteredProducts.products", known=_Known, total="filteredProducts.queryInfo.totalCount"),
    Envelope(items="data.products", known=_Known),
    Envelope(items="products", known=_Known),
    Envelope(items="", known=_Known),
)
"""Every envelope whose items are known, the most specific first."""
_OF_ANOTHER = frozenset({"schema", "no_data"})


class _QueryInfo(msgspec.Struct, gc=False):
    totalCount: msgspec.Raw = msgspec.Raw()  # noqa: N815 - the wire's name
    totalPages: msgspec.Raw = msgspec.Raw()  # noqa: N815


class _FilteredProducts(msgspec.Struct):
    products: list[msgspec.Raw] | None = None
    queryInfo: _QueryInfo | None = None  # noqa: N815


class _Data(msgspec.Struct):
    filteredProducts: _FilteredProducts | None = None  # noqa: N815
    filteredDispensaries: list[msgspec.Raw] | None = None  # noqa: N815


class _Answer(msgspec.Struct):
    data: _Data | None = None
    errors: msgspec.Raw = msgspec.Raw()


_decoder = msgspec.json.Decoder(_Answer)


class _Products(msgspec.Struct):
    products: list[Ids]
    queryInfo: _QueryInfo | None = None  # noqa: N815


class _Menu(msgspec.Struct):
    filteredProducts: _Products  # noqa: N815


class _Plain(msgspec.Struct):
    """An answer without anything odd in it: nearly all are."""

    data: _Menu
    errors: msgspec.Raw = msgspec.Raw()


_plain = strict.Decoder(_Plain)


def inspect(body: bytes, status: int = 200) -> PageInfo:
    """Like `read`, without the items: one pass over a page without anomalies. Raises the same errors."""
    try:
        answer = _plain.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        answer = None
    if answer is None or _read_errors(answer.errors):
        return read(body, status).inspect(ITEMS.identity)
    menu = answer.data.filteredProducts
    check_count(len(menu.products), body)
    return PageInfo(tuple([item.product_id() for item in menu.products]), *_totals(menu.queryInfo), strict=True)


def read(body: bytes, status: int = 200) -> Page:
    """Parses a page, which may be empty. Raises BadPayload of kind html, truncated, errors, no_data, schema, limits
    or persisted_query; `status` (HTTP) is only used in the message.
    """
    try:
        return _read(body, status)
    except BadPayload as error:
        page = read_wrapped(body, ENVELOPES[1:], status) if error.kind in _OF_ANOTHER else None
        if page is None:
            raise
        return page


def _read(body: bytes, status: int) -> Page:
    """A page in the envelope of a menu, in one pass."""
    menu = _data(body, status).filteredProducts
    if menu is None or menu.products is None:
        raise missing("menu", "data.filteredProducts" if menu is None else ITEMS_PATH, status, body)
    check_count(len(menu.products), body)
    return Page(menu.products, *_totals(menu.queryInfo))


def _totals(info: _QueryInfo | None) -> tuple[int | None, int | None]:
    return (None, None) if info is None else (parse_count(info.totalCount), parse_count(info.totalPages))


def read_stores(body: bytes, status: int = 200) -> list[msgspec.Raw]:
    """The raw records of a ConsumerDispensaries answer, in order. Raises BadPayload as `read` does."""
    check_list(body)
    records = _data(body, status).filteredDispensaries
    if records is None:
        raise missing("stores", "data.filteredDispensaries", status, body)
    check_count(len(records), body)
    return records


def _data(body: bytes, status: int) -> _Data:
    answer = decode(body, _decoder, status)
    if errors := _read_errors(answer.errors):
        raise _errors(errors, body, status)
    if answer.data is None:
        raise BadPayload("no_data", with_status("the response has neither data nor errors", status), body)
    return answer.data


def _read_errors(raw: msgspec.Raw) -> Any:
    """The error messages of an answer, truncated if long."""
    size = memoryview(raw).nbytes
    return (
        short_value(raw, _LONGEST_ERRORS)
        if size <= _LONGEST_ERRORS
        else bytes(memoryview(raw)[:1000]).decode("utf-8", "replace")
    )


def _errors(errors: Any, body: bytes, status: int) -> BadPayload:
    listed = errors if isinstance(errors, list) else [errors]
    texts = [_message(entry) for entry in listed]
    more = f" (and {len(listed) - 1} more)" if len(listed) > 1 else ""
    if any(_NOT_PERSISTED.search(f"{text} {_code(entry)}") for text, entry in zip(texts, listed, strict=True)):
        return BadPayload("persisted_query", with_status(f"the persisted query is refused: {texts[0]}", status), body)
    return BadPayload("errors", with_status(f"GraphQL error: {texts[0]}{more}", status), body)


def _message(entry: Any) -> str:
    message = entry.get("message") if isinstance(entry, dict) else entry
    return excerpt((message if isinstance(message, str) else str(entry)).encode()) or "without a message"


def _code(entry: Any) -> str:
    extensions = entry.get("extensions") if isinstance(entry, dict) else None
    return str(extensions.get("code", "")) if isinstance(extensions, dict) else ""


KEPT = (
    "chain",
    "status",
    "email",
    "description",
    "location",
    "enabledOrderTypes",
    "pickupHours",
    "deliveryHours",
    "specialHours",
    "activeCategories",
    "taxConfig",
    "feeTiers",
    "menuUrl",
    "embeddedMenuUrl",
    "embedBackUrl",
    "customDomainSettings",
    "logoImage",
    "listImage",
    "updatedAt",
)
"""Fields of the record that are stored beside the columns: the useful ones, without tokens of the shop's other services."""

_OPEN = frozenset({"", "open", "active"})


def found_store(raw: msgspec.Raw, base_url: str) -> FoundStore:
    """Parses a store record. `problem` says why it cannot be crawled: no id, no slug, not open, not an object."""
    record = read_record(raw)
    if isinstance(record, FoundStore):
        return record
    store_id = record.text("id", "_id") or ""
    slug = record.text("cName") or store_id
    name = record.name(slug)
    latitude, longitude = _coordinates(record)
    return FoundStore(
        platform_dispensary_id=store_id,
        slug=slug,
        name_raw=name,
        name=clean(name),
        address=record.text("address", "location.ln1"),
        city=record.text("location.city"),
        state=record.text("location.state"),
        country=record.text("location.country"),
        zipcode=record.text("location.zipcode"),
        latitude=latitude,
        longitude=longitude,
        timezone=iana_timezone(record.text("timezone")),
        phone=record.text("phone"),
        is_recreational=record.flag("recDispensary"),
        is_medical=record.flag("medicalDispensary"),
        enterprise_id=record.text("retailer.enterpriseId"),
        menu_url=f"{base_url}/dispensary/{slug}" if slug else None,
        category_counts=_counts(record.value("productCategorySummary")),
        problem=_problem(record, store_id),
        raw=record.kept(KEPT),
    )


def _problem(record: StoreRecord, store_id: str) -> str | None:
    if not store_id:
        return "the record has no id"
    status = (record.text("status") or "").lower()
    return None if status in _OPEN else f"the store is not open: its status is {status!r}"


def _coordinates(record: StoreRecord) -> tuple[float | None, float | None]:
    pair = record.value("location.geometry.coordinates")
    return valid_coordinates(pair[1], pair[0]) if isinstance(pair, list) and len(pair) == 2 else (None, None)


def _counts(summary: Any) -> dict[str, int]:
    """The platform's product counts by category, for cross-checking a crawl."""
    return {
        entry["category"]: entry["value"]
        for entry in (summary if isinstance(summary, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get("category"), str) and type(entry.get("value")) is int
    }
