"""Compares two archived menus of a store product by product. Reads files, needs no database."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Any

import msgspec
from msgspec import Struct, field

from menuwatch.archive import service
from menuwatch.archive.files import FileArchive
from menuwatch.archive.store import Payload
from menuwatch.catalog.diff import Change, Item, MenuDiff, diff
from menuwatch.catalog.model import Product
from menuwatch.core.errors import BadPayload, Conflict
from menuwatch.core.shapes import Instant, doc
from menuwatch.platforms.base import Platform
from menuwatch.platforms.model import Normalized


class DiffUnreadable(Struct, kw_only=True, frozen=True, rename="camel"):
    """A product whose item in one of the menus cannot be parsed; it counts neither as added nor as removed."""

    provider_product_id: Annotated[str | None, doc("Null if the item has no readable id.")]
    name: Annotated[str | None, doc("Null if no menu has a readable one.")]
    before: Annotated[
        str | None, doc("Why it is unreadable in the older menu; null if it is readable or absent there.")
    ]
    after: Annotated[str | None, doc("Why it is unreadable in the newer menu; null if it is readable or absent there.")]


class Compared(Struct, frozen=True, kw_only=True):
    """Two menus of one store and their differences. Items `unreadable` in one of them are not in `diff`."""

    older: Payload
    newer: Payload
    diff: MenuDiff
    unreadable: tuple[DiffUnreadable, ...] = ()


class _Menu(Struct):
    """One side: its products, errors by product id, and errors of items without an id."""

    products: tuple[Product, ...]
    unreadable: dict[str, str]
    nameless: list[str]


class _NormalizeOnce:
    """Normalizes items one by one; items with equal bytes in both menus, which is most of them, only once."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self._known: dict[bytes, Normalized] = {}

    def __call__(self, item: msgspec.Raw) -> Normalized:
        raw = bytes(item)
        found = self._known.get(raw)
        if found is None:
            found = self._known[raw] = self.platform.normalize((item,))
        return found


def _menu(archive: FileArchive, normalize: _NormalizeOnce, payload: Payload) -> _Menu:
    document = service.read(archive, payload)
    try:
        items = [item for page in normalize.platform.split_menu(document.pages) for item in page]
    except BadPayload as error:
        raise Conflict(
            f"payload {payload.id} is {payload.status} and contains no menu: {error.kind}: {error}"
        ) from error
    if document.broken:
        raise Conflict(
            f"payload {payload.id} is {payload.status} and contains no menu: one of its responses is not JSON"
        )
    # Of several items with one id the last wins, as in `Platform.normalize`.
    products: dict[str, Product] = {}
    odd: list[tuple[msgspec.Raw, str]] = []
    for item in items:
        found = normalize(item)
        products.update((product.provider_product_id, product) for product in found.products)
        if not found.products:
            said = [f"{one.field}: {one.message}" for one in found.warnings if one.fatal]
            odd.append((item, "; ".join(said) or "it cannot be read"))
    menu = _Menu(tuple(products.values()), {}, [])
    for item, why in odd:
        name = normalize.platform.identity(item)
        if name is None:
            menu.nameless.append(why)
        elif name not in products:
            menu.unreadable[name] = why
    return menu


def _compared(older: Payload, newer: Payload, before: _Menu, after: _Menu) -> Compared:
    found = diff(before.products, after.products)
    names = {p.provider_product_id: p.name for menu in (before, after) for p in menu.products}
    unreadable = before.unreadable.keys() | after.unreadable.keys()
    rows = [
        DiffUnreadable(
            provider_product_id=i, name=names.get(i), before=before.unreadable.get(i), after=after.unreadable.get(i)
        )
        for i in sorted(unreadable)
    ]
    rows += [DiffUnreadable(provider_product_id=None, name=None, before=why, after=None) for why in before.nameless]
    rows += [DiffUnreadable(provider_product_id=None, name=None, before=None, after=why) for why in after.nameless]
    rest = msgspec.structs.replace(
        found,
        added=tuple(item for item in found.added if item.provider_product_id not in unreadable),
        removed=tuple(item for item in found.removed if item.provider_product_id not in unreadable),
    )
    return Compared(older=older, newer=newer, diff=rest, unreadable=tuple(rows))


async def compare(archive: FileArchive, platforms: Mapping[str, Platform], older: Payload, newer: Payload) -> Compared:
    """Compares two archived menus. Reads and normalizes files, so do not hold a database connection during the call.

    Raises Conflict if one payload holds no menu, PayloadMissing and PayloadDamaged if its file cannot be read.
    """

    def compare_files() -> Compared:
        normalizers = {payload.platform: _NormalizeOnce(_adapter(payload)) for payload in (older, newer)}
        before, after = (_menu(archive, normalizers[payload.platform], payload) for payload in (older, newer))
        return _compared(older, newer, before, after)

    def _adapter(payload: Payload) -> Platform:
        try:
            return platforms[payload.platform]
        except KeyError:
            raise Conflict(f"payload {payload.id} is from unknown platform {payload.platform!r}") from None

    return await asyncio.to_thread(compare_files)


