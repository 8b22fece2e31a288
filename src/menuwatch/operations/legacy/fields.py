"""The columns of the former tables, by every name that they are known under, and their values as texts say them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from menuwatch.catalog.canon.bounds import MAX_ID_LENGTH, MAX_TOTAL, fits, shown
from menuwatch.core.errors import Refused

STORES, PRODUCTS, SNAPSHOTS = "dispensaries", "store_products", "store_product_snapshots"
TABLES = (STORES, PRODUCTS, SNAPSHOTS)

_WORDS = {
    "name": ("name_raw", "name", "product_name"),
    "brand": ("brand_name_raw", "brand_name", "brand"),
    "category": ("category", "category_raw"),
    "subcategory": ("subcategory", "subcategory_raw"),
    "strain": ("strain_type",),
    "option": ("option", "weight", "size"),
    "price_rec": ("price_rec", "price"),
    "price_rec_special": ("price_rec_special", "special_price"),
    "price_med": ("price_med",),
    "price_med_special": ("price_med_special",),
    "is_in_stock": ("is_in_stock", "in_stock"),
    "stock_status": ("stock_status",),
    "quantity": ("quantity", "stock_quantity"),
    "thc": ("thc_percent", "thc_percentage", "thc", "thc_lo"),
    "cbd": ("cbd_percent", "cbd_percentage", "cbd", "cbd_lo"),
    "image_url": ("image_url", "primary_image_url"),
    "description": ("description",),
}
_STORE = {"store": ("dispensary_id",), "platform_store": ("provider_dispensary_id", "platform_dispensary_id")}
_PROVIDER = {"provider": ("provider", "platform")}

COLUMNS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    STORES: {
        "id": ("id",),
        "platform": ("platform", "menu_provider", "menu_type"),
        "platform_id": ("platform_dispensary_id", "external_id"),
        "slug": ("slug", "cname"),
        "name": ("name", "dba_name"),
        "menu_url": ("menu_url",),
        "address": ("address", "address1"),
        "city": ("city",),
        "state": ("state", "state_code"),
        "country": ("country",),
        "zipcode": ("zipcode", "zip", "postal_code"),
        "latitude": ("latitude", "lat"),
        "longitude": ("longitude", "lng", "lon"),
        "timezone": ("timezone",),
        "phone": ("phone",),
        "is_recreational": ("is_recreational",),
        "is_medical": ("is_medical",),
        "crawl_enabled": ("crawl_enabled",),
    },
    PRODUCTS: {
        "id": ("id",),
        **_STORE,
        **_PROVIDER,
        "product": ("provider_product_id", "external_product_id"),
        "seen": ("last_seen_at", "updated_at"),
        **_WORDS,
    },
    SNAPSHOTS: {
        **_STORE,
        **_PROVIDER,
        "product": ("provider_product_id", "external_product_id"),
        "product_row": ("store_product_id", "product_id"),
        "at": ("crawled_at", "captured_at", "snapshot_at", "created_at"),
        "present": ("is_present_in_feed",),
        **_WORDS,
    },
}
"""What is read, and the columns that it may stand in: the first that a table has counts. Other columns are passed over."""

_NEEDED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    STORES: (("id",), ("platform_id", "slug", "menu_url")),
    PRODUCTS: (("store", "platform_store"), ("product",), ("name",)),
    SNAPSHOTS: (("store", "platform_store", "product_row"), ("product", "product_row"), ("at",)),
}
"""Of each group a table needs one."""

Record = Mapping[str, str | None]
"""A row of a former table: what is read, by our name for it."""


class Bad(Exception):
    """A row cannot be taken: (reason, the value)."""


def mapping(table: str, columns: Iterable[str]) -> dict[str, str]:
    """Our names and the columns of this table that they are read from. Raises Refused where a needed one is missing."""
    there = {column.strip().lower(): column for column in columns}
    found = {
        name: there[next(one for one in known if one in there)]
        for name, known in COLUMNS[table].items()
        if any(one in there for one in known)
    }
    for group in _NEEDED[table]:
        if not any(name in found for name in group):
            wanted = " or ".join(one for name in group for one in COLUMNS[table][name])
            raise Refused(f"{table}: there is no column {wanted}; the columns are {', '.join(there) or 'none'}")
    return found


def text(record: Record, name: str, most: int = 10_000) -> str | None:
    """The text without white space at its ends, None where there is none. Raises Bad for one that is too long."""
    value = (record.get(name) or "").replace("\0", "\ufffd").strip()
    if len(value) > most:
        raise Bad(f"{name} is too long", f"{len(value):,} characters")
    return value or None


def product_id(record: Record) -> str | None:
    """The platform's id of a product."""
    return text(record, "product", MAX_ID_LENGTH)


