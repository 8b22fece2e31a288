"""Stores whose menus change from crawl to crawl as real ones do, and faults of fourteen kinds that are put into them.

Menus begin as the recorded ones of New Mexico, or as ones that are made here. Rates of change are those of the recorded month of
Minneapolis (0.5 % of prices between two crawls) or above them. What a fault did is written down by what it did to products, without
the code under test.
"""

from __future__ import annotations

import json
import math
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from msgspec import structs
from psycopg import AsyncConnection

from menuwatch.catalog.apply import MenuToApply, apply_menu
from menuwatch.catalog.model import Potency, Product, Variant
from menuwatch.config.settings import Settings
from menuwatch.platforms.model import Normalized
from menuwatch.platforms.registry import platforms
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details
from tests.market import add_payload

START = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


class Reader:
    """Items are products of the catalog's model, as JSON."""

    normalizer_version = 1

    def identity(self, item: msgspec.Raw) -> str | None:
        return str(msgspec.json.decode(item)["provider_product_id"])

    def normalize(self, items: Iterable[msgspec.Raw]) -> Normalized:
        return Normalized(products=tuple(msgspec.json.decode(item, type=Product) for item in items), warnings=())


@dataclass
class Shop:
    """A store of the world."""

    platform: str
    chain: str | None
    menu: list[Product]
    id: int = 0
    special_days: tuple[int, ...] = ()
    last: list[Product] = field(default_factory=list)


def recorded_menus(folder: Path, least: int = 30) -> list[list[Product]]:
    """The recorded menus of New Mexico with so many products."""
    weedmaps = platforms(Settings())["weedmaps"]
    menus = []
    with tarfile.open(folder / "weedmaps" / "nm_menus_2024-05.tar.gz") as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is None:
                continue
            rows = json.load(file)["data"]
            products = weedmaps.normalize(msgspec.Raw(msgspec.json.encode(row)) for row in rows).products
            if len(products) >= least:
                menus.append([structs.replace(one, description=(one.description or "")[:40]) for one in products])
    return menus


_KINDS = (
    ("flower", 40, 22),
    ("vaporizer", 35, 80),
    ("edible", 20, None),
    ("pre_roll", 12, 24),
    ("concentrate", 45, 72),
)


def made_menu(rng: Random, size: int) -> list[Product]:
    """A menu with prices, THC and stock, of five categories."""
    return [_made(rng, f"{rng.getrandbits(40):x}") for _ in range(size)]


def _made(rng: Random, key: str) -> Product:
    category, price, thc = rng.choice(_KINDS)
    cost = Decimal(round(price * math.exp(rng.gauss(0, 0.3))))
    stock = "oos" if rng.random() < 0.08 else "in_stock"
    content = None if thc is None or rng.random() < 0.1 else Decimal(str(round(thc * math.exp(rng.gauss(0, 0.12)), 1)))
    return Product(
        provider_product_id=key, name_raw=f"Product {key}", name=f"Product {key}",
        brand_name_raw="Acme", brand_name=None if rng.random() < 0.05 else "Acme", category=category, subcategory=None,
        strain_type=None, status_raw="Active",
        variants=(Variant(option="3.5 g", price_rec=cost, quantity=5, stock_status=stock, weight_g=Decimal("3.5")),),
        price_rec=cost, price_rec_special=None, price_med=None, price_med_special=None, stock_status=stock,
        is_in_stock=stock == "in_stock", quantity=5, quantity_capped=False,
        thc=None if content is None else Potency(content, content, "%", "PERCENTAGE"), cbd=None, cannabinoids=(), specials=(),
        image_url=None if rng.random() < 0.03 else f"https://images.example/{key}.jpg", images=(), description="",
        platform_created_at=None, platform_updated_at=None, extra={}, category_canon=category,
        strain_canon=rng.choice(("indica", "sativa", "hybrid", None)),
    )  # fmt: skip


def priced(product: Product, factor: float, *, special: bool = False) -> Product:
    """The product with its prices times that; as a special that lowers the price, if asked for."""

    def times(price: Decimal | None) -> Decimal | None:
        return None if price is None else round(price * Decimal(str(factor)), 2)

    variants = tuple(
        structs.replace(one, special_rec=times(one.price_rec), special_med=times(one.price_med))
        if special
        else structs.replace(one, price_rec=times(one.price_rec), price_med=times(one.price_med),
                             special_rec=times(one.special_rec), special_med=times(one.special_med))
        for one in product.variants
    )  # fmt: skip
    if special:
        return structs.replace(
            product,
            variants=variants,
            price_rec_special=times(product.price_rec),
            price_med_special=times(product.price_med),
        )
    return structs.replace(
        product, variants=variants, price_rec=times(product.price_rec), price_med=times(product.price_med),
        price_rec_special=times(product.price_rec_special), price_med_special=times(product.price_med_special),
    )  # fmt: skip


