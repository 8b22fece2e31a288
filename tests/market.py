"""A plain platform for tests of what lies behind normalizing: one JSON object per product, with just what a test varies."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.archive import store as payloads
from menuwatch.archive.store import NewPayload
from menuwatch.catalog.apply import Applied, MenuToApply, apply_menu
from menuwatch.catalog.model import Batch, LabValue, Potency, Product, ProductWarning, Variant
from menuwatch.platforms.model import Normalized
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def item(product_id: str, *, price: str = "10", qty: int | None = 5, name: str = "Thing", **more: Any) -> bytes:
    """The raw bytes of one product. `terpenes` and `cannabinoids` are percentages by name, `batch` is as Batch, `sold` a number."""
    return msgspec.json.encode({"id": product_id, "price": price, "qty": qty, "name": name, **more})


def _lab_values(values: dict[str, Any] | None) -> tuple[LabValue, ...]:
    return tuple(LabValue(name, Decimal(str(value)), "%") for name, value in (values or {}).items())


def product(raw: dict[str, Any]) -> Product:
    qty = raw["qty"]
    status = "unknown" if qty is None else "in_stock" if qty > 0 else "oos"
    price = Decimal(raw["price"])
    thc = Decimal(str(raw["thc"])) if "thc" in raw else None
    variant = Variant(option="each", price_rec=price, quantity=qty, stock_status=status)
    return Product(
        provider_product_id=raw["id"],
        name_raw=raw["name"],
        name=raw["name"].strip(),
        brand_name_raw=raw.get("brand"),
        brand_name=raw.get("brand"),
        category=raw.get("category"),
        subcategory=None,
        strain_type=None,
        status_raw="Active",
        variants=(variant,),
        price_rec=price,
        price_rec_special=None,
        price_med=None,
        price_med_special=None,
        stock_status=status,
        is_in_stock={"in_stock": True, "oos": False, "unknown": None}[status],
        quantity=qty,
        quantity_capped=False,
        thc=Potency(lo=thc, hi=thc, unit="%", raw_unit="PERCENTAGE") if thc is not None else None,
        cbd=None,
        cannabinoids=_lab_values(raw.get("cannabinoids")),
        terpenes=_lab_values(raw.get("terpenes")),
        batch=msgspec.convert(raw["batch"], Batch) if raw.get("batch") else None,
        quantity_sold=raw.get("sold"),
        specials=(),
        image_url=None,
        images=(),
        description=raw.get("description"),
        platform_created_at=None,
        platform_updated_at=None,
        extra={},
    )


def normalize(items: Iterable[msgspec.Raw]) -> Normalized:
    products: dict[str, Product] = {}
    warnings = []
    for one in items:
        raw = msgspec.json.decode(one)
        if not isinstance(raw, dict) or "price" not in raw:
            product_id = raw.get("id") if isinstance(raw, dict) else None
            warnings.append(ProductWarning(product_id=product_id, field="price", message="is missing", fatal=True))
            continue
        products.pop(raw["id"], None)
        products[raw["id"]] = product(raw)
    return Normalized(products=tuple(products.values()), warnings=tuple(warnings))


class Reader:
    """The reading half of the plain platform."""

    def __init__(self, version: int = 1) -> None:
        self.normalizer_version = version

    def identity(self, item: msgspec.Raw) -> str | None:
        raw = msgspec.json.decode(item)
        return raw.get("id") if isinstance(raw, dict) else None

    def normalize(self, items: Iterable[msgspec.Raw]) -> Normalized:
        return normalize(items)


async def add_store(conn: AsyncConnection[Any], name: str = "store-1") -> int:
    store_id, _ = await stores.promote(
        conn, "dutchie", Details(platform_dispensary_id=f"id-{name}", slug=name, name=name, name_raw=name)
    )
    return store_id


async def add_payload(
    conn: AsyncConnection[Any], store_id: int, at: datetime, count: int = 0, status: str = "ok"
) -> int:
    return await payloads.insert(
        conn,
        NewPayload(
            task_id=None,
            dispensary_id=store_id,
            platform="dutchie",
            status=status,
            reason=None if status == "ok" else "for the test",
            product_count=count,
            fetched_at=at,
            path=f"payloads/{store_id}/{at.isoformat()}",
            bytes=1,
            raw_bytes=1,
            sha256="0",
            content_sha256="0",
        ),
    )


async def crawl(
    conn: AsyncConnection[Any],
    store_id: int,
    number: int,
    items: Iterable[bytes],
    *,
    version: int = 1,
    whole: bool = True,
    trusted: bool = False,
) -> Applied:
    """Applies one menu as the store's crawl of that number, an hour after the one before."""
    at = START + timedelta(hours=number)
    raws = [msgspec.Raw(one) for one in items]
    async with conn.transaction():
        store = await stores.lock(conn, store_id)
        assert store is not None
        payload_id = await add_payload(conn, store_id, at, len(raws))
        applied = await apply_menu(
            conn,
            MenuToApply(
                dispensary_id=store_id,
                provider="dutchie",
                payload_id=payload_id,
                crawled_at=at,
                previous=store.last_crawled_at,
                items=raws,
                whole=whole,
                trusted=trusted,
            ),
            Reader(version),
        )
        await payloads.mark_applied(conn, payload_id)
        await stores.crawled(conn, store_id, crawled_at=at, payload_id=payload_id, products=applied.products)
    return applied
