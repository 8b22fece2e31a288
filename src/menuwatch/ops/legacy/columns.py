"""The former tables and the columns that are read from them, by every name that they are known under. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from menuwatch.core.errors import Refused

STORES, PRODUCTS, SNAPSHOTS = "dispensaries", "store_products", "store_product_snapshots"
PROXIES, SCHEDULES, PAYLOADS = "proxies", "task_schedules", "raw_crawl_payloads"
TABLES = (STORES, PRODUCTS, SNAPSHOTS, PROXIES, SCHEDULES, PAYLOADS)

_VALUES = {
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
        "local_image": ("local_image_path",),
        **_VALUES,
    },
    SNAPSHOTS: {
        **_STORE,
        **_PROVIDER,
        "product": ("provider_product_id", "external_product_id"),
        "product_row": ("store_product_id", "product_id"),
        "at": ("crawled_at", "captured_at", "snapshot_at", "created_at"),
        "present": ("is_present_in_feed",),
        **_VALUES,
    },
    PROXIES: {
        "id": ("id",),
        "host": ("host", "ip", "address"),
        "port": ("port",),
        "username": ("username", "user"),
        "password": ("password", "pass"),
        "protocol": ("protocol", "type"),
        "is_active": ("is_active", "active"),
        "city": ("city",),
        "state": ("state", "state_code"),
        "country": ("country_code", "country"),
        "timezone": ("timezone",),
    },
    SCHEDULES: {
        "id": ("id",),
        "name": ("name",),
        "role": ("role",),
        "enabled": ("enabled", "is_enabled"),
        "interval_hours": ("interval_hours",),
        "priority": ("priority",),
        "state_code": ("state_code", "state"),
        "platform": ("platform",),
        "next_run": ("next_run_at",),
    },
    PAYLOADS: {
        "id": ("id",),
        **_STORE,
        **_PROVIDER,
        "path": ("storage_path", "file_path", "path"),
        "at": ("fetched_at", "created_at"),
        "sha256": ("checksum_sha256", "checksum", "sha256"),
    },
}
"""What is read, and the columns that it may stand in: the first that a table has counts. Other columns are passed over."""

_NEEDED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    STORES: (("id",), ("platform_id", "slug", "menu_url")),
    PRODUCTS: (("store", "platform_store"), ("product",), ("name",)),
    SNAPSHOTS: (("store", "platform_store", "product_row"), ("product", "product_row"), ("at",)),
    PROXIES: (("host",), ("port",)),
    SCHEDULES: (("name",), ("role",), ("interval_hours",)),
    PAYLOADS: (("store", "platform_store"), ("path",), ("at",)),
}
"""Of each group a table needs one."""

Record = Mapping[str, str | None]
"""A row of a former table: what is read, by our name for it."""


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
