"""What a catalogue of millions costs: does a menu still cost what it cost at first, how fast is history found, how large is it.

    python bench/volume.py [--stores 2000] [--products 500] [--crawls 6] [--changing 0.1] [--days 20] [--json]

Every store is crawled `--crawls` times, `--days` apart, through the code that applies a menu (`product_refresh.apply_payload`), on one
connection to one embedded server with its default durability. In each crawl but the first, `--changing` of the products have another
price (half of them) or another quantity. The menu's bytes are made before the clock starts.

    cost_growth              what a product costs at the end over what it cost at the beginning, both as multiples of the same work
                             done in between in a small database on the same server, so that what else the machine does cancels out; of
                             first crawls (last quarter of the stores over the first) and later ones (last over second) the larger
    history_p95_ms           the history of one product: its states and gaps, newest first
    menu_p95_ms              the whole menu of one store as it was at an instant
    bytes_per_snapshot       past states and crawls with all their indexes, over products times crawls
    parquet_bytes_per_snapshot   the same snapshots as `menuwatch export snapshots --format parquet` writes them
    dataset_bytes_per_snapshot   the same history, one row per option and state, as `menuwatch publish` writes it
    publish_*_seconds            a first publish, one of the unchanged database, and one after another crawl of every store
    peak_rss_mb              of this process
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg

from menuwatch.archive import store as payloads
from menuwatch.archive.store import NewPayload
from menuwatch.catalog import changes, history
from menuwatch.catalog import service as products
from menuwatch.catalog.changes import ChangeFilter
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.catalog.service import ProductFilter, Span
from menuwatch.core import logging as telemetry
from menuwatch.db import embedded, migrate
from menuwatch.db.pool import Connection, connect
from menuwatch.exports.tables import ExportTable, Format
from menuwatch.ops import export
from menuwatch.ops import publish as publishing
from menuwatch.ops.publish import Published
from menuwatch.pipeline import product_refresh
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.sim.dutchie import render_product
from menuwatch.sim.market import Market
from refresh import new_store

PLATFORM = Dutchie()
_ID = re.compile(rb'"_id":"([0-9a-f]{24})"')
_COUNTED = ("quantity", "quantityAvailable")
CONTROLS = 40
"""Menus of the small database in each crawl."""
QUERIES = 500
HISTORY = "product_history"
CATALOGUE = "catalog_products"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much of it."""

    stores: int
    products: int
    crawls: int
    changing: float
    days: float

    def at(self, crawl: int) -> datetime:
        """When a crawl was."""
        return START - timedelta(days=self.days * (self.crawls - crawl))


START = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def pages(items: Sequence[bytes]) -> list[bytes]:
    """The items as the platform would answer them."""
    size = PLATFORM.per_page
    cut = [items[i : i + size] for i in range(0, len(items), size)]
    head = b'{"data":{"filteredProducts":{"products":['
    tail = b'],"queryInfo":{"totalCount":%d,"totalPages":%d}}}}' % (len(items), len(cut))
    return [head + b",".join(page) + tail for page in cut]


class Goods:
    """The items of one menu, as any store offers them."""

    def __init__(self, sizes: Sizes) -> None:
        market = Market(seed=sizes.products, stores=1, products=sizes.products)
        shop = market.stores[0]
        self._items = [render_product(shelf, shop) for shelf in market.menu(shop, 0)]
        self._sizes = sizes
        if len(self._items) != sizes.products:
            raise SystemExit(f"the market offers {len(self._items)} of {sizes.products} products")

    def menu(self, store: int, crawl: int) -> list[bytes]:
        """The pages of a store's menu; equal arguments give equal bytes."""
        times = [0] * len(self._items)
        for earlier in range(1, crawl + 1):
            chosen = random.Random(store * 1_000 + earlier)
            for i in chosen.sample(range(len(times)), round(len(times) * self._sizes.changing)):
                times[i] += 1
        return pages([self._item(i, store, changes) for i, changes in enumerate(times)])

    def _item(self, i: int, store: int, changes: int) -> bytes:
        item = self._items[i]
        found = _ID.search(item)
        assert found is not None, "an item has an id"
        old = found[1]
        item = item.replace(old, b"%08x" % store + old[8:]).replace(b"/dutchie-images/", b"/dutchie-images/%x-" % store)
        if not changes:
            return item
        raw = json.loads(item)
        counted = [
            *((row, "inventory") for row in raw.get("manualInventory") or []),
            *((row, name) for row in (raw.get("POSMetaData") or {}).get("children") or [] for name in _COUNTED),
        ]
        if i % 2 and counted:
            for row, name in counted:
                row[name] = 10 + changes
        else:
            for key in ("Prices", "recPrices", "medicalPrices"):
                raw[key] = [price + changes for price in raw.get(key) or []]
        return json.dumps(raw, separators=(",", ":"), ensure_ascii=False).encode()


