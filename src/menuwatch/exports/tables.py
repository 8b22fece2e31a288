"""Tables that can be exported: their columns, with the kind of the values. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct


class Kind(StrEnum):
    """The kind of a column's values, whatever the format."""

    WHOLE = "whole"
    TEXT = "text"
    FLAG = "flag"
    NUMBER = "number"
    """Exact decimal; in Parquet DECIMAL(18, 6): the catalog takes no number of 10^9 or more, and none below a millionth."""
    REAL = "real"
    """Floating-point number (double precision)."""
    TIME = "time"
    """An instant, in UTC."""
    DATE = "date"
    """A day, without a time zone."""
    JSON = "json"


class Column(Struct, frozen=True):
    """One column."""

    name: str
    kind: Kind


class ExportTable(StrEnum):
    """Tables that can be exported."""

    PRODUCTS = "products"
    OFFERS = "offers"
    STORES = "stores"
    SNAPSHOTS = "snapshots"
    STATES = "states"
    CHANGES = "changes"
    DETAILS = "details"
    CANONICAL_PRODUCTS = "canonical-products"
    BRANDS = "brands"
    LOCATIONS = "locations"
    PRODUCT_MATCHES = "product-matches"
    MATCH_EVENTS = "match-events"


MATCHING = (
    ExportTable.CANONICAL_PRODUCTS, ExportTable.BRANDS, ExportTable.LOCATIONS, ExportTable.PRODUCT_MATCHES, ExportTable.MATCH_EVENTS,
)  # fmt: skip
"""Tables that are about no single store: filters by store leave what those stores have of it."""


class Format(StrEnum):
    """File formats."""

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
_DETAILS = (
    *_columns(Kind.JSON, "cannabinoids terpenes"),
    *_columns(Kind.TEXT, "batch_id package_tag"),
    *_columns(Kind.DATE, "tested_on packaged_on expires_on"),
    Column("certificate_url", Kind.TEXT),
    Column("quantity_sold", Kind.WHOLE),
)
_NAMES = _columns(Kind.TEXT, "name brand_name category_canon")
_IDS = _columns(Kind.WHOLE, "canonical_product_id brand_id location_id")