_MONEY = re.compile(r"(?:USD|US\$|CAD|C\$|\$)?\s*(-?[\d.,]+)\s*(?:USD|CAD|\$)?", re.IGNORECASE)
_GROUPED = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_HIGHEST = Decimal(1_000_000)


def money(record: Record, name: str) -> Decimal | None:
    """An amount, with or without the sign of its currency. Raises Bad for one that is no price: negative, or above a million."""
    value = text(record, name)
    if value is None:
        return None
    found = _MONEY.fullmatch(value)
    amount = number(found[1].replace(",", "") if _GROUPED.fullmatch(found[1]) else found[1]) if found else None
    if amount is None or not 0 <= amount <= _HIGHEST:
        raise Bad(f"{name} is no price", shown(value))
    return amount


def number(value: str | None) -> Decimal | None:
    """A decimal number within bounds; None where it is none."""
    try:
        found = Decimal(value or "")
    except InvalidOperation:
        return None
    return found if fits(found) else None


def percent(record: Record, name: str) -> Decimal | None:
    """A share of mass, "22.5" or "22.5%"; None for more than all, which is milligrams of something. Raises Bad for what is none."""
    value = text(record, name)
    if value is None:
        return None
    found = number(value.removesuffix("%").strip())
    if found is None or found < 0:
        raise Bad(f"{name} is no percentage", shown(value))
    return found if found <= 100 else None


def quantity(record: Record) -> int | None:
    """How many there are. Raises Bad for what is no count."""
    value = text(record, "quantity")
    if value is None:
        return None
    found = number(value)
    if found is None or not 0 <= found <= MAX_TOTAL:
        raise Bad("quantity is no count", shown(value))
    return int(found)


_YES, _NO = frozenset({"t", "true", "1", "yes", "y"}), frozenset({"f", "false", "0", "no", "n"})


def flag(record: Record, name: str) -> bool | None:
    """Yes or no. Raises Bad for another word."""
    value = text(record, name)
    if value is None:
        return None
    if value.lower() in _YES:
        return True
    if value.lower() in _NO:
        return False
    raise Bad(f"{name} is neither true nor false", shown(value))


_EPOCH = re.compile(r"\d{10}(?:\d{3})?")
_SHORT_ZONE = re.compile(r"([+-]\d{2})$")


def instant(record: Record, name: str) -> tuple[datetime, bool] | None:
    """A time, and whether it said its zone: without one it is UTC. Raises Bad for what is no time."""
    value = text(record, name)
    if value is None:
        return None
    try:
        if _EPOCH.fullmatch(value):
            return datetime.fromtimestamp(int(value) / (1000 if len(value) == 13 else 1), UTC), True
        found = datetime.fromisoformat(_SHORT_ZONE.sub(r"\1:00", value) if ":" in value else value)
        zoned = found.tzinfo is not None
        return (found.astimezone(UTC) if zoned else found.replace(tzinfo=UTC)), zoned
    except (ValueError, OverflowError) as error:
        raise Bad(f"{name} is no time", shown(value)) from error


_IN = frozenset({"in_stock", "instock", "available", "low_stock", "limited"})
_OUT = frozenset({"oos", "out_of_stock", "outofstock", "sold_out", "unavailable"})
_GONE = frozenset({"missing_from_feed", "missing", "removed", "discontinued"})


def stock(record: Record) -> str | None:
    """`in_stock`, `oos` or `unknown`; None where the row says that the product was not on the menu."""
    word = (text(record, "stock_status") or "").lower().replace(" ", "_").replace("-", "_")
    if word in _GONE or flag(record, "present") is False:
        return None
    if word in _OUT:
        return "oos"
    if word in _IN:
        return "in_stock"
    there = flag(record, "is_in_stock")
    return "unknown" if there is None else "in_stock" if there else "oos"
