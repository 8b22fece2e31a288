"""Applies one menu to the catalog: new, changed and missing products, in one transaction of the caller's.

Items whose raw bytes equal the stored ones are not decoded, normalized or written. New products are copied straight into
their table, changed ones are merged by one statement. The caller holds the lock on the store's row, so there
is no concurrent writer of this store's products.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Struct
from psycopg import AsyncConnection
from xxhash import xxh3_128_digest

from menuwatch.catalog import copy_format as rows
from menuwatch.catalog.brand_descriptions import brand_descriptions, keep_brand_descriptions
from menuwatch.catalog.item_names import item_name
from menuwatch.catalog.model import Product, ProductWarning
from menuwatch.catalog.stock import MISSES_UNTIL_OOS, absent, says_nothing
from menuwatch.core.errors import MenuwatchError
from menuwatch.db import sql
from menuwatch.db.pool import Pool

_q = sql.load(__package__, "apply.sql")
_COPIED = 250
"""New items normalized per write; the server stores one chunk while the next is normalized."""
_MERGED = 1000
"""Changed items per statement, which limits its memory."""
_BAD_SHARE = 0.2
"""Maximum share of malformed items; above it the platform's schema has changed and the menu is rejected."""
LONG_UNSEEN = timedelta(days=7)
"""An item without an id may be any product seen within this time. It is limited because some menus always have such an item."""


class NormalizedItems(Protocol):
    """Products and warnings that a platform's normalizer returns for raw items."""

    @property
    def products(self) -> Sequence[Product]: ...
    @property
    def warnings(self) -> Sequence[ProductWarning]: ...


class Reader(Protocol):
    """The part of a platform that reads items; see `platforms.base.Platform`."""

    @property
    def normalizer_version(self) -> int: ...
    def identity(self, item: msgspec.Raw, /) -> str | None: ...
    def normalize(self, items: Iterable[msgspec.Raw], /) -> NormalizedItems: ...


class SuspectMenu(MenuwatchError):
    """The menu is not credible; nothing of it was applied."""


Examine = Callable[[AsyncConnection[Any], Sequence[msgspec.Raw]], Awaitable[None]]
"""Examines the unknown items of a menu before anything is written; raises SuspectMenu."""


class MenuToApply(Struct, frozen=True, kw_only=True):
    """One archived menu. `items` are the raw items of all its pages, in order; `previous` is the store's last applied crawl.
    One that was taken over from elsewhere has no payload."""

    dispensary_id: int
    provider: str
    payload_id: int | None
    crawled_at: datetime
    previous: datetime | None
    items: Sequence[msgspec.Raw]
    whole: bool = True
    """False for a partial menu: products that are not in it get no miss."""
    trusted: bool = False
    """Released by a person: applied without plausibility checks."""


@dataclass(slots=True, kw_only=True)
class Applied:
    """What one menu changed. `missing` counts absent products whose misses went up."""

    products: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    returned: int = 0
    missing: int = 0
    out_of_stock: int = 0
    price_changes: int = 0
    stock_changes: int = 0
    warnings: list[ProductWarning] = field(default_factory=list)
    unknown: Sequence[msgspec.Raw] = ()
    """Items with other bytes than the stored ones, and items of products that return after a gap."""

    def counts(self) -> dict[str, int]:
        """The figures by name."""
        return {
            spec.name: getattr(self, spec.name) for spec in fields(self) if spec.name not in ("warnings", "unknown")
        }


class _Known(NamedTuple):
    id: int
    provider_product_id: str
    content_hash: bytes
    misses: int
    current: bool
    """Present in the last crawl, and readable."""
    long_unseen: bool


class _Item(NamedTuple):
    """A raw item to normalize: its product has no row yet (`row` None), has other bytes, or returns after a miss."""

    raw: msgspec.Raw
    content_hash: bytes
    row: int | None
    position: int
    """Position in the menu, from 0."""
    earlier: msgspec.Raw | None = None
    """An earlier item of the menu with the same id."""


class _Sorted(NamedTuple):
    """A menu's items, sorted into new, changed, unchanged and unreadable."""

    same: set[int]
    """Rows of the products with unchanged bytes."""
    new: list[_Item]
    changed: list[_Item]
    nameless: list[tuple[int, msgspec.Raw]]
    """Readable items without an id, with their positions."""
    unknown: list[msgspec.Raw]
    """All items that are not among the unchanged ones, with those that another item of the same id replaces."""


def content_hash(raw: msgspec.Raw, reader: Reader) -> bytes:
    """Hash of an item's bytes and the normalizer's version, 16 bytes; unchanged items are recognized by it. It need not withstand
    attacks: all items that it is compared with come from the same menu's owner."""
    return xxh3_128_digest(raw, reader.normalizer_version)