async def apply(conn: Connection, store_id: int, menu: Sequence[bytes], at: datetime) -> tuple[float, dict[str, Any]]:
    """Seconds from bytes to commit, and what was applied. The payload's row is the fetch's work, and made before."""
    payload_id = await payloads.insert(
        conn,
        NewPayload(
            task_id=None, dispensary_id=store_id, platform="dutchie", status="ok", product_count=1, fetched_at=at,
            path=f"payloads/{store_id}/{at.isoformat()}", bytes=1, raw_bytes=1, sha256="", content_sha256="",
        ),
    )  # fmt: skip
    payload = await payloads.get(conn, payload_id)
    assert payload is not None, "it was just written"
    started = time.perf_counter()
    items = [item for page in menu for item in PLATFORM.split(page)]
    async with conn.transaction():
        result = await product_refresh.apply_payload(conn, payload, PLATFORM, items)
    return time.perf_counter() - started, result


def _as_meant(applied: dict[str, Any], sizes: Sizes) -> None:
    """A few goods have neither a price nor a count, so that nothing about them changes."""
    meant = sizes.products * sizes.changing
    assert 0.9 * meant - 2 <= applied["changed"] <= meant + 1, applied


@dataclass(slots=True)
class Crawl:
    """Seconds per menu, here and in the small database meanwhile."""

    here: list[float] = field(default_factory=list)
    control: list[tuple[int, float]] = field(default_factory=list)
    """By the number of the menu that came after it."""
    changed: int = 0
    """Products that differed from the crawl before."""
    seconds: float = 0.0
    rss_mb: float = 0.0

    def relative(self, first: float = 0.0, last: float = 1.0) -> float:
        """A menu's cost as a multiple of the control's, of a stretch of the crawl."""
        low, high = int(len(self.here) * first), int(len(self.here) * last)
        control = [seconds for number, seconds in self.control if low <= number < high]
        return statistics.median(self.here[low:high]) / statistics.median(control)


class Control:
    """The same work in a database of a few menus."""

    def __init__(self, conn: Connection, sizes: Sizes, goods: Goods) -> None:
        self._conn, self._sizes, self._goods = conn, sizes, goods
        self._stores = 0
        self._fixed = 0
        self._crawls = 0

    async def first(self) -> float:
        """A first crawl of a store that is then removed."""
        self._stores += 1
        store_id = await new_store(self._conn, PLATFORM, f"control-{self._stores}")
        seconds, applied = await apply(self._conn, store_id, self._goods.menu(self._stores, 0), START)
        assert applied["new"] == self._sizes.products, applied
        await self._conn.execute("DELETE FROM dispensaries WHERE id = %s", [store_id])
        return seconds

    async def later(self) -> float:
        """One more crawl of a store that stays."""
        if not self._fixed:
            self._fixed = await new_store(self._conn, PLATFORM, "control")
            await apply(self._conn, self._fixed, self._goods.menu(0, 0), START)
        self._crawls += 1
        at = START + timedelta(seconds=self._crawls)
        # The number of changes is the same for every crawl, since each is told against the one before.
        seconds, applied = await apply(self._conn, self._fixed, self._goods.menu(0, self._crawls), at)
        _as_meant(applied, self._sizes)
        return seconds


