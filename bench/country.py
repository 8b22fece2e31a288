"""A whole country: what a day's crawl, history, matching, analytics and the public site cost with millions of products.

    python bench/country.py [--keep DIR] [--stores 12000] [--products 600] [--processes 1,2,4] [--json]

Menus of Dutchie are written to the archive: for a first day, for a day of each number of `--processes`, and for a last one. Items are
those of the simulated market, with names of bench/matching/market.py (17 listings for each true product), so no two stores have the
same menu. From one day to the next a tenth of each menu differs: one product in 200 is replaced by a new one, of the others half have
another price, half another quantity. The menus of a day are then applied by `menuwatch worker` processes, through the task queue and
from the archive, on an embedded server with its default durability. Matching, the public site's index and data quality wait
until a day is applied, so that each is measured apart; in an installation they go on meanwhile.

With `--keep`, database, archive and figures (country.json) stay in that folder, and a run that ended goes on with its next step.
`--only-crawls` leaves out `first_refresh`, `refresh` and `site_day`.

    first_day, days[]   seconds from the first claim to the last commit, products per second, the largest memory of one worker process
    refresh             matching, index of the public site, analytics and data quality after the last day, each in seconds
    site_day            one day more with two processes, while 50 pages of the public site a second are asked for: milliseconds from
                        the time at which a page was due to the first byte of its answer
    history_p95_ms      the history of one product: its states and gaps, newest first
    menu_p95_ms         the whole menu of one store as it was at an instant
    bytes_per_snapshot  past states and crawls with all their indexes, over products times crawls
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit
from uuid import NAMESPACE_DNS, uuid5

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import psutil  # noqa: E402

import sheet  # noqa: E402
from matching import market  # noqa: E402
from menuwatch.analytics import refresh as analytics  # noqa: E402
from menuwatch.archive import store as payloads  # noqa: E402
from menuwatch.archive.document import Document  # noqa: E402
from menuwatch.archive.files import FileArchive  # noqa: E402
from menuwatch.archive.store import NewPayload  # noqa: E402
from menuwatch.catalog import history  # noqa: E402
from menuwatch.catalog.service import Span  # noqa: E402
from menuwatch.config.settings import Settings  # noqa: E402
from menuwatch.core import gc_tuning as collector  # noqa: E402
from menuwatch.core import logging as telemetry  # noqa: E402
from menuwatch.db import embedded, migrate, sql  # noqa: E402
from menuwatch.db.pool import Connection, Pool, connect, open_pool  # noqa: E402
from menuwatch.matching.engine import match_all  # noqa: E402
from menuwatch.platforms.dutchie.adapter import Dutchie  # noqa: E402
from menuwatch.platforms.registry import platforms  # noqa: E402
from menuwatch.quality import check as quality  # noqa: E402
from menuwatch.queue import store as tasks  # noqa: E402
from menuwatch.queue.model import NewTask, Role  # noqa: E402
from menuwatch.sim.dutchie import render_product  # noqa: E402
from menuwatch.sim.market import Market  # noqa: E402
from menuwatch.storefront.indexer import index_all_stores  # noqa: E402
from menuwatch.stores import store as stores  # noqa: E402
from menuwatch.stores.store import Details  # noqa: E402
from pages import expanded, samples, server  # noqa: E402
from pages_addresses import PAGES  # noqa: E402
from volume import pages as menu_pages  # noqa: E402
from volume import percentile, sizes_on_disk  # noqa: E402

PLATFORM = Dutchie()
CHANGING = 0.1
NEW = 0.005
PER_TRUE_PRODUCT = 17
QUERIES = 500
LOCKS = (
    sql.load("menuwatch.matching", "engine.sql").take_lock,
    sql.load("menuwatch.storefront", "indexer.sql").take_lock,
    sql.load("menuwatch.quality", "measure.sql").take_lock,
)
"""While somebody has them, nothing is matched, indexed or measured."""
PAGES_PER_SECOND = 50
SITE_SECONDS = 20.0
TYPES = {
    "flower": "Flower", "Flower": "Flower", "preroll": "Pre-Rolls", "Pre-Rolls": "Pre-Rolls",
    "vaporizer": "Vaporizers", "Vaporizers": "Vaporizers", "concentrate": "Concentrate",
    "Concentrates": "Concentrate", "edible": "Edible", "Edibles": "Edible",
}  # fmt: skip
"""The platform's product types, by the generator's categories."""
CITIES = (
    ("Portland", "OR", "97204", 45.52, -122.68), ("Denver", "CO", "80202", 39.75, -104.99), ("Detroit", "MI", "48226", 42.33, -83.05),
    ("Boston", "MA", "02108", 42.36, -71.06), ("Phoenix", "AZ", "85004", 33.45, -112.07), ("Las Vegas", "NV", "89101", 36.17, -115.14),
    ("Chicago", "IL", "60602", 41.88, -87.63), ("Newark", "NJ", "07102", 40.74, -74.17), ("Seattle", "WA", "98101", 47.61, -122.33),
    ("Sacramento", "CA", "95814", 38.58, -121.49), ("Albuquerque", "NM", "87102", 35.08, -106.65),
    ("Philadelphia", "PA", "19102", 39.95, -75.17),
)  # fmt: skip
"""Name, state, ZIP code and position; stores lie within half a degree of them."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much of it."""

    stores: int
    products: int
    days: int

    @property
    def new(self) -> int:
        """Products of a menu that are replaced each day."""
        return max(1, round(self.products * NEW))

    def at(self, day: int) -> datetime:
        """When the menus of a day were fetched: a day apart, the last ones an hour ago."""
        now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        return now - timedelta(days=self.days - 1 - day, hours=1)


