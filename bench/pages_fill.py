"""Fills a database like one that has watched two thousand stores for a month: bench/pages/fill.sql, one store crawled for real, and
what follows from both."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from menuwatch.analytics import refresh as figures
from menuwatch.archive import store as payloads
from menuwatch.archive.document import Document
from menuwatch.archive.files import FileArchive
from menuwatch.archive.store import NewPayload
from menuwatch.db.pool import Connection, Pool
from menuwatch.matching.engine import match_all
from menuwatch.matching.locations.engine import match_locations
from menuwatch.pipeline import product_refresh
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.storefront.indexer import index_all_stores
from refresh import new_store
from volume import Goods
from volume import Sizes as GoodsSizes

PLATFORM = Dutchie()
FILL = Path(__file__).parent / "pages" / "fill.sql"
Told = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much of it; `states` are changes of a product, at a mean."""

    stores: int = 2000
    products: int = 500
    tasks: int = 1_000_000
    days: int = 30
    states: float = 5.64


def statements(sizes: Sizes, now: datetime) -> list[str]:
    """The statements of the fill, with their numbers in them."""
    text = FILL.read_text()
    text = re.sub(r"(?<!:):(stores|products|tasks|days|states)\b", lambda found: str(getattr(sizes, found[1])), text)
    text = text.replace("now()", f"'{now.isoformat()}'::timestamptz")
    return [
        piece
        for piece in text.split("\n\n")
        if "".join(line for line in piece.splitlines() if not line.startswith("--")).strip()
    ]


async def fill(pool: Pool, sizes: Sizes, storage: Path, told: Told) -> None:
    """Everything, into an empty database."""
    now = datetime.now(UTC).replace(microsecond=0)
    async with pool.connection() as conn:
        await conn.execute(
            "SET synchronous_commit = off; SET work_mem = '1GB'; SET maintenance_work_mem = '1GB'; SET jit = off"
        )
        for statement in statements(sizes, now):
            started = time.perf_counter()
            cursor = await conn.execute(statement.encode())
            seconds = time.perf_counter() - started
            if seconds > 2:
                first = next(line for line in statement.splitlines() if not line.startswith("--"))
                told(f"{seconds:6.1f} s  {cursor.rowcount:>10,} rows  {first[:70]}")
        await conn.execute("RESET work_mem; RESET maintenance_work_mem; RESET synchronous_commit; RESET jit")
        await real_store(conn, storage, now)
        await conn.execute("VACUUM (ANALYZE)")
    for name, work in {
        "figures": lambda: figures.refresh(pool),
        "canonical products": lambda: match_all(pool),
        "locations": lambda: match_locations(pool),
        "what shoppers see": lambda: index_all_stores(pool),
    }.items():
        started = time.perf_counter()
        await work()  # type: ignore[no-untyped-call]
        told(f"{time.perf_counter() - started:6.1f} s  {name}")
    async with pool.connection() as conn:
        await conn.execute("VACUUM (ANALYZE)")


async def real_store(conn: Connection, storage: Path, now: datetime) -> None:
    """One store whose menus lie in the archive, so that there are payloads to read and to compare."""
    sizes = GoodsSizes(stores=1, products=500, crawls=2, changing=0.1, days=1)
    goods, archive = Goods(sizes), FileArchive(storage)
    store_id = await new_store(conn, PLATFORM, "real-store")
    for crawl in range(2):
        at = now - timedelta(hours=5 - 4 * crawl)
        menu = tuple(goods.menu(1, crawl))
        staged = archive.stage(
            store_id, Document(platform="dutchie", platform_dispensary_id="real-store", fetched_at=at, pages=menu)
        )
        payload_id = await payloads.insert(
            conn,
            NewPayload(
                task_id=None,
                dispensary_id=store_id,
                platform="dutchie",
                status="ok",
                product_count=500,
                page_count=len(menu),
                fetched_at=at,
                path=staged.path,
                bytes=staged.size,
                raw_bytes=staged.raw_size,
                sha256=staged.sha256,
                content_sha256=staged.content_sha256,
            ),
        )
        archive.publish(staged)
        payload = await payloads.get(conn, payload_id)
        assert payload is not None, "it was just written"
        async with conn.transaction():
            await product_refresh.apply_payload(
                conn, payload, PLATFORM, [item for page in menu for item in PLATFORM.split(page)]
            )


async def freshen(conn: Connection) -> None:
    """What is alive in a database that was kept gives its signs anew."""
    await conn.execute("UPDATE worker_registry SET last_heartbeat_at = now() WHERE status <> 'stopped'")
    await conn.execute("UPDATE task_live SET last_heartbeat_at = now() WHERE state = 'a' AND started_at IS NOT NULL")
    await conn.execute("UPDATE task_schedules SET next_run_at = now() + interval '3 hours'")


async def counts(conn: Connection) -> dict[str, int]:
    """How much there is, from the planner's own counts."""
    names = {
        "tasks": ("task_live", "task_history"),
        "stores": ("dispensaries",),
        "products": ("catalog_products",),
        "product_history": ("product_history",),
        "crawls": ("store_crawls",),
        "payloads": ("raw_crawl_payloads",),
        "attempts": ("fetch_attempts",),
    }
    found = {}
    for name, tables in names.items():
        cursor = await conn.execute(
            "SELECT coalesce(sum(c.reltuples), 0)::bigint FROM unnest(%s::text[]) n(name), pg_partition_tree(n.name::regclass) t"
            " JOIN pg_class c ON c.oid = t.relid WHERE t.isleaf AND c.reltuples > 0",
            [list(tables)],
        )
        found[name] = (await cursor.fetchone() or [0])[0]
        cursor = await conn.execute(
            "SELECT coalesce(sum(reltuples), 0)::bigint FROM pg_class WHERE relname = ANY (%s) AND relkind = 'r' AND reltuples > 0",
            [list(tables)],
        )
        found[name] = found[name] or (await cursor.fetchone() or [0])[0]
    return found


def decode(body: bytes) -> object:
    """An answer of the API."""
    return msgspec.json.decode(body)