async def fill(
    conn: Connection, control: Control, sizes: Sizes, goods: Goods, told: Callable[[str], None]
) -> list[Crawl]:
    """All crawls of all stores, one after the other."""
    ids = [await new_store(conn, PLATFORM, f"bench-{store}") for store in range(sizes.stores)]
    every = max(1, sizes.stores // CONTROLS)
    crawls = []
    for crawl in range(sizes.crawls):
        at = sizes.at(crawl)
        await conn.execute("SELECT ensure_product_history_partition(%s)", [at])
        found = Crawl()
        for number, store_id in enumerate(ids):
            if number % every == 0:
                found.control.append((number, await (control.first() if crawl == 0 else control.later())))
            seconds, applied = await apply(
                conn, store_id, goods.menu(number + 1, crawl), at + timedelta(seconds=number)
            )
            if crawl == 0:
                assert applied["new"] == sizes.products, applied
            else:
                _as_meant(applied, sizes)
                found.changed += applied["changed"]
            found.here.append(seconds)
        found.seconds = sum(found.here)
        found.rss_mb = psutil.Process().memory_info().rss / 1e6
        crawls.append(found)
        told(
            f"crawl {crawl + 1}: {sizes.stores * sizes.products / found.seconds:,.0f} products/s,"
            f" median {1e6 * statistics.median(found.here) / sizes.products:,.1f} us a product,"
            f" {found.relative():.3f} of the small database's, {found.rss_mb:,.0f} MB"
        )
    return crawls


async def percentile(asks: Iterator[Callable[[], Awaitable[Any]]]) -> tuple[float, float]:
    """Median and 95th percentile in milliseconds; the first tenth warms up and does not count."""
    times = []
    for ask in asks:
        started = time.perf_counter()
        await ask()
        times.append(1e3 * (time.perf_counter() - started))
    counted = sorted(times[len(times) // 10 :])
    return statistics.median(counted), counted[int(len(counted) * 0.95)]


async def ask(conn: Connection, sizes: Sizes) -> dict[str, tuple[float, float]]:
    """How long readers wait."""
    chosen = random.Random(1)
    lowest, highest = (await (await conn.execute("SELECT min(id), max(id) FROM catalog_products")).fetchone()) or (0, 0)
    stores = [row[0] for row in await (await conn.execute("SELECT id FROM dispensaries ORDER BY id")).fetchall()]
    ids = [chosen.randint(lowest, highest) for _ in range(QUERIES)]
    some = [chosen.choice(stores) for _ in range(QUERIES)]
    span = (START - sizes.at(0)).total_seconds()
    instants = [sizes.at(0) + timedelta(seconds=chosen.random() * span) for _ in range(QUERIES)]
    return {
        "history": await percentile((lambda i=i: history.get_history(conn, i, Span())) for i in ids),  # type: ignore[misc]
        "snapshots": await percentile((lambda i=i: history.list_snapshots(conn, i, Span())) for i in ids),  # type: ignore[misc]
        "menu_at": await percentile(
            (lambda s=s, t=t: history.list_menu_items(conn, s, t))
            for s, t in zip(some, instants, strict=True)  # type: ignore[misc]
        ),
        "menu_page": await percentile(
            (lambda s=s: products.list_products(conn, ProductFilter(stores=[s]))) for s in some
        ),  # type: ignore[misc]
        "changes": await percentile(
            (lambda t=t: changes.list_changes(conn, ChangeFilter(span=Span(until=t)))) for t in instants
        ),  # type: ignore[misc]
    }


async def sizes_on_disk(conn: Connection) -> dict[str, int]:
    """Bytes with indexes, by table."""
    found = {}
    for name, query in {
        HISTORY: "SELECT sum(pg_relation_size(relid, 'main') + pg_relation_size(relid, 'fsm') + pg_relation_size(relid, 'vm')"
        f" + coalesce(pg_total_relation_size(nullif(c.reltoastrelid, 0)), 0)) FROM pg_partition_tree('{HISTORY}') t"
        " JOIN pg_class c ON c.oid = t.relid WHERE isleaf",
        f"{HISTORY} indexes": f"SELECT sum(pg_indexes_size(relid)) FROM pg_partition_tree('{HISTORY}') WHERE isleaf",
        "store_crawls": "SELECT pg_total_relation_size('store_crawls')",
        CATALOGUE: "SELECT pg_total_relation_size('catalog_products')",
    }.items():
        row = await (await conn.execute(query)).fetchone()
        found[name] = int(row[0] or 0) if row else 0
    return found


def _control_of(url: str) -> str:
    """The address of another database of the server."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path="/control"))


async def run(sizes: Sizes, told: Callable[[str], None]) -> dict[str, Any]:
    """Everything, on a server of its own."""
    with tempfile.TemporaryDirectory(prefix="menuwatch-bench-") as folder:
        url, stack = embedded.start(Path(folder) / "postgres")
        with stack:
            migrate.migrate(url)
            with psycopg.connect(url, autocommit=True) as admin:
                admin.execute("CREATE DATABASE control")
            migrate.migrate(_control_of(url))
            async with await connect(url) as conn, await connect(_control_of(url)) as other:
                return await measure(conn, other, sizes, Path(folder), told)


async def measure(
    conn: Connection, other: Connection, sizes: Sizes, folder: Path, told: Callable[[str], None]
) -> dict[str, Any]:
    """Fills `conn`'s database and asks it; `other` is the small one."""
    goods = Goods(sizes)
    await other.execute("SELECT ensure_product_history_partition(%s)", [START])
    control = Control(other, sizes, goods)
    for _ in range(3):  # as in a worker that has run for a while: statements are prepared, code is warm
        await control.first()
        await control.later()
    crawls = await fill(conn, control, sizes, goods, told)
    await conn.execute("VACUUM (ANALYZE)")
    snapshots = sizes.stores * sizes.products * sizes.crawls
    disk = await sizes_on_disk(conn)
    told("on disk: " + ", ".join(f"{name} {size / 1e6:,.0f} MB" for name, size in disk.items()))
    waits = await ask(conn, sizes)
    told("ms, median and p95: " + ", ".join(f"{name} {a:.1f} {b:.1f}" for name, (a, b) in waits.items()))
    file = folder / "snapshots.parquet"
    started = time.perf_counter()
    await export.to_file(
        conn, export.ExportRequest(what=ExportTable.SNAPSHOTS, fmt=Format.PARQUET), file, ParquetPartitions(folder)
    )
    rate = snapshots / (time.perf_counter() - started)
    told(f"export of snapshots: {rate:,.0f} rows/s, {file.stat().st_size / 1e6:,.0f} MB of Parquet")
    published, seconds = await publish(conn, folder)
    files = list((folder / "dataset/data/price_history").rglob("*.parquet"))
    dataset = sum(file.stat().st_size for file in files)
    told(
        f"publish: {sum(published.rows.values()):,} rows in {seconds:.1f} s; history: {published.rows['price_history']:,} rows, "
        f"{len(files)} files, {dataset / 1e6:,.1f} MB"
    )
    past = await (await conn.execute(f"SELECT count(*) FROM {HISTORY}")).fetchone()
    unchanged = await publish(conn, folder)
    assert not unchanged[0].rows_read, unchanged
    for number, (store_id,) in enumerate(
        await (await conn.execute("SELECT id FROM dispensaries ORDER BY id")).fetchall()
    ):
        await apply(
            conn, store_id, goods.menu(number + 1, sizes.crawls), sizes.at(sizes.crawls) + timedelta(seconds=number)
        )
    later = await publish(conn, folder)
    told(
        f"published again: {unchanged[1]:.1f} s; after one more crawl: {later[1]:.1f} s, {later[0].rows_read:,} rows read, "
        f"{later[0].written} of {later[0].files} files written"
    )
    version = await (await conn.execute("SHOW server_version")).fetchone()
    growth = [crawls[0].relative(0.75, 1.0) / crawls[0].relative(0.0, 0.25)]
    if len(crawls) > 2:
        growth.append(crawls[-1].relative() / crawls[1].relative())
    kept = sum(size for name, size in disk.items() if name != CATALOGUE)
    return {
        "cost_growth": round(max(growth), 3),
        "history_p95_ms": round(waits["history"][1], 2),
        "menu_p95_ms": round(waits["menu_at"][1], 2),
        "bytes_per_snapshot": round(kept / snapshots, 2),
        "parquet_bytes_per_snapshot": round(file.stat().st_size / snapshots, 2),
        "dataset_bytes_per_snapshot": round(dataset / snapshots, 2),
        "dataset_rows": published.rows["price_history"],
        "publish_seconds": round(seconds, 1),
        "publish_unchanged_seconds": round(unchanged[1], 1),
        "publish_crawl_seconds": round(later[1], 1),
        "publish_crawl_rows_read": later[0].rows_read,
        "peak_rss_mb": _peak_mb(),
        "snapshots": snapshots,
        "changes": sum(one.changed for one in crawls),
        "product_history": past[0] if past else 0,
        "growth_first_crawls": round(growth[0], 3),
        "growth_later_crawls": round(growth[-1], 3),
        "catalogue_bytes_per_product": round(disk[CATALOGUE] / (sizes.stores * sizes.products)),
        "disk": disk,
        "waits_ms": {name: {"median": round(a, 2), "p95": round(b, 2)} for name, (a, b) in waits.items()},
        "crawls": [
            {
                "products_per_s": round(sizes.stores * sizes.products / one.seconds),
                "median_us_per_product": round(1e6 * statistics.median(one.here) / sizes.products, 1),
                "of_control": round(one.relative(), 3),
                "rss_mb": round(one.rss_mb),
            }
            for one in crawls
        ],
        "export_rows_per_s": round(rate),
        "postgresql": re.split(r"\s", version[0] if version else "?")[0],
        "python": sys.version.split()[0],
    }


async def publish(conn: Connection, folder: Path) -> tuple[Published, float]:
    """Publishes the database to a dataset below `folder`; returns also the seconds."""
    started = time.perf_counter()
    published = await publishing.publish(
        conn, ParquetPartitions(folder), publishing.open_destination(str(folder / "dataset"), None), title="Bench",
        licence=None, keep_versions=2, now=START,
    )  # fmt: skip
    return published, time.perf_counter() - started


def _peak_mb() -> int:
    """The most memory that this process has had, in MB. `ru_maxrss` would tell that of whoever started it, where that was more: it is
    handed on at a fork and kept at an exec."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return round(int(line.split()[1]) / 1024)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--stores", type=int, default=2_000)
    parser.add_argument("--products", type=int, default=500, help="of each store")
    parser.add_argument("--crawls", type=int, default=6, help="of each store")
    parser.add_argument(
        "--changing", type=float, default=0.1, help="share of a menu that differs from the crawl before"
    )
    parser.add_argument("--days", type=float, default=20.0, help="between two crawls of a store")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    telemetry.configure("console", "warning")  # standard output is for the report
    if args.stores < 8 or args.products < 10 or args.crawls < 1 or not 0 < args.changing <= 1 or args.days <= 0:
        parser.error("at least 8 stores, 10 products and 1 crawl; --changing is a share above 0, --days above 0")
    sizes = Sizes(
        stores=args.stores, products=args.products, crawls=args.crawls, changing=args.changing, days=args.days
    )
    told = (
        (lambda line: print(line, file=sys.stderr, flush=True)) if args.json else (lambda line: print(line, flush=True))
    )
    report = asyncio.run(run(sizes, told))
    if args.json:
        print(json.dumps(report))
        return
    for name in (
        "cost_growth",
        "history_p95_ms",
        "menu_p95_ms",
        "bytes_per_snapshot",
        "parquet_bytes_per_snapshot",
        "dataset_bytes_per_snapshot",
        "peak_rss_mb",
    ):
        print(f"{name:28} {report[name]:>10,}")


if __name__ == "__main__":
    main()