# The response has names in camelCase, unlike all others, because other people's scripts read them.


class DiffPayload(Struct, kw_only=True, frozen=True, rename="camel"):
    """One side of a comparison."""

    id: int
    fetched_at: Instant
    product_count: Annotated[int, doc("Number of distinct products.")]


class DiffCounts(Struct, kw_only=True, frozen=True, rename="camel"):
    """Number of products that differ."""

    added: int
    removed: int
    price_changes: int
    stock_changes: int
    unreadable: Annotated[
        int, doc("Products that are unreadable in one of the menus; they count neither as added nor as removed.")
    ]


class DiffItem(Struct, kw_only=True, frozen=True, rename="camel"):
    """A product that only one of the menus has."""

    provider_product_id: str
    name: str
    brand_name: str | None
    price_rec: Annotated[Decimal | None, doc("Lowest recreational price of its options; null if there is none.")]
    stock_status: Annotated[str, doc("`in_stock`, `oos` or `unknown`.")]


class DiffPrices(Struct, frozen=True, rename="camel"):
    """Prices of one option, in the store's currency; null if there is none."""

    option: Annotated[str, doc("Size or package.")]
    price_rec: Decimal | None
    price_rec_special: Decimal | None
    price_med: Decimal | None
    price_med_special: Decimal | None


class DiffStock(Struct, frozen=True, rename="camel"):
    """Stock of one option."""

    option: Annotated[str, doc("Size or package.")]
    stock_status: Annotated[str, doc("`in_stock`, `oos` or `unknown`.")]
    quantity: Annotated[int | None, doc("Number of packages; null if the menu does not say.")]
    capped: Annotated[bool, doc("True if there may be more than `quantity`.")]


class DiffStockSide(Struct, kw_only=True, frozen=True, rename="camel"):
    """Stock of one product in one of the menus."""

    stock_status: Annotated[str, doc("Stock of the product as a whole.")]
    options: list[DiffStock]


class DiffPriceChange(Struct, kw_only=True, frozen=True, rename="camel"):
    """A product with different prices."""

    provider_product_id: str
    name: Annotated[str, doc("Name in the newer menu.")]
    before: list[DiffPrices]
    after: list[DiffPrices]


class DiffStockChange(Struct, kw_only=True, frozen=True, rename="camel"):
    """A product with different stock."""

    provider_product_id: str
    name: Annotated[str, doc("Name in the newer menu.")]
    before: DiffStockSide
    after: DiffStockSide


class DiffDetails(Struct, kw_only=True, frozen=True, rename="camel"):
    """All products that differ, by product id."""

    added: list[DiffItem]
    removed: list[DiffItem]
    price_changes: list[DiffPriceChange]
    stock_changes: list[DiffStockChange]
    unreadable: list[DiffUnreadable]


class PayloadDiff(Struct, kw_only=True, frozen=True, rename="camel"):
    """Differences between two menus of one store."""

    # Generators of clients know no constant but texts and numbers.
    success: Annotated[bool, doc("Always true: a failed comparison is a problem response.")] = True
    from_: DiffPayload = field(name="from")
    to: DiffPayload
    diff: DiffCounts
    details: DiffDetails


def to_response(found: Compared) -> PayloadDiff:
    """The comparison as returned by the API and printed by the command line."""
    menus = found.diff
    return PayloadDiff(
        from_=_side(found.older),
        to=_side(found.newer),
        diff=DiffCounts(
            added=len(menus.added),
            removed=len(menus.removed),
            price_changes=len(menus.price_changes),
            stock_changes=len(menus.stock_changes),
            unreadable=len(found.unreadable),
        ),
        details=DiffDetails(
            added=[_item(item) for item in menus.added],
            removed=[_item(item) for item in menus.removed],
            price_changes=[_price_change(change) for change in menus.price_changes],
            stock_changes=[_stock_change(change) for change in menus.stock_changes],
            unreadable=list(found.unreadable),
        ),
    )


def _side(payload: Payload) -> DiffPayload:
    return DiffPayload(id=payload.id, fetched_at=payload.fetched_at, product_count=payload.product_count)


def _item(item: Item) -> DiffItem:
    return DiffItem(**msgspec.structs.asdict(item))


def _price_change(change: Change) -> DiffPriceChange:
    before, after = ([DiffPrices(*option) for option in side] for side in (change.before, change.after))
    return DiffPriceChange(provider_product_id=change.provider_product_id, name=change.name, before=before, after=after)


def _stock_change(change: Change) -> DiffStockChange:
    before, after = (_stock(side) for side in (change.before, change.after))
    return DiffStockChange(provider_product_id=change.provider_product_id, name=change.name, before=before, after=after)


def _stock(side: tuple[str, Iterable[tuple[Any, ...]]]) -> DiffStockSide:
    status, options = side
    return DiffStockSide(stock_status=status, options=[DiffStock(*option) for option in options])
