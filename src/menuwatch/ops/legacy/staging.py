"""Former rows read, checked, and staged in the database, with a report of those that are not taken: whatever their number, only one
of them is in memory at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.catalog.taxonomy.text import clean
from menuwatch.core.errors import Refused
from menuwatch.db import sql
from menuwatch.ops.legacy import fields
from menuwatch.ops.legacy.columns import PRODUCTS, SNAPSHOTS, STORES, Record
from menuwatch.ops.legacy.fields import Bad
from menuwatch.ops.legacy.sources import Line, Source
from menuwatch.platforms.base import Platform
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details

_q = sql.load(__package__, "importer.sql")
_PRODUCTS = "COPY former_products (old_id, dispensary_id, product_id, seen, item) FROM STDIN"
_SNAPSHOTS = "COPY former_snapshots (n, dispensary_id, product_id, old_product, at, item, place) FROM STDIN"
UNKNOWN_STORE = "its store is not known"


EXAMPLES = 3


@dataclass(slots=True)
class Tally:
    """The rows of one table. `taken` are new here; `skipped` counts the others by reason, with the first examples of each."""

    read: int = 0
    taken: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def skip(self, reason: str, example: str = "", count: int = 1) -> None:
        """Rows that are not taken."""
        self.skipped[reason] += count
        shown = self.examples.setdefault(reason, [])
        if example and len(shown) < EXAMPLES:
            shown.append(example)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        skipped = [
            {"reason": reason, "rows": count, "examples": self.examples.get(reason, [])}
            for reason, count in self.skipped.most_common()
        ]
        return {"read": self.read, "taken": self.taken, "skipped": skipped}


@dataclass(slots=True)
class Report:
    """All of it. `crawls` are menus that were put together from snapshots; `without_zone` are times that were taken as UTC."""

    dry_run: bool
    stores: Tally = field(default_factory=Tally)
    products: Tally = field(default_factory=Tally)
    snapshots: Tally = field(default_factory=Tally)
    proxies: Tally = field(default_factory=Tally)
    schedules: Tally = field(default_factory=Tally)
    payloads: Tally = field(default_factory=Tally)
    images: Tally = field(default_factory=Tally)
    """`read` counts files."""
    crawls: int = 0
    without_zone: int = 0
    failed: list[str] = field(default_factory=list)
    """Stores whose history could not be taken, with the reason."""

    @property
    def tallies(self) -> dict[str, Tally]:
        """By what they count."""
        names = ("stores", "products", "snapshots", "proxies", "schedules", "payloads", "images")
        return {name: getattr(self, name) for name in names}

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "dry_run": self.dry_run,
            **{name: tally.plain() for name, tally in self.tallies.items()},
            "crawls": self.crawls,
            "times_without_zone": self.without_zone,
            "failed": self.failed,
        }


class Staging(Struct):
    """Stages what a source has, on a connection of its own."""

    conn: AsyncConnection[Any]
    source: Source
    platforms: Mapping[str, Platform]
    report: Report
    now: datetime
    _by_number: dict[str, int | None] = {}
    """Former number of a store → ours; None for one that was not taken."""
    _by_platform: dict[tuple[str, str], int | None] = {}

    async def all(self) -> None:
        """Stores, products, snapshots."""
        for statement in (_q.create_products, _q.create_snapshots, _q.empty):
            await self.conn.execute(statement)
        if STORES in self.source.has:
            await self._stores()
        if PRODUCTS in self.source.has:
            await self._products()
        if SNAPSHOTS in self.source.has:
            await self._snapshots()
        await self._together()

    async def _stores(self) -> None:
        tally = self.report.stores
        async for line in self.source.lines(STORES):
            record = read(line, tally)
            if record is None:
                continue
            try:
                number = fields.text(record, "id", 200) or ""
                self._by_number[number] = None
                self._by_number[number] = await self._store(record, tally, line.place)
            except (Bad, Refused) as error:
                skip(tally, line, error)

    async def _store(self, record: Record, tally: Tally, place: str) -> int:
        """Our store for a former one, made where there is none."""
        platform = (fields.text(record, "platform") or "dutchie").lower()
        if platform not in self.platforms:
            raise Bad("its platform is not known", platform)
        url = fields.text(record, "menu_url", 2000)
        key = fields.text(record, "platform_id", 200)
        slug = fields.text(record, "slug", 200) or (self.platforms[platform].slug_of(url) if url else None)
        if key is None and slug is None:
            raise Bad("it has neither the platform's id nor a slug", "")
        name = fields.text(record, "name") or slug or key or ""
        state = fields.text(record, "state")
        details = Details(
            platform_dispensary_id=key or "",
            slug=slug or key or "",
            name=clean(name),
            name_raw=name,
            menu_url=url,
            address=fields.text(record, "address"),
            city=fields.text(record, "city"),
            state=state.upper() if state and len(state) == 2 else state,
            country=fields.text(record, "country"),
            zipcode=fields.text(record, "zipcode"),
            latitude=_degrees(record, "latitude", 90),
            longitude=_degrees(record, "longitude", 180),
            timezone=fields.text(record, "timezone"),
            phone=fields.text(record, "phone"),
            is_recreational=fields.flag(record, "is_recreational"),
            is_medical=fields.flag(record, "is_medical"),
        )
        enabled = fields.flag(record, "crawl_enabled")
        known = await stores.by_platform_id(self.conn, platform, key) if key else None
        if known is None and slug is not None:
            # One that is known by its address alone is the same shop; one with another id is another.
            by_slug = await stores.find(self.conn, slug, platform, by_name=False)
            if by_slug is not None and (key is None or by_slug.platform_dispensary_id is None):
                known = by_slug
        if known is not None:
            await stores.fill_in(self.conn, known.id, details)
            tally.skip("already exists; missing values were filled in", place)
            return known.id
        if key is not None:
            store_id, _ = await stores.promote(self.conn, platform, details)
        else:
            store_id = (await stores.add_by_url(self.conn, platform=platform, slug=details.slug, menu_url=url)).id
            await stores.fill_in(self.conn, store_id, details)
        if enabled is False:
            await stores.set_crawl_enabled(self.conn, store_id, False)
        tally.taken += 1
        return store_id

    async def store_of(self, record: Record) -> int | None:
        """Our store for the row of a product or snapshot; None where it does not say."""
        number = fields.text(record, "store", 200)
        if number is not None and number in self._by_number:
            found = self._by_number[number]
            if found is None:
                raise Bad("its store was not imported", number)
            return found
        key = fields.text(record, "platform_store", 200)
        if key is not None:
            platform = (fields.text(record, "provider") or "dutchie").lower()
            if (platform, key) not in self._by_platform:
                known = await stores.by_platform_id(self.conn, platform, key)
                self._by_platform[platform, key] = known.id if known else None
            known_id = self._by_platform[platform, key]
            if known_id is not None:
                return known_id
        if number is None and key is None:
            return None
        raise Bad(UNKNOWN_STORE, number or key)

    async def _products(self) -> None:
        tally = self.report.products
        batch: list[tuple[Any, ...]] = []
        async for line in self.source.lines(PRODUCTS):
            record = read(line, tally)
            if record is None:
                continue
            try:
                batch.append(await self._product(record))
            except Bad as error:
                skip(tally, line, error)
            if len(batch) >= 2000:
                await self._copy(_PRODUCTS, batch)
        await self._copy(_PRODUCTS, batch)

    async def _product(self, record: Record) -> tuple[Any, ...]:
        store = await self.store_of(record)
        product = fields.product_id(record)
        if store is None:
            raise Bad(UNKNOWN_STORE, product)
        if product is None:
            raise Bad("it has no id of its platform", fields.text(record, "name"))
        # Such a row is the current state: even if it says that the product is off the menu, its texts are useful.
        item = fields.item_of(record, fields.stock(record) or "oos")
        seen = self._instant(record, "seen")
        return (fields.text(record, "id", 200), store, product, seen, fields.encode(item).decode())

    async def _snapshots(self) -> None:
        tally = self.report.snapshots
        batch: list[tuple[Any, ...]] = []
        async for line in self.source.lines(SNAPSHOTS):
            record = read(line, tally)
            if record is None:
                continue
            try:
                batch.append((tally.read, *await self._snapshot(record), line.place))
            except Bad as error:
                skip(tally, line, error)
            if len(batch) >= 2000:
                await self._copy(_SNAPSHOTS, batch)
        await self._copy(_SNAPSHOTS, batch)

    async def _snapshot(self, record: Record) -> tuple[Any, ...]:
        store = await self.store_of(record)
        product, old = fields.product_id(record), fields.text(record, "product_row", 200)
        if product is None and old is None:
            raise Bad("it has no product name", None)
        at = self._instant(record, "at")
        if at is None:
            raise Bad("it has no time", product or old)
        if at > self.now:
            raise Bad("its time is in the future", at.isoformat())
        stock = fields.stock(record)
        # A row for an absent product is not part of the menu, but shows that there was one.
        item = None if stock is None else fields.encode(fields.item_of(record, stock)).decode()
        return (store, product, old, at, item)

    def _instant(self, record: Record, name: str) -> datetime | None:
        found = fields.instant(record, name)
        if found is None:
            return None
        self.report.without_zone += not found[1]
        return found[0]

    async def _copy(self, command: Any, batch: list[tuple[Any, ...]]) -> None:
        if batch:
            async with self.conn.cursor() as cursor, cursor.copy(command) as copy:
                for row in batch:
                    await copy.write_row(row)
            batch.clear()

    async def _together(self) -> None:
        """Products and snapshots find each other."""
        for statement in (_q.index_old_products, _q.index_products, _q.analyze):
            await self.conn.execute(statement)
        for (product,) in await self._all(_q.doubled):
            self.report.products.skip("duplicate: the last one is used", product)
        await self.conn.execute(_q.name_products)
        for place, product in await self._all(_q.unknown_products):
            self.report.snapshots.skip("its product is not known", f"{place}: {product}")
        await self.conn.execute(_q.index_snapshots)
        await self.conn.execute(_q.analyze)
        for (product,) in await self._all(_q.unseen_products):
            self.report.products.skip("no snapshot shows when it was on the menu", product)
        await self.conn.execute(_q.last_menus)

    async def _all(self, query: Any) -> list[tuple[Any, ...]]:
        return await (await self.conn.execute(query)).fetchall()


def read(line: Line, tally: Tally) -> Record | None:
    """The row, counted; None if it cannot be read."""
    tally.read += 1
    if line.wrong is not None:
        tally.skip(line.wrong, line.place)
        return None
    return line.record


def skip(tally: Tally, line: Line, error: Bad | Refused) -> None:
    """Counts a row that is not taken, with the reason."""
    if isinstance(error, Bad):
        reason, value = error.args
        tally.skip(reason, f"{line.place}: {value}" if value else line.place)
    else:
        tally.skip(str(error), line.place)


def _degrees(record: Record, name: str, most: int) -> float | None:
    value = fields.text(record, name)
    if value is None:
        return None
    found = fields.number(value)
    if found is None or abs(found) > most:
        raise Bad(f"{name} is none", value)
    return float(found)