def key(store: int) -> str:
    """The platform's id of a store."""
    return f"{store + 1:024x}"


class Items:
    """The items of menus as JSON, from templates of the simulated market: each has one option, and its own name, ids and figures."""

    def __init__(self) -> None:
        source = Market(seed=7, stores=8, products=300)
        self._templates: dict[str, list[bytes]] = {}
        for store in source.stores:
            for product in source.menu(store, 0):
                raw = json.loads(render_product(product, store))
                children = (raw.get("POSMetaData") or {}).get("children") or []
                if len(raw["Options"]) == 1 and len(children) == 1 and raw["Status"] == "Active":
                    self._templates.setdefault(raw["type"], []).append(_template(raw))
        few = [kind for kind in set(TYPES.values()) if len(self._templates.get(kind, [])) < 10]
        assert not few, f"the simulated market has few items of {few}"

    def item(self, store: str, listing: dict[str, Any], product: int, number: int, price: int, quantity: int) -> bytes:
        """One item of a store's menu. `product` is the number of the true product, `number` that of the listing among all."""
        templates = self._templates[TYPES[listing["category"]]]
        brand = listing["brand"]
        return templates[number % len(templates)] % {
            b"store": store.encode(),
            b"name": json.dumps(listing["name"]).encode(),
            b"brand": json.dumps(brand).encode(),
            b"brand_id": b"null" if brand is None else b'"%s"' % str(uuid5(NAMESPACE_DNS, brand.lower())).encode(),
            b"id": b"%024x" % (number + 0x5F00_0000_0000_0000),
            b"image": b"%032x" % product,
            b"pos": b"%d" % (number + 10_000_000),
            b"option": listing["sizes"][0].encode(),
            b"price": b"%d" % price,
            b"special": b"%d" % (price - price // 5),
            b"quantity": b"%d" % quantity,
        }


def _template(raw: dict[str, Any]) -> bytes:
    """An item whose own values are named parameters."""
    image = "http://images.invalid/dutchie-images/@image@"
    raw |= {
        "_id": "@id@",
        "id": "@id@",
        "Name": "@name@",
        "brandName": "@brand@",
        "brandId": "@brand_id@",
        "Image": image,
    }
    raw["DispensaryID"] = "@store@"
    raw["brand"] = {
        **(raw["brand"] or {}),
        "id": "@brand_id@",
        "_id": "@brand_id@",
        "name": "@brand@",
        "imageUrl": None,
    }
    raw["images"] = [{"url": image, "description": "", "active": True, "__typename": "Products_Images"}]
    raw["Options"] = ["@option@"]
    for key in ("Prices", "recPrices", "medicalPrices"):
        raw[key] = ["@price@"] if raw.get(key) else raw.get(key)
    for key in ("recSpecialPrices", "medicalSpecialPrices"):
        raw[key] = ["@special@"] if raw.get(key) else raw.get(key)
    if raw.get("rawOptions"):
        raw["rawOptions"] = ["@option@"]
    for special in raw.get("specialIdsPerOption") or []:
        special["option"] = "@option@"
    pos = raw["POSMetaData"]
    (child,) = pos["children"]
    child |= {"option": "@option@", "quantity": "@quantity@", "quantityAvailable": "@quantity@", "price": "@price@"}
    child |= {"recPrice": "@price@", "kioskQuantityAvailable": "@quantity@"}
    for part in (pos, child):
        part |= {"canonicalID": "@pos_text@", "canonicalSKU": "@pos_text@", "canonicalPackageId": "@pos_text@"}
        part |= {"canonicalName": "@name@", "canonicalBrandName": "@brand@", "canonicalImgUrl": image}
    text = json.dumps(raw, separators=(",", ":"), ensure_ascii=False).encode().replace(b"%", b"%%")
    for name in ("name", "brand", "brand_id", "price", "special", "quantity"):
        text = text.replace(b'"@%s@"' % name.encode(), b"%%(%s)b" % name.encode())
    for name in ("id", "image", "option", "store"):
        text = text.replace(b"@%s@" % name.encode(), b"%%(%s)b" % name.encode())
    return text.replace(b"@pos_text@", b"%(pos)b")


class Menus:
    """The menus of all stores."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._items = Items()
        self._each = sizes.products + sizes.new * (sizes.days - 1)
        self._products = market.products(max(1_000, sizes.stores * sizes.products // PER_TRUE_PRODUCT), seed=1)

    def days(self, store: int) -> Iterator[list[bytes]]:
        """The items of a store's menu, day by day; equal arguments give equal bytes."""
        sizes, rng = self._sizes, random.Random(store)
        listings = list(market.store_listings(self._products, store, self._each, seed=1))
        rng.shuffle(listings)
        held, spare = list(range(sizes.products)), list(range(sizes.products, self._each))
        prices = [rng.randint(15, 70) for _ in listings]
        counts = [rng.randint(1, 80) for _ in listings]

        def item(place: int) -> bytes:
            listing, product = listings[place]
            return self._items.item(key(store), listing, product, store * 1_000 + place, prices[place], counts[place])

        menu = [item(place) for place in held]
        yield menu
        for _ in range(1, sizes.days):
            menu = menu[:]
            chosen = rng.sample(range(sizes.products), round(sizes.products * CHANGING))
            for n, at in enumerate(chosen):
                if n < sizes.new:
                    held[at] = spare.pop()
                elif n % 2:
                    prices[held[at]] += 1
                else:
                    counts[held[at]] += 1
                menu[at] = item(held[at])
            yield menu


async def _write_menus(url: str, storage: Path, sizes: Sizes, part: int, parts: int) -> None:
    """Adds every `parts`-th store, with all its menus in the archive."""
    menus, archive = Menus(sizes), FileArchive(storage)
    async with await connect(url) as conn:
        for store in range(part, sizes.stores, parts):
            async with conn.transaction():
                store_id = await _add_store(conn, store)
                for day, items in enumerate(menus.days(store)):
                    await _archive(conn, archive, store_id, store, sizes.at(day) + timedelta(milliseconds=store), items)


async def _add_store(conn: Connection, store: int) -> int:
    city, state, code, latitude, longitude = CITIES[store % len(CITIES)]
    rng = random.Random(store)
    name = f"Green Door {store}"
    details = Details(
        platform_dispensary_id=key(store), slug=f"green-door-{store}", name=name, name_raw=name,
        address=f"{rng.randint(1, 9_000)} Main St", city=city, state=state, country="US", zipcode=code,
        latitude=latitude + rng.uniform(-0.5, 0.5), longitude=longitude + rng.uniform(-0.5, 0.5),
        enterprise_id=f"chain-{store // 8}" if store % 3 == 0 else None,
    )  # fmt: skip
    store_id, _ = await stores.promote(conn, PLATFORM.name, details)
    return store_id


async def _archive(
    conn: Connection, archive: FileArchive, store_id: int, store: int, at: datetime, items: Sequence[bytes]
) -> None:
    menu = tuple(menu_pages(items))
    staged = archive.stage(
        store_id, Document(platform=PLATFORM.name, platform_dispensary_id=key(store), fetched_at=at, pages=menu)
    )
    await payloads.insert(
        conn,
        NewPayload(
            task_id=None, dispensary_id=store_id, platform=PLATFORM.name, status="ok", product_count=len(items),
            page_count=len(menu), fetched_at=at, path=staged.path, bytes=staged.size, raw_bytes=staged.raw_size,
            sha256=staged.sha256, content_sha256=staged.content_sha256,
        ),
    )  # fmt: skip
    archive.publish(staged)


def _write_part(*args: Any) -> None:
    asyncio.run(_write_menus(*args))


def write_archive(url: str, storage: Path, sizes: Sizes) -> dict[str, Any]:
    """All stores and menus, by as many processes as there are processors."""
    started, parts = time.perf_counter(), os.cpu_count() or 1
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_part, args=(url, storage, sizes, part, parts)) for part in range(parts)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    if any(writer.exitcode for writer in writers):
        raise SystemExit("the archive could not be written")
    return {"seconds": round(time.perf_counter() - started, 1)}