class World:
    """Shops and their crawls."""

    def __init__(self, seed: int, shops: Sequence[Shop]) -> None:
        self.rng, self.shops, self.crawls = Random(seed), list(shops), 0

    async def open(self, conn: AsyncConnection[Any]) -> None:
        """Adds the stores."""
        for month in range(4):
            await conn.execute("SELECT ensure_product_history_partition(%s)", [START + timedelta(days=30 * month)])
        for number, shop in enumerate(self.shops):
            name = f"store-{number}"
            details = Details(
                platform_dispensary_id=f"id-{name}", slug=name, name=name, name_raw=name, enterprise_id=shop.chain
            )
            shop.id, _ = await stores.promote(conn, shop.platform, details)

    def step(self, shop: Shop, at: datetime) -> list[Product]:
        """The shop's menu at its next crawl; its products changed meanwhile."""
        rng, menu = self.rng, []
        for product in shop.menu:
            luck = rng.random()
            if luck < 0.01:
                continue
            if luck < 0.015 and product.price_rec is not None:
                product = priced(product, rng.choice((0.9, 0.95, 1.05, 1.1)))
            elif luck < 0.04 and product.stock_status != "unknown":
                status = "oos" if product.is_in_stock and rng.random() < 0.1 else "in_stock"
                product = structs.replace(product, stock_status=status, is_in_stock=status == "in_stock")
            elif luck < 0.06 and product.thc is not None:
                content = round(product.thc.lo * Decimal(str(round(math.exp(rng.gauss(0, 0.1)), 3))), 2)
                product = structs.replace(product, thc=structs.replace(product.thc, lo=content, hi=content))
            menu.append(product)
        for product in rng.sample(menu, min(len(menu), round(len(shop.menu) * 0.01 + rng.random()))):
            menu.append(structs.replace(product, provider_product_id=f"{rng.getrandbits(40):x}"))
        shop.menu = menu
        if at.weekday() in shop.special_days:
            return [priced(one, 0.8, special=True) if n % 3 == 0 else one for n, one in enumerate(menu)]
        return menu

    async def crawl(
        self, conn: AsyncConnection[Any], fault: Callable[[Shop, list[Product]], list[Product]] | None = None,
        shops: Sequence[Shop] | None = None,
    ) -> datetime:  # fmt: skip
        """Crawls all shops, or these, a day after the crawl before."""
        self.crawls += 1
        for number, shop in enumerate(self.shops):
            at = START + timedelta(days=self.crawls, minutes=number)
            menu = self.step(shop, at)
            if shops is not None and shop not in shops:
                continue
            shown = menu if fault is None else fault(shop, menu)
            await apply(conn, shop.id, shop.platform, at, shown)
            shop.last = shown
        return START + timedelta(days=self.crawls)


async def apply(
    conn: AsyncConnection[Any], store_id: int, platform: str, at: datetime, products: Sequence[Product]
) -> None:
    """Applies a menu as a crawl at that time; plausibility checks, which would keep some faults from the catalogue, are off."""
    items = [msgspec.Raw(msgspec.json.encode(product)) for product in products]
    async with conn.transaction():
        store = await stores.lock(conn, store_id)
        assert store is not None
        payload_id = await add_payload(conn, store_id, at, len(items))
        menu = MenuToApply(
            dispensary_id=store_id, provider=platform, payload_id=payload_id, crawled_at=at, previous=store.last_crawled_at,
            items=items, trusted=True,
        )  # fmt: skip
        applied = await apply_menu(conn, menu, Reader())
        await stores.crawled(conn, store_id, crawled_at=at, payload_id=payload_id, products=applied.products)


Change = Callable[[Product], Product]


def _unit(product: Product) -> Product:
    if product.thc is None:
        return product
    return structs.replace(product, thc=structs.replace(product.thc, unit="mg", raw_unit="MILLIGRAMS"))


def _no_price(product: Product) -> Product:
    blank = tuple(
        structs.replace(one, price_rec=None, price_med=None, special_rec=None, special_med=None)
        for one in product.variants
    )
    return structs.replace(
        product, variants=blank, price_rec=None, price_med=None, price_rec_special=None, price_med_special=None
    )


def _potent(product: Product, factor: float) -> Product:
    if product.thc is None:
        return product
    value = product.thc.lo * Decimal(str(factor))
    return structs.replace(product, thc=structs.replace(product.thc, lo=value, hi=value))