def _sort(menu: MenuToApply, known: Sequence[_Known], reader: Reader) -> _Sorted:
    """Sorts items into new, changed and unchanged; of an unchanged item only the id is decoded.

    Menus repeat items (pinned ones appear on every page): the last item with an id wins.
    """
    # Products that return after a gap are written even with unchanged bytes.
    by_hash = {row.content_hash: row.id for row in known if row.current}
    rows_by_id = {row.provider_product_id: row.id for row in known}
    same: dict[int, int] = {}
    read: dict[str, tuple[int, _Item]] = {}
    nameless = []
    unknown = []
    for position, raw in enumerate(menu.items):
        key = content_hash(raw, reader)
        row = by_hash.get(key)
        if row is not None:
            same[row] = position
            continue
        unknown.append(raw)
        name = reader.identity(raw)
        if name is None:
            nameless.append((position, raw))
        else:
            before = read.get(name)
            read[name] = (
                position,
                _Item(raw, key, rows_by_id.get(name), position, before[1].raw if before else None),
            )
    new: list[_Item] = []
    changed: list[_Item] = []
    for position, item in read.values():
        if item.row is None:
            new.append(item)
        elif same.get(item.row, -1) < position:
            same.pop(item.row, None)
            changed.append(item)
    return _Sorted(set(same), new, changed, nameless, unknown)


class _Reading(Struct):
    """Normalizes items in chunks and counts those that cannot be read."""

    reader: Reader
    warnings: list[ProductWarning]
    menu: MenuToApply
    unread: int = 0
    unread_rows: set[int] = set()
    """Rows of known products whose items in this menu cannot be read."""

    def chunks(self, items: Sequence[_Item], size: int) -> Iterator[list[tuple[_Item, Product]]]:
        """Yields up to `size` items at a time with their products, without the unreadable ones. Raises SuspectMenu if too many are
        unreadable."""
        for start in range(0, len(items), size):
            chunk = items[start : start + size]
            items_read = self.reader.normalize(item.raw for item in chunk)
            if len(items_read.products) == len(chunk):
                self._note(items_read, chunk)
                yield list(zip(chunk, items_read.products, strict=True))
            else:
                # Some item gave no product: normalize one at a time to find which.
                yield [pair for item in chunk for pair in self._one(item)]

    def _one(self, item: _Item) -> Iterator[tuple[_Item, Product]]:
        normalized = self.reader.normalize((item.raw,))
        self._note(normalized, (item,))
        if not normalized.products and item.earlier is not None:
            normalized = self.reader.normalize((item.earlier,))
        if not normalized.products:
            if item.row is not None:
                self.unread_rows.add(item.row)
            self.failed(1)
        for product in normalized.products:
            yield item, product

    def _note(self, normalized: NormalizedItems, items: Sequence[_Item]) -> None:
        """Keeps the warnings of some items, with the position and name of each one's item."""
        if not normalized.warnings:
            return
        places = {
            product.provider_product_id: (item.position, product.name)
            for item, product in zip(items, normalized.products, strict=False)
        }
        for warning in normalized.warnings:
            alone = (items[0].position, item_name(items[0].raw)) if len(items) == 1 else None
            place = places.get(warning.product_id or "") or alone
            self.warnings.append(warning if place is None else _placed(warning, *place))

    def nameless(self, items: Sequence[tuple[int, msgspec.Raw]]) -> None:
        """Keeps the warnings of items without an id, and counts them."""
        for position, raw in items:
            normalized = self.reader.normalize((raw,))
            self.warnings += [_placed(warning, position, item_name(raw)) for warning in normalized.warnings]
        self.failed(len(items))

    def failed(self, count: int) -> None:
        """Counts items that cannot be read."""
        self.unread += count
        total = len(self.menu.items)
        if self.unread > _BAD_SHARE * total and not self.menu.trusted:
            first = next((w for w in self.warnings if w.fatal), None)
            detail = f", first: {first.field}: {first.message}" if first else ""
            raise SuspectMenu(f"schema changed: {self.unread} or more of {total} items cannot be read{detail}")


def _placed(warning: ProductWarning, position: int, name: str | None) -> ProductWarning:
    return msgspec.structs.replace(warning, position=position + 1, name=name)


async def _copy_new(conn: AsyncConnection[Any], menu: MenuToApply, new: Sequence[_Item], reading: _Reading) -> int:
    """Writes products that have no row; returns how many there were."""
    if not new:
        return 0
    cursor = await conn.execute(_q.reserve_ids, {"n": len(new)})
    ids = iter([row[0] for row in await cursor.fetchall()])
    at = menu.crawled_at.isoformat()
    written = 0
    descriptions: dict[str, str] = {}
    async with (
        conn.cursor() as cur,
        cur.copy(f"COPY catalog_products ({rows.PRODUCT_COLUMNS}, {rows.IDENTITY_COLUMNS}) FROM STDIN") as copy,
    ):
        # The server stores a chunk while the next one is normalized.
        for chunk in reading.chunks(new, _COPIED):
            lines = []
            for item, product in chunk:
                product_id = next(ids)
                identity = rows.identity_line(menu.dispensary_id, menu.provider, product, at)
                lines.append(f"{rows.product_line(product_id, item.content_hash, product)}\t{identity}\n")
            await copy.write("".join(lines))
            written += len(lines)
            descriptions |= brand_descriptions(product for _, product in chunk)
    await keep_brand_descriptions(conn, descriptions)
    return written


