"""A plain platform for tests of what lies behind normalizing: one JSON object per product, with just what a test varies."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.archive import store as payloads
from menuwatch.archive.store import NewPayload
from menuwatch.catalog.apply import Applied, MenuToApply, apply_menu
from menuwatch.catalog.model import Batch, LabValue, Potency, Product, ProductWarning, Variant
from menuwatch.catalog.taxonomy.text import slug, words
from menuwatch.db.pool import Pool
from menuwatch.platforms.model import Normalized
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def item(product_id: str, *, price: str = "10", qty: int | None = 5, name: str = "Thing", **more: Any) -> bytes:
    """The raw bytes of one product. `terpenes` and `cannabinoids` are percentages by name, `sold` is a number; `batch` and `extra` are
    as in the catalog's model."""
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
        image_url=raw.get("image_url"),
        images=tuple(raw.get("images", ())),
        description=raw.get("description"),
        platform_created_at=None,
        platform_updated_at=None,
        extra=raw.get("extra", {}),
        category_canon=raw.get("category_canon"),
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
    provider: str = "dutchie",
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
                provider=provider,
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


_WEIGHT = re.compile(
    r"(?<![\w.])[\[(|/-]?\s*(?:\d*\.?\d+\s*(?:grams?|gr?|oz)|1/[248]\s*(?:oz|ounce)?)\.?\s*[\])|]?(?!\w)", re.IGNORECASE
)


def _key(name: str, brand: str | None, category: str, store_id: int) -> uuid.UUID:
    """Equal for the same product in all stores: brand, name and category regardless of spelling, without the weight that some stores
    put into the name. A product without a brand gets a key of its own store."""
    of = words(brand) if brand else ()
    own = words(_WEIGHT.sub(" ", name)) or words(name) or (name.casefold(),)
    if of and own[: len(of)] == of and len(own) > len(of):
        own = own[len(of) :]
    whose = " ".join(of) if of else f"store {store_id}"
    digest = blake2b("\n".join((whose, " ".join(own), category)).encode(), digest_size=16).digest()
    return uuid.UUID(bytes=digest)


async def match_listings(pool: Pool) -> None:
    """Matches listings in place of the matcher, for tests that give some of them another product: one canonical product for each
    brand, name and category. Listings that have a product keep it."""
    async with pool.connection() as conn, conn.transaction():
        cursor = await conn.execute(
            "SELECT p.id, p.dispensary_id, p.name, p.brand_name, coalesce(p.category_canon, 'other') FROM catalog_products p"
            " WHERE NOT EXISTS (SELECT FROM product_matches m WHERE m.product_id = p.id AND m.canonical_product_id IS NOT NULL)"
            " ORDER BY p.id"
        )
        for product_id, store_id, name, brand, category in await cursor.fetchall():
            key = _key(name, brand, category, store_id)
            found = await conn.execute("SELECT id, canonical_product_id FROM match_signatures WHERE key = %s", [key])
            if (row := await found.fetchone()) is None:
                canonical = await add_canonical_product(conn, name, brand, category)
                made = await conn.execute(
                    "INSERT INTO match_signatures (key, block, parsed, canonical_product_id) VALUES (%s, %s, '{}', %s)"
                    " RETURNING id, canonical_product_id",
                    [key, category, canonical],
                )
                row = await made.fetchone()
            assert row is not None
            await conn.execute(
                "INSERT INTO product_matches (product_id, dispensary_id, source_version, signature_id, canonical_product_id)"
                " VALUES (%s, %s, 0, %s, %s)"
                " ON CONFLICT (product_id) DO UPDATE SET canonical_product_id = excluded.canonical_product_id",
                [product_id, store_id, *row],
            )


async def add_canonical_product(
    conn: AsyncConnection[Any], name: str, brand: str | None = None, category: str = "flower"
) -> int:
    """A canonical product without listings, with its brand; returns its id."""
    brand_id = None
    if brand and slug(brand):
        made = await conn.execute(
            "INSERT INTO brands (slug, name) VALUES (%s, %s) ON CONFLICT (slug) DO UPDATE SET slug = excluded.slug RETURNING id",
            [slug(brand), brand],
        )
        brand_id = (await made.fetchone() or (None,))[0]
    made = await conn.execute(
        "INSERT INTO canonical_products (brand_id, name, category) VALUES (%s, %s, %s) RETURNING id",
        [brand_id, name, category],
    )
    ((number,),) = await made.fetchall()
    return int(number)