_SHARED: dict[str, tuple[str, Change]] = {
    "brand_null": ("null.brand", lambda one: structs.replace(one, brand_name=None, brand_name_raw=None)),
    "category_null": ("null.category", lambda one: structs.replace(one, category_canon=None)),
    "price_null": ("null.price", _no_price),
    "image_null": ("null.image", lambda one: structs.replace(one, image_url=None, images=())),
    "thc_null": ("null.thc", lambda one: structs.replace(one, thc=None)),
    "stock_unknown": (
        "null.stock", lambda one: structs.replace(one, stock_status="unknown", is_in_stock=None, quantity=None)),
    "sold_out": ("stock.oos", lambda one: structs.replace(one, stock_status="oos", is_in_stock=False)),
    "unit_shift": ("unit.mg", _unit),
    "special_flood": ("special", lambda one: priced(one, 0.7, special=True)),
    "word_shift": ("word.hidden", lambda one: structs.replace(one, status_raw="Hidden")),
    "id_change": ("new", lambda one: structs.replace(one, provider_product_id=f"new-{one.provider_product_id}")),
}  # fmt: skip
"""Kinds of fault that change a share of the products, with the measure that shows them."""
KINDS = (*_SHARED, "menu_loss", "price_scale", "thc_scale")
SHARES = (0.02, 0.05, 0.08, 0.12, 0.16, 0.22, 0.3, 0.5, 0.75, 1.0)
LOSSES = (0.02, 0.05, 0.08, 0.12, 0.15, 0.18, 0.21, 0.24, 0.3, 0.4)
FACTORS = (1.05, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 10.0, 100.0, 0.01)
STATED = {
    "null": 0.10, "stock": 0.20, "unit": 0.10, "word": 0.10, "special": 0.20, "new": 0.15, "lost": 0.10,
    "price_scale": math.log(1.15), "thc_scale": math.log(1.2),
}  # fmt: skip
"""Stated sizes, as docs/how-to/data-quality-monitors.md has them."""
LEAST_PRODUCTS = 4


def severities(kind: str) -> Sequence[float]:
    """The ten severities of a kind: a share of products, or a factor."""
    return FACTORS if kind.endswith("_scale") else LOSSES if kind == "menu_loss" else SHARES


def inject(kind: str, severity: float, menu: list[Product]) -> list[Product]:
    """The menu with the fault."""
    if kind == "price_scale":
        return [priced(one, severity) for one in menu]
    if kind == "thc_scale":
        return [_potent(one, severity) for one in menu]
    changed = set(Random(f"{kind} {severity}").sample(range(len(menu)), round(severity * len(menu))))
    if kind == "menu_loss":
        return [one for n, one in enumerate(menu) if n not in changed]
    change = _SHARED[kind][1]
    return [change(one) if n in changed else one for n, one in enumerate(menu)]


def shows(
    kind: str, severity: float, before: Sequence[Product], good: Sequence[Product], bad: Sequence[Product]
) -> bool:
    """Whether the fault is above its stated size on this menu: `good` is what it would have been, `before` the menu before."""
    if kind.endswith("_scale"):
        known = {one.provider_product_id for one in before}
        based = [
            one for one in good if (_price(one) if kind == "price_scale" else one.thc is not None and one.thc.lo > 0)
        ]
        if not any(one.provider_product_id in known for one in based):
            return False
        return min(abs(math.log(severity)), math.log(4)) > max(STATED[kind], 2 * math.log(4) / max(len(based), 1))
    if kind == "menu_loss":
        lost = len({one.provider_product_id for one in before} - {one.provider_product_id for one in bad})
        return lost / len(before) > STATED["lost"] and lost > LEAST_PRODUCTS
    measure = _SHARED[kind][0]
    if kind == "id_change":
        moved, whole = (
            len({one.provider_product_id for one in bad} - {one.provider_product_id for one in good}),
            len(bad),
        )
    elif kind == "unit_shift":
        units = [(a, b) for a, b in zip(good, bad, strict=True) if a.thc is not None]
        moved, whole = sum(_mg(b) - _mg(a) for a, b in units), max(len(units), 1)
    else:
        is_so = _TESTS[measure]
        moved, whole = sum(is_so(one) for one in bad) - sum(is_so(one) for one in good), len(bad)
    return moved / whole > max(STATED[measure.partition(".")[0]], LEAST_PRODUCTS / whole)


def _price(product: Product) -> Decimal | None:
    rec = [one for one in (product.price_rec, product.price_rec_special) if one is not None]
    med = [one for one in (product.price_med, product.price_med_special) if one is not None]
    return min(rec or med, default=None)


def _mg(product: Product) -> bool:
    return product.thc is not None and product.thc.unit == "mg"


def _is_special(product: Product) -> bool:
    if product.price_rec is not None or product.price_rec_special is not None:
        pair = (product.price_rec_special, product.price_rec)
    else:
        pair = (product.price_med_special, product.price_med)
    return pair[0] is not None and pair[1] is not None and pair[0] < pair[1]


_TESTS: Mapping[str, Callable[[Product], bool]] = {
    "null.brand": lambda one: one.brand_name is None,
    "null.category": lambda one: one.category_canon is None,
    "null.price": lambda one: _price(one) is None,
    "null.image": lambda one: one.image_url is None,
    "null.thc": lambda one: one.thc is None,
    "null.stock": lambda one: one.stock_status == "unknown",
    "stock.oos": lambda one: one.stock_status == "oos",
    "special": _is_special,
    "word.hidden": lambda one: one.status_raw == "Hidden",
}


def measures_of(kind: str) -> tuple[str, ...]:
    """Prefixes of the measures that show the fault."""
    if kind == "menu_loss":
        return ("lost", "products")
    if kind == "id_change":
        return ("new", "lost")
    if kind.endswith("_scale"):
        return ("level." + kind.removesuffix("_scale"),)
    if kind == "special_flood":
        return ("special",)
    return (_SHARED[kind][0],)