async def crawl_day(url: str, home: Path, sizes: Sizes, day: int, processes: int) -> dict[str, Any]:
    """Has worker processes apply the menus of a day."""
    async with await connect(url) as conn:
        await conn.execute("CHECKPOINT")
        cursor = await conn.execute(
            "SELECT id, dispensary_id FROM raw_crawl_payloads p WHERE applied_at IS NULL AND NOT EXISTS"
            " (SELECT FROM raw_crawl_payloads e WHERE e.dispensary_id = p.dispensary_id AND e.applied_at IS NULL"
            " AND e.fetched_at < p.fetched_at) ORDER BY id"
        )
        due = [
            NewTask(role=Role.PRODUCT_REFRESH, dispensary_id=store, payload={"payload_id": number}, unique=False)
            for number, store in await cursor.fetchall()
        ]
        # A worker does not start without a proxy, though these fetch nothing.
        await conn.execute("INSERT INTO proxies (host, port) VALUES ('127.0.0.1', 9) ON CONFLICT DO NOTHING")
        first = (await (await conn.execute("SELECT coalesce(max(id), 0) FROM worker_tasks")).fetchone() or (0,))[0]
        for start in range(0, len(due), 1_000):
            await tasks.enqueue(conn, due[start : start + 1_000])
        async with await connect(url) as holder:
            for statement in LOCKS:
                taken = await (await holder.execute(statement)).fetchone()
                assert taken == (True,), "matching, indexing and data quality wait"
            memory = await _work(conn, url, home, processes)
        cursor = await conn.execute(
            "SELECT extract(epoch FROM max(completed_at) - min(started_at))::float8, count(*),"
            " coalesce(sum((result->>'changed')::int), 0), coalesce(sum((result->>'new')::int), 0)"
            " FROM worker_tasks WHERE role = 'product_refresh' AND id > %s AND status = 'completed'",
            [first],
        )
        seconds, done, changed, new = await cursor.fetchone() or (0, 0, 0, 0)
    assert done == len(due), f"{done} of {len(due)} tasks completed"
    assert new == (sizes.products if day == 0 else sizes.new) * done, f"day {day}: {new} new products"
    products = done * sizes.products
    return {
        "day": day, "processes": processes, "seconds": round(seconds, 1), "menus": done, "changed": changed, "new": new,
        "products_per_second": round(products / seconds), "us_per_product": round(1e6 * seconds / products, 2),
        "worker_mb": round(memory / 1e6),
    }  # fmt: skip


