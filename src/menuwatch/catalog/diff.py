"""What changed between two menus of one store. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from operator import itemgetter
from typing import Any

import msgspec

from menuwatch.catalog.model import Product

OptionPrices = tuple[str, Decimal | None, Decimal | None, Decimal | None, Decimal | None]
"""Option, recreational, recreational special, medical, medical special."""
OptionStock = tuple[str, str, int | None, bool]
"""Option, stock status, quantity, capped."""

# Menus list a product's options in no fixed order; a different order alone is not a change.
_option = itemgetter(0)


def prices_of(product: Product) -> tuple[OptionPrices, ...]:
    """Prices of the options: two products differ in price exactly if these differ."""
    rows = [(v.option, v.price_rec, v.special_rec, v.price_med, v.special_med) for v in product.variants]
    if len(rows) > 1:
        rows.sort(key=_option)
    return tuple(rows)


def stock_of(product: Product) -> tuple[OptionStock, ...]:
    """Stock of the options: two products differ in stock exactly if these, or their stock status, differ."""
    rows = [(v.option, v.stock_status, v.quantity, v.capped) for v in product.variants]
    if len(rows) > 1:
        rows.sort(key=_option)
    return tuple(rows)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One product whose prices or stock differ; `before` and `after` are what `prices_of` or `stock_of` give."""

    provider_product_id: str
    name: str
    before: Any
    after: Any


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A product that is in only one of the menus."""

    provider_product_id: str
    name: str
    brand_name: str | None
    price_rec: Decimal | None
    stock_status: str


class MenuDiff(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that differs, by product id order."""

    added: tuple[Item, ...]
    removed: tuple[Item, ...]
    price_changes: tuple[Change, ...]
    stock_changes: tuple[Change, ...]


def _item(product: Product) -> Item:
    return Item(
        provider_product_id=product.provider_product_id,
        name=product.name,
        brand_name=product.brand_name,
        price_rec=product.price_rec,
        stock_status=product.stock_status,
    )


def diff(before: Iterable[Product], after: Iterable[Product]) -> MenuDiff:
    """Compares two menus by product id."""
    old = {p.provider_product_id: p for p in before}
    new = {p.provider_product_id: p for p in after}
    both = sorted(old.keys() & new.keys())
    prices = [(i, prices_of(old[i]), prices_of(new[i])) for i in both]
    stock = [(i, (old[i].stock_status, stock_of(old[i])), (new[i].stock_status, stock_of(new[i]))) for i in both]

    def changes(rows: list[tuple[str, Any, Any]]) -> tuple[Change, ...]:
        return tuple(Change(provider_product_id=i, name=new[i].name, before=a, after=b) for i, a, b in rows if a != b)

    return MenuDiff(
        added=tuple(_item(new[i]) for i in sorted(new.keys() - old.keys())),
        removed=tuple(_item(old[i]) for i in sorted(old.keys() - new.keys())),
        price_changes=changes(prices),
        stock_changes=changes(stock),
    )