async def _merge_changed(
    conn: AsyncConnection[Any], menu: MenuToApply, changed: Sequence[_Item], reading: _Reading, applied: Applied
) -> None:
    """Writes products whose items differ from the stored ones."""
    for chunk in reading.chunks(changed, _MERGED):
        products = []
        for item, product in chunk:
            assert item.row is not None, "a changed product has a row"
            products.append(rows.changed_row(item.row, item.content_hash, product))
        await keep_brand_descriptions(conn, brand_descriptions(product for _, product in chunk))
        cursor = await conn.execute(
            _q.merge_changed,
            {"products": rows.dump(products), "crawled_at": menu.crawled_at, "previous": menu.previous},
        )
        row = await cursor.fetchone()
        assert row is not None, "an aggregate gives a row"
        really, returned, prices, stock, newly_oos, found = row
        assert found == len(products), "every changed product has a row"
        applied.changed += really
        applied.unchanged += found - really
        applied.returned += returned
        applied.price_changes += prices
        applied.stock_changes += stock
        applied.out_of_stock += newly_oos


class _Gap(NamedTuple):
    """A known product without a state in this crawl; `seen` is when it was last seen, None for unchanged."""

    row: int
    misses: int
    seen: datetime | None
    declared_oos: bool
    counted: bool


def _gaps(menu: MenuToApply, known: Iterable[_Known], items: _Sorted, reading: _Reading) -> list[_Gap]:
    """Returns the gaps of known products that were not written: absent ones, and present ones that cannot be read."""
    written = items.same | {item.row for item in items.changed}
    gaps = []
    for row in known:
        if row.id in reading.unread_rows:
            # The product is present, so its run of misses ends; its current values are unknown.
            gaps.append(_Gap(row.id, 0, menu.crawled_at, declared_oos=False, counted=False))
        elif row.id in written or row.misses == MISSES_UNTIL_OOS:
            continue
        elif says_nothing(whole=menu.whole, nameless=bool(items.nameless), long_unseen=row.long_unseen):
            # A gap without a miss, because absence is not certain.
            gaps.append(_Gap(row.id, row.misses, None, declared_oos=False, counted=False))
        else:
            step = absent(row.misses)
            gaps.append(_Gap(row.id, step.misses, None, step.declared_oos, counted=True))
    return gaps


async def _record_gaps(conn: AsyncConnection[Any], menu: MenuToApply, gaps: Sequence[_Gap], applied: Applied) -> None:
    if not gaps:
        return
    declared = [gap.row for gap in gaps if gap.declared_oos]
    await conn.execute(
        _q.record_gaps,
        {
            "ids": [gap.row for gap in gaps],
            # The third miss is written with the new state below, because three misses mean out of stock.
            "misses": [min(gap.misses, MISSES_UNTIL_OOS - 1) for gap in gaps],
            "seen": [gap.seen for gap in gaps],
            "previous": menu.previous,
        },
    )
    applied.missing = sum(gap.counted for gap in gaps)
    if declared:
        cursor = await conn.execute(_q.declare_oos, {"ids": declared, "crawled_at": menu.crawled_at})
        row = await cursor.fetchone()
        assert row is not None, "an aggregate gives a row"
        applied.out_of_stock += row[0]
        applied.stock_changes += row[1]


async def apply_menu(
    conn: AsyncConnection[Any], menu: MenuToApply, reader: Reader, *, examine: Examine | None = None
) -> Applied:
    """Applies one menu. The caller holds a transaction and the store's row, and the menu is newer than the last one applied.

    Raises SuspectMenu if too many items are malformed, or if `examine` does; the caller must then roll back.
    """
    cursor = await conn.execute(
        _q.known_products,
        {"dispensary_id": menu.dispensary_id, "provider": menu.provider, "long_ago": menu.crawled_at - LONG_UNSEEN},
        binary=True,
    )
    known = [_Known(*row) for row in await cursor.fetchall()]
    if not menu.items and not menu.trusted:
        raise SuspectMenu("the menu holds no item")
    items = _sort(menu, known, reader)
    if examine is not None:
        await examine(conn, items.unknown)
    applied = Applied(unknown=items.unknown)
    reading = _Reading(reader, applied.warnings, menu)
    if items.nameless:
        reading.nameless(items.nameless)
    applied.new = await _copy_new(conn, menu, items.new, reading)
    applied.unchanged = len(items.same)
    await _merge_changed(conn, menu, items.changed, reading, applied)
    applied.products = applied.new + applied.changed + applied.unchanged
    await _record_gaps(conn, menu, _gaps(menu, known, items, reading), applied)
    await conn.execute(
        _q.record_crawl,
        {
            "dispensary_id": menu.dispensary_id,
            "crawled_at": menu.crawled_at,
            "payload_id": menu.payload_id,
            "warnings": rows.dump(applied.warnings),
            **applied.counts(),
        },
    )
    return applied


async def ensure_partition(pool: Pool, instant: datetime) -> None:
    """Makes sure that states ending at `instant` have a partition; run before the transaction that writes them."""
    async with pool.connection() as conn:
        await conn.execute(_q.ensure_partition, {"instant": instant})