TABLES: dict[ExportTable, tuple[Column, ...]] = {
    ExportTable.PRODUCTS: (
        Column("product_id", Kind.WHOLE),
        *_STORE,
        *_columns(Kind.TEXT, "name name_raw brand_name brand_name_raw category subcategory strain_type"),
        *_columns(Kind.TEXT, "category_canon subcategory_canon strain_canon status_raw"),
        *_PRICES,
        Column("is_in_stock", Kind.FLAG),
        *_STOCK,
        *_potency(),
        Column("variants", Kind.JSON),
        *_DETAILS,
        Column("specials", Kind.JSON),
        *_columns(Kind.TEXT, "image_url local_image_path description"),
        Column("consecutive_misses", Kind.WHOLE),
        *_columns(Kind.TIME, "first_seen_at last_seen_at updated_at platform_created_at platform_updated_at"),
        *_IDS,
    ),
    ExportTable.OFFERS: (
        *_columns(Kind.WHOLE, "product_id position"),
        *_STORE,
        *_NAMES,
        *_columns(Kind.TEXT, "subcategory_canon strain_canon option"),
        *_columns(Kind.NUMBER, "weight_g content_mg"),
        Column("pieces", Kind.WHOLE),
        Column("currency", Kind.TEXT),
        Column("price", Kind.NUMBER),
        *_PRICES,
        Column("price_per_g", Kind.NUMBER),
        *_STOCK,
        *_columns(Kind.TIME, "last_seen_at updated_at"),
        *_IDS,
    ),
    ExportTable.STORES: (
        Column("dispensary_id", Kind.WHOLE),
        *_columns(Kind.TEXT, "platform platform_dispensary_id slug name menu_url address city state country zipcode"),
        *_columns(Kind.NUMBER, "latitude longitude"),
        *_columns(Kind.TEXT, "timezone currency phone"),
        *_columns(Kind.FLAG, "is_recreational is_medical"),
        Column("location_id", Kind.WHOLE),
        Column("crawl_enabled", Kind.FLAG),
        Column("crawl_interval_hours", Kind.NUMBER),
        *_columns(Kind.TIME, "first_crawled_at last_crawled_at"),
        Column("product_count", Kind.WHOLE),
    ),
    ExportTable.SNAPSHOTS: (
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
        *_IDS,
    ),
    ExportTable.STATES: (
        *_columns(Kind.TIME, "seen_from seen_to"),
        Column("present", Kind.FLAG),
        Column("product_id", Kind.WHOLE),
        *_STORE,
        *_NAMES,
        *_PRICES,
        *_STOCK,
        *_potency(),
        *_columns(Kind.JSON, "prices stock"),
        *_IDS,
    ),
    ExportTable.CHANGES: (
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
        *_IDS,
    ),
    ExportTable.DETAILS: (
        *_columns(Kind.TIME, "seen_from ended_at"),
        Column("product_id", Kind.WHOLE),
        *_STORE,
        *_NAMES,
        *_DETAILS,
        *_IDS,
    ),
    ExportTable.CANONICAL_PRODUCTS: (
        *_columns(Kind.WHOLE, "canonical_product_id brand_id"),
        *_columns(Kind.TEXT, "name category form strain"),
        *_columns(Kind.WHOLE, "listings stores merged_into"),
        *_columns(Kind.TIME, "created_at changed_at"),
    ),
    ExportTable.BRANDS: (
        Column("brand_id", Kind.WHOLE),
        *_columns(Kind.TEXT, "slug name"),
        Column("merged_into", Kind.WHOLE),
        Column("created_at", Kind.TIME),
    ),
    ExportTable.LOCATIONS: (
        Column("location_id", Kind.WHOLE),
        *_columns(Kind.TEXT, "name chain address city state zipcode"),
        *_columns(Kind.NUMBER, "latitude longitude"),
        Column("phone", Kind.TEXT),
        Column("merged_into", Kind.WHOLE),
        *_columns(Kind.TIME, "created_at changed_at"),
    ),
    ExportTable.PRODUCT_MATCHES: (
        *_columns(Kind.WHOLE, "product_id dispensary_id canonical_product_id brand_id location_id"),
        Column("confidence", Kind.NUMBER),
        *_columns(Kind.JSON, "reasons sizes"),
        Column("matched_at", Kind.TIME),
    ),
    ExportTable.MATCH_EVENTS: (
        Column("id", Kind.WHOLE),
        Column("at", Kind.TIME),
        Column("kind", Kind.TEXT),
        Column("from_canonical_product_id", Kind.WHOLE),
        Column("from_name", Kind.TEXT),
        Column("canonical_product_id", Kind.WHOLE),
        Column("name", Kind.TEXT),
        Column("listings", Kind.WHOLE),
        Column("cause", Kind.TEXT),
    ),
}

TASK_COLUMNS: tuple[Column, ...] = (
    Column("id", Kind.WHOLE),
    *_columns(Kind.TEXT, "role status platform"),
    *_columns(Kind.WHOLE, "dispensary_id priority attempt retry_count max_retries"),
    *_columns(Kind.TIME, "created_at scheduled_for claimed_at started_at completed_at"),
    *_columns(Kind.TEXT, "worker_id error_message"),
    *_columns(Kind.JSON, "payload result"),
)
"""The columns of a list of tasks."""
AUDIT_COLUMNS: tuple[Column, ...] = (
    Column("id", Kind.WHOLE),
    Column("at", Kind.TIME),
    *_columns(Kind.TEXT, "actor actor_kind via action subject_kind subject_id"),
    Column("details", Kind.JSON),
    Column("request_id", Kind.TEXT),
)
"""The columns of the audit log."""
DIFF_COLUMNS: tuple[Column, ...] = (
    *_columns(Kind.TEXT, "change provider_product_id name field before after"),
    Column("percent", Kind.NUMBER),
)
"""The columns of a comparison of two payloads. `percent`: change of a price, null for all else."""
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
