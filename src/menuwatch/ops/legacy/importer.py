"""Imports former stores, products and price history into the catalog, and proxies, schedules, payloads and images with them.

Snapshots of one store within half an hour form a menu, and menus are applied like those of crawls, oldest first, so misses and
states follow the same rules. One transaction per store; its crawls record what was imported, so an interrupted import can be started
again and skips what is there. For a store that Menuwatch has crawled itself, only the time before its first crawl is imported: it
is built as a separate store's history and joined to that crawl, so nothing of ours is overwritten.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from msgspec import Struct
from psycopg import AsyncConnection
from psycopg.rows import dict_row

from menuwatch.accounts import audit
from menuwatch.archive.files import FileArchive
from menuwatch.catalog import apply
from menuwatch.catalog import bad_row_isolation as net
from menuwatch.catalog.apply import MenuToApply
from menuwatch.core.encryption import SecretBox
from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.db.pool import Pool
from menuwatch.images.files import ImageFiles
from menuwatch.ops.legacy import fields
from menuwatch.ops.legacy.columns import TABLES
from menuwatch.ops.legacy.images import Images
from menuwatch.ops.legacy.payloads import Payloads
from menuwatch.ops.legacy.proxies_and_schedules import take_proxies, take_schedules
from menuwatch.ops.legacy.sources import Dump, Source
from menuwatch.ops.legacy.staging import Report, Staging
from menuwatch.platforms.base import Platform
from menuwatch.stores import store as stores

log = get_logger(__name__)
_q = sql.load(__package__, "importer.sql")
_NEVER = datetime(9999, 1, 1, tzinfo=UTC)
ONE_MENU = timedelta(minutes=30)
"""Snapshots of a store this near to the first are of the same crawl."""
MARK = '[{"field": "former", "message": "imported from the legacy system", "fatal": false, "product_id": null}]'
_SAME = '[{"field": "former"}]'
TAKEN = "already imported"
OURS = "Menuwatch already crawled the store at that time"
BETWEEN = "older than previously imported data"
_READER = fields.FormerItems()

OnProgress = Callable[[int, int], None]
"""Called with (stores done, total)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where files and secrets go. `folder` is the former storage root, None where payload files and images are not taken over."""

    archive: FileArchive
    secret_box: SecretBox
    image_hosts: Collection[str]
    folder: Path | None = None


class _Menu(Struct):
    """The rows of one crawl."""

    at: datetime
    rows: int = 0
    doubled: int = 0
    raw: dict[str, Any] = {}


async def take(
    pool: Pool,
    source: Source,
    *,
    platforms: Mapping[str, Platform],
    target: Target,
    now: datetime,
    dry_run: bool = False,
    on_progress: OnProgress = lambda done, of: None,
) -> Report:
    """Takes over what the source has that is not here; returns what was taken and what was not. With `dry_run` it is all undone, and
    no file is written.

    Raises Refused where a table lacks a column that is needed, before anything of that table is taken.
    """
    report = Report(dry_run=dry_run)
    async with pool.connection() as conn:
        try:
            if dry_run:
                async with conn.transaction(force_rollback=True):
                    await _take(conn, source, platforms, target, now, report, on_progress)
            else:
                await _take(conn, source, platforms, target, now, report, on_progress)
                counts = {name: tally.taken for name, tally in report.tallies.items()}
                await audit.record(conn, "legacy_imported", **counts)
        finally:
            if not dry_run and not conn.closed:
                await conn.execute("DISCARD TEMP")
    return report


async def _take(
    conn: AsyncConnection[Any],
    source: Source,
    platforms: Mapping[str, Platform],
    target: Target,
    now: datetime,
    report: Report,
    on_progress: OnProgress,
) -> None:
    staging = Staging(conn, source, platforms, report, now)
    await staging.all()
    await take_proxies(conn, source, report.proxies, target.secret_box)
    await take_schedules(conn, source, report.schedules, frozenset(platforms), now)
    await Payloads(conn, staging, target.archive, target.folder, report.dry_run).take()
    if not any(tally.read for tally in report.tallies.values()) and isinstance(source, Dump):
        raise Refused(
            f"{source.path} has no rows of {', '.join(TABLES)} in COPY sections: make the dump plain, without --inserts"
        )
    store_ids = [row[0] for row in await (await conn.execute(_q.former_stores)).fetchall()]
    for number, store_id in enumerate(store_ids):
        on_progress(number, len(store_ids))
        try:
            await _Store(conn, store_id, report).take()
        except (MenuwatchError, psycopg.DataError, psycopg.IntegrityError) as error:
            reason = str(error).partition("\n")[0]
            report.failed.append(f"store {store_id}: {reason}")
            log.warning("legacy store not imported", action="legacy_store_failed", store_id=store_id, error=reason)
    on_progress(len(store_ids), len(store_ids))
    if target.folder is not None:
        files = ImageFiles(target.archive.storage)
        await Images(conn, staging, files, target.folder, target.image_hosts, report.dry_run).take()
    here = report.products.read - report.products.taken - report.products.skipped.total()
    if here > 0:
        report.products.skip("already exists", count=here)


class _Store(Struct):
    """One store's history, in one transaction."""

    conn: AsyncConnection[Any]
    id: int
    report: Report
    provider: str = ""
    crawls: int = 0
    new: int = 0
    taken: int = 0
    last: datetime | None = None
    products: int = 0
    skipped: dict[str, int] = {}

    async def take(self) -> None:
        """Takes it; the report learns of it once it is committed."""
        # Partitions are made first: who makes one keeps others from making theirs until the transaction ends.
        for query in (_q.months_of, _q.own_months):
            for (month,) in await (await self.conn.execute(query, {"id": self.id})).fetchall():
                await self.conn.execute(_q.ensure_partition, {"instant": month})
        async with self.conn.transaction():
            await self.conn.execute(_q.keep_from_packing)
            store = await stores.lock(self.conn, self.id)
            if store is None:
                raise Refused("it was removed meanwhile")
            self.provider = store.platform
            async with aclosing(self._menus()) as menus:
                await self._history(menus)
        self.report.crawls += self.crawls
        self.report.products.taken += self.new
        self.report.snapshots.taken += self.taken
        for reason, count in self.skipped.items():
            self.report.snapshots.skip(reason, f"store {self.id}", count)

    async def _history(self, menus: AsyncIterator[_Menu]) -> None:
        async with self.conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_q.standing, {"id": self.id, "mark": _SAME})
            standing = await cursor.fetchone()
        assert standing is not None, "an aggregate gives a row"
        own, before = standing["own"], frozenset(standing["taken"])
        newest = max(before, default=None)
        target = self.id
        self.last = newest if own is None else None
        async for menu in menus:
            if menu.at in before:
                self._skip(TAKEN, menu)
            elif own is not None and menu.at >= own:
                self._skip(OURS, menu)
            elif newest is not None and (own is not None or menu.at <= newest):
                self._skip(BETWEEN, menu)
            else:
                if own is not None and target == self.id:
                    row = await (await self.conn.execute(_q.make_aside, {"id": self.id})).fetchone()
                    assert row is not None, "the store is there"
                    target = row[0]
                await self._apply(menu, target)
        if target != self.id:
            await self._join(target, own)
        elif self.crawls:
            assert self.last is not None, "a menu was applied"
            await stores.crawled(self.conn, self.id, crawled_at=self.last, payload_id=None, products=self.products)
            await self._date_first()

    def _skip(self, reason: str, menu: _Menu) -> None:
        self.skipped[reason] = self.skipped.get(reason, 0) + menu.rows

    async def _menus(self) -> AsyncGenerator[_Menu, None]:
        """The store's menus, the oldest first; only one of them is in memory."""
        menu: _Menu | None = None
        async with self.conn.cursor(name="former_menus", row_factory=dict_row) as cursor:
            cursor.itersize = 5000
            await cursor.execute(_q.rows_of, {"id": self.id})
            async for row in cursor:
                if menu is None or row["at"] >= menu.at + ONE_MENU:
                    if menu is not None:
                        yield menu
                    menu = _Menu(row["at"])
                real = row["n"] is not None
                menu.rows += real
                menu.doubled += real and row["product_id"] in menu.raw
                if row["item"] is None:
                    menu.raw.pop(row["product_id"], None)
                else:
                    menu.raw[row["product_id"]] = fields.whole(row["product_id"], row["item"], row["product"])
        if menu is not None:
            yield menu

    async def _apply(self, menu: _Menu, target: int) -> None:
        raw = list(menu.raw.values())
        applied = await net.apply_menu(self.conn, self._to_apply(target, menu.at, raw), _READER)
        await self.conn.execute(_q.mark, {"id": target, "at": menu.at, "mark": MARK})
        self.last, self.products = menu.at, applied.products
        self.crawls += 1
        self.new += applied.new
        self.taken += menu.rows - menu.doubled
        if menu.doubled:
            reason = "the product is on that menu twice: the last one is used"
            self.skipped[reason] = self.skipped.get(reason, 0) + menu.doubled

    def _to_apply(self, target: int, at: datetime, raw: list[Any]) -> MenuToApply:
        return MenuToApply(
            dispensary_id=target,
            provider=self.provider,
            payload_id=None,
            crawled_at=at,
            previous=self.last,
            items=raw,
            trusted=True,
        )

    async def _join(self, aside: int, own: datetime) -> None:
        """Puts the earlier history before the first crawl of ours."""
        which: dict[str, Any] = {"id": self.id, "aside": aside, "own": own}
        await self.conn.execute(_q.move_crawls, which)
        crawls = [row[0] for row in await (await self.conn.execute(_q.first_crawls, which)).fetchall()]
        for at in crawls:
            await self._settle({**which, "at": at})
            # What is left was absent from that crawl.
            await apply.apply_menu(self.conn, self._to_apply(aside, at, []), _READER)
            self.last = at
        await self._settle({**which, "at": _NEVER})
        await self.conn.execute(_q.move_product_history, which)
        await self.conn.execute(_q.move_products, which)
        await self._date_first()
        await self.conn.execute(_q.remove_aside, which)

    async def _settle(self, which: dict[str, Any]) -> None:
        for statement in (_q.join_states, _q.join_product_history, _q.join_products):
            await self.conn.execute(statement, which)

    async def _date_first(self) -> None:
        await self.conn.execute(_q.date_first_crawl, {"id": self.id})