def _started(command: Sequence[str], environment: Mapping[str, str], log: IO[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


async def _work(conn: Connection, url: str, home: Path, processes: int) -> int:
    """Runs workers until nothing waits; the largest memory of one of their processes, in bytes."""
    environment = {
        **os.environ, "DATABASE_URL": url, "MENUWATCH_HOME": str(home), "STORAGE_PATH": str(home / "storage"),
        "WORKER_ROLE": "product_refresh", "CPU_BACKOFF_THRESHOLD": "1", "LOG_LEVEL": "error",
    }  # fmt: skip
    command = [sys.executable, "-m", "menuwatch.cli.main", "worker", "--workers", str(processes)]
    memory = 0
    with (home / "workers.log").open("w") as log, _started(command, environment, log) as process:
        try:
            while True:
                await asyncio.sleep(1)
                if process.poll() is not None:
                    raise SystemExit(f"the workers ended: {(home / 'workers.log').read_text()[-2_000:]}")
                parent = psutil.Process(process.pid)
                for one in (parent, *parent.children(recursive=True)):
                    with contextlib.suppress(psutil.Error):
                        memory = max(memory, one.memory_info().rss)
                cursor = await conn.execute(
                    "SELECT EXISTS (SELECT FROM worker_tasks WHERE role = 'product_refresh' AND completed_at IS NULL)"
                )
                if not (await cursor.fetchone() or [False])[0]:
                    return memory
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


async def refresh(url: str, progress: Progress) -> dict[str, float]:
    """What follows from menus that were applied, in seconds."""
    found: dict[str, float] = {}

    async def check(pool: Pool) -> None:
        normalizers = {name: one.normalizer_version for name, one in platforms(Settings()).items()}
        async with pool.connection() as conn:
            await conn.set_autocommit(True)
            while (result := await quality.check(conn, normalizers)) is not None and result.menus:
                pass

    async with open_pool(url, max_size=3) as pool:
        for name, work in {
            "matching": match_all,
            "site": index_all_stores,
            "analytics": analytics.refresh,
            "quality": check,
        }.items():
            started = time.perf_counter()
            await work(pool)
            found[name] = round(time.perf_counter() - started, 1)
            progress(f"  {name}: {found[name]} s")
    return found


async def ask(url: str, sizes: Sizes) -> dict[str, Any]:
    """How long readers of history wait, and how large it is."""
    chosen = random.Random(1)
    async with await connect(url) as conn:
        lowest, highest = (await (await conn.execute("SELECT min(id), max(id) FROM catalog_products")).fetchone()) or (
            0,
            0,
        )
        ids = [row[0] for row in await (await conn.execute("SELECT id FROM dispensaries ORDER BY id")).fetchall()]
        some = [chosen.randint(lowest, highest) for _ in range(QUERIES)]
        span = (sizes.at(sizes.days - 1) - sizes.at(0)).total_seconds()
        instants = [
            (chosen.choice(ids), sizes.at(0) + timedelta(seconds=chosen.random() * span)) for _ in range(QUERIES)
        ]
        times = {
            "history": await percentile((lambda i=i: history.get_history(conn, i, Span())) for i in some),  # type: ignore[misc]
            "menu": await percentile((lambda s=s, t=t: history.list_menu_items(conn, s, t)) for s, t in instants),  # type: ignore[misc]
        }
        disk = await sizes_on_disk(conn)
        crawls = (await (await conn.execute("SELECT count(*) FROM store_crawls")).fetchone() or [0])[0]
        states = (await (await conn.execute("SELECT count(*) FROM product_history")).fetchone() or [0])[0]
    past = sum(size for name, size in disk.items() if name != "catalog_products")
    return {
        **{f"{name}_p50_ms": round(p50, 2) for name, (p50, _) in times.items()},
        **{f"{name}_p95_ms": round(p95, 2) for name, (_, p95) in times.items()},
        "bytes_per_snapshot": round(past / (crawls * sizes.products), 2), "past_states": states, "crawls": crawls,
        "mb": {name: round(size / 1e6) for name, size in disk.items()},
    }  # fmt: skip


async def vacuum(url: str) -> dict[str, float]:
    """After the first day, as autovacuum would have done by the next."""
    started = time.perf_counter()
    async with await connect(url) as conn:
        await conn.execute("VACUUM (ANALYZE)")
    return {"seconds": round(time.perf_counter() - started, 1)}


async def _first_byte(address: tuple[str, int], connections: asyncio.Queue[Any], path: str, due: float) -> float:
    """Seconds from `due` to the first byte of the page; raises SystemExit for an error."""
    await asyncio.sleep(due - time.perf_counter())
    reader, writer = connections.get_nowait() if not connections.empty() else await asyncio.open_connection(*address)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {address[0]}\r\n\r\n".encode())
    first = await reader.readexactly(1)
    took = time.perf_counter() - due
    head = first + await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0]:
        raise SystemExit(f"{path} gave {head[:200]!r}")
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    assert length is not None, "a page says how long it is"
    await reader.readexactly(int(length[1]))
    connections.put_nowait((reader, writer))
    return took


async def _ask_site(base: str, paths: Sequence[str], seconds: float) -> list[float]:
    """First-byte times of pages that are asked for at a steady rate, whether or not the earlier ones were answered."""
    parts, connections = urlsplit(base), asyncio.Queue[Any]()
    address = (parts.hostname or "127.0.0.1", parts.port or 80)
    order, start = random.Random(1), time.perf_counter() + 1
    asked = [
        _first_byte(address, connections, order.choice(paths), start + n / PAGES_PER_SECOND)
        for n in range(round(seconds * PAGES_PER_SECOND))
    ]
    return await asyncio.gather(*asked)


async def site_day(url: str, home: Path, sizes: Sizes) -> dict[str, Any]:
    """One day's crawl while visitors read the site. `alone` are the same pages without the crawl."""
    async with await connect(url) as conn:
        known = await samples(conn)
    paths = [
        path
        for template in PAGES
        if not template.startswith(("/admin", "/alerts"))
        for path in expanded(template, known)
    ]
    found: dict[str, Any] = {"pages": len(paths)}
    with server(url, home) as base:
        await _ask_site(base, paths, 10)
        for name, beside in (("alone", False), ("beside_crawl", True)):
            crawl = asyncio.create_task(crawl_day(url, home, sizes, sizes.days - 1, 2)) if beside else None
            await asyncio.sleep(5 if beside else 0)
            times = sorted(await _ask_site(base, paths, SITE_SECONDS))
            if crawl is not None:
                found["ended_before_crawl"] = not crawl.done()
                found["crawl"] = await crawl
            found[name] = {
                "requests": len(times), **{f"first_byte_{p}_ms": round(1e3 * times[int(len(times) * share)], 1)
                for p, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))},
            }  # fmt: skip
    return found


