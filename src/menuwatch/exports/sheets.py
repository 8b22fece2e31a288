"""What can be exported: the columns of each sheet, with the kind of their values. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The kind of a column's values, whatever the format."""

    WHOLE = "whole"
    TEXT = "text"
    FLAG = "flag"
    NUMBER = "number"
    """Exact decimal; in Parquet DECIMAL(18, 6): the catalogue takes no number of 10^9 or more, and none below a millionth."""
    TIME = "time"
    """An instant, in UTC."""
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a sheet."""

    name: str
    kind: Kind


class What(StrEnum):
    """What can be exported."""

    PRODUCTS = "products"
    SNAPSHOTS = "snapshots"
    STATES = "states"
    CHANGES = "changes"


class Format(StrEnum):
    """How it is written."""

    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"


MEDIA_TYPES = {
    Format.PARQUET: "application/vnd.apache.parquet",
    Format.CSV: "text/csv; charset=utf-8",
    Format.JSONL: "application/jsonl",
}


def _columns(kind: Kind, names: str) -> tuple[Column, ...]:
    return tuple(Column(name, kind) for name in names.split())


def _potency() -> Iterable[Column]:
    for kind in ("thc", "cbd"):
        yield from _columns(Kind.NUMBER, f"{kind}_lo {kind}_hi")
        yield Column(f"{kind}_unit", Kind.TEXT)


_STORE = (Column("dispensary_id", Kind.WHOLE), *_columns(Kind.TEXT, "store state provider provider_product_id"))
_PRICES = _columns(Kind.NUMBER, "price_rec price_rec_special price_med price_med_special")
_STOCK = (Column("stock_status", Kind.TEXT), Column("quantity", Kind.WHOLE), Column("quantity_capped", Kind.FLAG))
_NAMES = _columns(Kind.TEXT, "name brand_name category_canon")

SHEETS: dict[What, tuple[Column, ...]] = {
    What.PRODUCTS: (
        Column("product_id", Kind.WHOLE),
        *_STORE,
        *_columns(Kind.TEXT, "name name_raw brand_name brand_name_raw category subcategory strain_type"),
        *_columns(Kind.TEXT, "category_canon subcategory_canon strain_canon status_raw"),
        *_PRICES,
        Column("is_in_stock", Kind.FLAG),
        *_STOCK,
        *_potency(),
        *_columns(Kind.JSON, "variants cannabinoids specials"),
        *_columns(Kind.TEXT, "image_url local_image_path description"),
        Column("consecutive_misses", Kind.WHOLE),
        *_columns(Kind.TIME, "first_seen_at last_seen_at updated_at platform_created_at platform_updated_at"),
    ),
    What.SNAPSHOTS: (
        Column("crawled_at", Kind.TIME),
        Column("payload_id", Kind.WHOLE),
        Column("product_id", Kind.WHOLE),
        *_STORE,
        *_NAMES,
        *_PRICES,
        Column("is_in_stock", Kind.FLAG),
        *_STOCK,
        *_potency(),
        *_columns(Kind.JSON, "prices stock"),
        Column("state_since", Kind.TIME),
    ),
    What.STATES: (
        *_columns(Kind.TIME, "seen_from seen_to"),
        Column("present", Kind.FLAG),
        Column("product_id", Kind.WHOLE),
        *_STORE,
        *_NAMES,
        *_PRICES,
        *_STOCK,
        *_potency(),
        *_columns(Kind.JSON, "prices stock"),
    ),
    What.CHANGES: (
        Column("changed_at", Kind.TIME),
        Column("product_id", Kind.WHOLE),
        *_STORE,
        *_NAMES,
        *_columns(Kind.FLAG, "price_changed stock_changed present"),
        *(
            Column(f"{column.name}_{when}", column.kind)
            for column in (*_PRICES, _STOCK[0], _STOCK[1])
            for when in ("before", "after")
        ),
        *_columns(Kind.JSON, "prices_before prices_after stock_before stock_after"),
    ),
}

PACKED: tuple[Column, ...] = (
    Column("product_id", Kind.WHOLE),
    *_columns(Kind.TIME, "seen_from seen_to ended_at"),
    Column("present", Kind.FLAG),
    Column("quantity_capped", Kind.FLAG),
    Column("quantity", Kind.WHOLE),
    Column("stock_status", Kind.TEXT),
    *_PRICES,
    *_potency(),
    *_columns(Kind.JSON, "prices stock"),
    Column("dispensary_id", Kind.WHOLE),
    *_columns(Kind.TEXT, "provider provider_product_id"),
)
"""The columns of a file of packed states (`packs`)."""
