"""What matching costs in the database, and whether numbers hold: the engine on an embedded server, on generated listings.

    python bench/matching_database.py [--json] [--listings 100000] [--per-store 500] [--refreshes 7]

The listings are of bench/matching/market.py, 17 for each true product. A quarter of the stores is held back as a second platform,
and a few for the refreshes. In this order, on one server with its default durability:

    first          all stores of the first platform, into an empty index
    refresh        one store after the other that is new to the index, each with `--per-store` listings: from the menu to the number
    unchanged      a menu without a change
    changed        a menu of which a tenth of the listings was renamed
    second         the stores of the second platform: listings of the first one that have another number, and the merges behind them
    rebuild        listings that have another number after all is made again
    shuffled       an empty index, the stores in another order, in four waves: listings that are grouped otherwise
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import psutil  # noqa: E402
from psycopg.types.json import Jsonb  # noqa: E402

import sheet  # noqa: E402
from matching import market  # noqa: E402
from menuwatch.db import embedded, migrate  # noqa: E402
from menuwatch.db.pool import Pool, open_pool  # noqa: E402
from menuwatch.matching.engine import Memory, match_all, match_changed_stores  # noqa: E402
from menuwatch.matching.rebuild import rebuild_index  # noqa: E402

AIM_SECONDS = 2.0
"""For the work after a refresh."""
_PER_PRODUCT = 17
_WAVES = 4
_START = datetime(2026, 3, 1, 12, tzinfo=UTC)
_COLUMNS = (
    "dispensary_id, provider, provider_product_id, content_hash, first_seen_at, state_from, changed_at, name_raw, name, "
    "brand_name_raw, brand_name, category, subcategory, stock_status, is_in_stock, variants, extra"
)
_STORE = (
    "INSERT INTO dispensaries (id, platform, platform_dispensary_id, slug, name, name_raw, enterprise_id, first_crawled_at, "
    "last_crawled_at) OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
Store = list[dict[str, Any]]
Numbers = dict[int, int]


def say(text: str) -> None:
    """Progress, which is no result."""
    print(text, file=sys.stderr, flush=True)


class Catalog:
    """The stores of the generator, and those that are in the database."""

    def __init__(self, pool: Pool, listings: int, per_store: int) -> None:
        self.pool = pool
        self.stores: dict[int, Store] = defaultdict(list)
        count = listings // per_store
        rows = market.listings(listings, count, max(1_000, listings // _PER_PRODUCT))
        for at, (row, _) in enumerate(rows):
            self.stores[at // per_store + 1].append(row)

    async def add(self, numbers: Iterable[int], platform: str) -> None:
        """Puts the menus of these stores into the catalog."""
        async with self.pool.connection() as conn, conn.transaction():
            for number in numbers:
                menu, at = self.stores[number], _START + timedelta(seconds=number)
                seller, name = menu[0]["seller"], menu[0]["store"]
                values = (number, platform, f"{number:024x}", f"store-{number}", name, name, seller, at, at)
                await conn.execute(_STORE, values)
                async with conn.cursor().copy(f"COPY catalog_products ({_COLUMNS}) FROM STDIN") as copy:
                    for row in menu:
                        await copy.write_row(_cells(number, platform, row, at))

    async def menu_of(self, number: int) -> None:
        """Says that a store has a new menu."""
        query = "UPDATE dispensaries SET last_crawled_at = last_crawled_at + interval '1 day' WHERE id = %s"
        await self.rows(query, number)

    async def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        async with self.pool.connection() as conn:
            cursor = await conn.execute(query.encode(), values or None)
            return await cursor.fetchall() if cursor.description else []

    async def numbers(self) -> Numbers:
        """The canonical product of each listing."""
        return dict(await self.rows("SELECT product_id, canonical_product_id FROM product_matches"))


def _cells(store: int, platform: str, row: Mapping[str, Any], at: datetime) -> tuple[Any, ...]:
    variants = [{"option": size, "price_rec": 30, "stock_status": "in_stock"} for size in row["sizes"]]
    name, brand, item = row["name"], row["brand"], row["listing_id"]
    where = (store, platform, item, b"", at, at, at, name, name, brand, brand)
    return (*where, row["category"], row["subcategory"], "in_stock", True, Jsonb(variants), Jsonb({}))


async def _timed(work: Any) -> tuple[float, Any]:
    started = time.perf_counter()
    result = await work
    return time.perf_counter() - started, result


def differing(before: Numbers, after: Numbers) -> int:
    """Listings whose groups are other ones than before, whatever their numbers are."""
    groups: list[dict[int, frozenset[int]]] = []
    for numbers in (before, after):
        members: dict[int, set[int]] = defaultdict(set)
        for listing, number in numbers.items():
            members[number].add(listing)
        groups.append({one: frozenset(all_) for all_ in members.values() for one in all_})
    return sum(groups[0].get(one) != groups[1].get(one) for one in groups[0] | groups[1])


async def measure(catalog: Catalog, refreshes: int) -> dict[str, Any]:
    """All figures."""
    stores = sorted(catalog.stores)
    per_store = len(catalog.stores[1])
    held = len(stores) // 4
    second = stores[-held:]
    fresh = stores[-held - refreshes : -held]
    first = stores[: -held - refreshes]
    await catalog.add(first, "dutchie")
    await catalog.rows("VACUUM ANALYZE")
    say(f"first: {len(first):,} stores")
    seconds, run = await _timed(match_all(catalog.pool))
    found: dict[str, Any] = {"listings": per_store * len(stores), "stores": len(stores), "first": _first(seconds, run)}
    say(json.dumps(found["first"]))
    await catalog.rows("VACUUM ANALYZE")
    memory = Memory()
    await match_changed_stores(catalog.pool, memory=memory, wait=True)
    found["refresh"] = await _refreshes(catalog, fresh, memory, "new")
    say(f"refresh: {found['refresh']}")
    found["unchanged"] = await _refreshes(catalog, first[:refreshes], memory, "unchanged")
    found["changed"] = await _refreshes(catalog, first[refreshes : 2 * refreshes], memory, "changed")
    say(f"unchanged, changed: {found['unchanged']}, {found['changed']}")
    found["second"] = await _second(catalog, second, per_store)
    say(f"second: {found['second']}")
    seconds, rebuilt = await _timed(rebuild_index(catalog.pool))
    found["rebuild"] = {"seconds": round(seconds, 1), "changed": rebuilt.changed, "merged": rebuilt.merged}
    say(f"rebuild: {found['rebuild']}")
    found["shuffled"] = await _shuffled(catalog, stores)
    say(f"shuffled: {found['shuffled']}")
    ((version,),) = await catalog.rows("SHOW server_version")
    load = [round(one, 1) for one in psutil.getloadavg()]
    return {"machine": sheet.machine(), "postgresql": version, "load": load, **found}


def _first(seconds: float, run: Any) -> dict[str, Any]:
    taken = run.taken.listings
    return {
        "listings": taken,
        "seconds": round(seconds, 1),
        "listings_per_second": round(taken / seconds),
        "blocks": run.blocks.blocks,
        "products": run.blocks.products,
        "failed": run.failed,
    }


async def _refreshes(catalog: Catalog, stores: Sequence[int], memory: Memory, kind: str) -> dict[str, float]:
    """Seconds of the work after the menu of each store, as the loop does it."""
    took = []
    for number in stores:
        if kind == "new":
            await catalog.add([number], "dutchie")
        else:
            await catalog.menu_of(number)
        if kind == "changed":
            query = "UPDATE catalog_products SET name = name || ' Reserve' WHERE dispensary_id = %s AND id %% 10 = 0"
            await catalog.rows(query, number)
        started, more = time.perf_counter(), True
        while more:
            more = (await match_changed_stores(catalog.pool, memory=memory, wait=True)).more
        took.append(time.perf_counter() - started)
    return sheet.spread(took, 3)


async def _second(catalog: Catalog, stores: Sequence[int], per_store: int) -> dict[str, Any]:
    before = await catalog.numbers()
    ((last,),) = await catalog.rows("SELECT coalesce(max(id), 0) FROM match_events")
    await catalog.add(stores, "weedmaps")
    seconds, _ = await _timed(match_all(catalog.pool))
    after = await catalog.numbers()
    changed = {listing for listing, number in before.items() if after[listing] != number}
    redirects = dict(await catalog.rows("SELECT id, merged_into FROM canonical_products WHERE merged_into IS NOT NULL"))
    merged = {listing for listing in changed if redirects.get(before[listing]) == after[listing]}
    events = dict(await catalog.rows("SELECT kind, count(*) FROM match_events WHERE id > %s GROUP BY kind", last))
    return {
        "listings": per_store * len(stores),
        "seconds": round(seconds, 1),
        "of_first": len(before),
        "changed": len(changed),
        "of_them_by_merges": len(merged),
        "merged_products": events.get("merged", 0),
        "split_products": events.get("split", 0),
    }


async def _shuffled(catalog: Catalog, stores: Sequence[int]) -> dict[str, Any]:
    before = await catalog.numbers()
    await catalog.rows(
        "TRUNCATE product_matches, match_signatures, match_stores, match_dirty_blocks, match_events, match_reviews, canonical_sizes"
    )
    for statement in ("DELETE FROM canonical_products", "DELETE FROM brand_aliases", "DELETE FROM brands"):
        await catalog.rows(statement)
    order = list(stores)
    random.Random(1).shuffle(order)
    await catalog.rows("UPDATE dispensaries SET last_crawled_at = NULL")
    started = time.perf_counter()
    for wave in range(_WAVES):
        for at, number in enumerate(order[wave::_WAVES]):
            await catalog.rows(
                "UPDATE dispensaries SET last_crawled_at = %s WHERE id = %s", _START + timedelta(seconds=at), number
            )
        await match_all(catalog.pool)
    seconds = time.perf_counter() - started
    after = await catalog.numbers()
    return {"seconds": round(seconds, 1), "waves": _WAVES, "differing": differing(before, after)}


def text(found: Mapping[str, Any]) -> list[str]:
    """The figures for people."""
    refresh = found["refresh"]["median"]
    lines = [
        f"{found['machine']}, PostgreSQL {found['postgresql']}, load {found['load']}",
        f"{found['listings']:,} listings in {found['stores']:,} stores",
    ]
    lines += [
        f"{name:<10} {found[name]}" for name in ("first", "unchanged", "changed", "second", "rebuild", "shuffled")
    ]
    return [*lines, f"refresh    {found['refresh']} ({sheet.verdict(refresh, '<', AIM_SECONDS)})"]


async def run(args: argparse.Namespace) -> dict[str, Any]:
    """Everything, on a server of its own."""
    with tempfile.TemporaryDirectory(prefix="menuwatch-bench-") as folder:
        url, stack = embedded.start(Path(folder) / "postgres")
        with stack:
            migrate.migrate(url)
            async with open_pool(url) as pool:
                return await measure(Catalog(pool, args.listings, args.per_store), args.refreshes)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--listings", type=int, default=100_000)
    parser.add_argument("--per-store", type=int, default=500)
    parser.add_argument("--refreshes", type=int, default=7)
    args = parser.parse_args()
    found = asyncio.run(run(args))
    print(json.dumps(found) if args.json else "\n".join(text(found)))


if __name__ == "__main__":
    main()