class Report:
    """Figures of the steps that are done, in a file."""

    def __init__(self, path: Path, progress: Progress) -> None:
        self._path, self._progress = path, progress
        self.found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def step(self, name: str, work: Callable[[], Any]) -> None:
        """Does the step unless it was done."""
        if name in self.found:
            return
        self._progress(f"{name} …")
        self.found[name] = work()
        self._path.write_text(json.dumps(self.found, indent=2))
        self._progress(f"{name}: {json.dumps(self.found[name])}")


def run(
    home: Path, sizes: Sizes, processes: Sequence[int], last: str, only_crawls: bool, progress: Progress
) -> dict[str, Any]:
    """All steps up to `last` that are not done."""
    home.mkdir(parents=True, exist_ok=True)
    url, stack = embedded.start(home / "postgres")
    report = Report(home / "country.json", progress)
    with stack:
        migrate.migrate(url)
        steps: dict[str, Callable[[], Any]] = {
            "archive": lambda: write_archive(url, home / "storage", sizes),
            "first_day": lambda: asyncio.run(crawl_day(url, home, sizes, 0, os.cpu_count() or 1)),
            "vacuum": lambda: asyncio.run(vacuum(url)),
            "first_refresh": lambda: asyncio.run(refresh(url, progress)),
            **{
                f"day_{day}": lambda day=day, count=count: asyncio.run(crawl_day(url, home, sizes, day, count))  # type: ignore[misc]
                for day, count in enumerate(processes, 1)
            },
            "refresh": lambda: asyncio.run(refresh(url, progress)),
            "site_day": lambda: asyncio.run(site_day(url, home, sizes)),
            "history": lambda: asyncio.run(ask(url, sizes)),
        }
        if last and last not in steps:
            raise SystemExit(f"--until must be one of {', '.join(steps)}")
        for name, work in steps.items():
            if not (only_crawls and name in ("first_refresh", "refresh", "site_day")):
                report.step(name, work)
            if name == last:
                break
    return {
        "machine": sheet.machine(),
        "stores": sizes.stores,
        "products": sizes.stores * sizes.products,
        **report.found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, help="folder in which the database and the archive are kept")
    parser.add_argument("--stores", type=int, default=12_000)
    parser.add_argument("--products", type=int, default=600, help="products of each menu")
    parser.add_argument("--processes", default="1,2,4", help="worker processes of each day, comma-separated")
    parser.add_argument("--until", default="", help="last step of this run; all by default")
    parser.add_argument("--only-crawls", action="store_true", help="leave out what follows from the menus")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    telemetry.configure("console", "warning")  # standard output is for the report
    collector.calm()  # as the commands that match, index and analyze do
    processes = [int(count) for count in args.processes.split(",")]
    sizes = Sizes(stores=args.stores, products=args.products, days=2 + len(processes))
    progress = lambda text: print(text, file=sys.stderr, flush=True)  # noqa: E731
    with contextlib.ExitStack() as stack:
        home = args.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="menuwatch-bench-")))
        report = run(home, sizes, processes, args.until, args.only_crawls, progress)
    if args.json:
        print(json.dumps(report))
        return
    for name, figures in report.items():
        print(f"{name}: {figures if isinstance(figures, str | int) else json.dumps(figures)}")


if __name__ == "__main__":
    main()
