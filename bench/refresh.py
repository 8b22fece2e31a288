"""Products per second through decode → normalize → upsert → snapshot, beside the limit: a bare COPY of the same rows.

    python bench/refresh.py [--sizes 100,1000,5000] [--rounds 5] [--json]

For each menu size and round, on one connection to one embedded server with its default durability, alternating:

    copy       COPY of the rows that the first crawl writes into catalog_products, made beforehand, into a table without indexes
    first      a store's first crawl
    unchanged  the same menu again: other bytes around the items, other order of the items
    tenth      the same menu with the price of every tenth product changed

Times run from the archived pages' bytes to the commit, with the row of the crawl. Figures are medians over the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from menuwatch.archive import store as payloads
from menuwatch.archive.store import NewPayload
from menuwatch.catalog import copy_format as rows
from menuwatch.db import embedded, migrate
from menuwatch.db.pool import Connection, connect
from menuwatch.pipeline import product_refresh
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.sim.dutchie import render_product
from menuwatch.sim.market import Market
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details

START = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
PER_PAGE = 100
RATIOS = ("first_vs_copy", "unchanged_vs_first", "tenth_changed_vs_first")
PLATFORM = Dutchie()
COLUMNS = f"{rows.PRODUCT_COLUMNS}, {rows.IDENTITY_COLUMNS}"


def pages(items: Sequence[bytes]) -> list[bytes]:
    """The items as the platform would answer them."""
    cut = [items[i : i + PER_PAGE] for i in range(0, len(items), PER_PAGE)]
    head = b'{"data":{"filteredProducts":{"products":['
    tail = b'],"queryInfo":{"totalCount":%d,"totalPages":%d}}}}' % (len(items), len(cut))
    return [head + b",".join(page) + tail for page in cut]


def dearer(item: bytes) -> bytes:
    """The item with every price one dollar up."""
    raw = json.loads(item)
    for key in ("Prices", "recPrices", "medicalPrices"):
        raw[key] = [price + 1 for price in raw.get(key) or []]
    return json.dumps(raw, separators=(",", ":")).encode()


async def new_store(conn: Connection, name: str) -> int:
    store_id, _ = await stores.promote(
        conn, "dutchie", Details(platform_dispensary_id=name, slug=name, name=name, name_raw=name)
    )
    return store_id


async def crawl(conn: Connection, store_id: int, menu: Sequence[bytes], number: int) -> tuple[float, Any]:
    """Seconds from bytes to commit, and what was applied. The payload's row is the fetch's work, and made before."""
    at = START + timedelta(minutes=number)
    payload_id = await payloads.insert(
        conn,
        NewPayload(
            task_id=None, dispensary_id=store_id, platform="dutchie", status="ok", product_count=1, fetched_at=at,
            path=f"payloads/{store_id}/{number}", bytes=1, raw_bytes=1, sha256="", content_sha256="",
        ),
    )  # fmt: skip
    payload = await payloads.get(conn, payload_id)
    assert payload is not None
    started = time.perf_counter()
    items = [item for page in menu for item in PLATFORM.split(page)]
    async with conn.transaction():
        result = await product_refresh.apply_payload(conn, payload, PLATFORM, items)
    return time.perf_counter() - started, result


async def bare_copy(conn: Connection, lines: Sequence[str]) -> float:
    """Seconds that a COPY of ready lines into a table without indexes takes, to the commit."""
    await conn.execute("DROP TABLE IF EXISTS bare")
    await conn.execute("CREATE TABLE bare (LIKE catalog_products INCLUDING DEFAULTS)")
    blocks = ["".join(lines[i : i + 250]) for i in range(0, len(lines), 250)]
    started = time.perf_counter()
    async with conn.transaction(), conn.cursor() as cur, cur.copy(f"COPY bare ({COLUMNS}) FROM STDIN") as copy:
        for block in blocks:
            await copy.write(block)
    return time.perf_counter() - started


def copy_lines(items: Sequence[bytes]) -> list[str]:
    """What the first crawl of these items copies into catalog_products."""
    products = PLATFORM.normalize([msgspec.Raw(item) for item in items]).products
    at = START.isoformat()
    return [
        f"{rows.product_line(number, b'x' * 16, product)}\t{rows.identity_line(1, 'dutchie', product, at)}\n"
        for number, product in enumerate(products)
    ]


async def measure(conn: Connection, size: int, rounds: int) -> dict[str, Any]:
    """Medians of one menu size."""
    market = Market(seed=size, stores=1, products=size)
    shop = market.stores[0]
    items = [render_product(shelf, shop) for shelf in market.menu(shop, 0)]
    assert len(items) == size, f"the market offers {len(items)} of {size} products"
    first = pages(items)
    shuffled = items[:]
    random.Random(1).shuffle(shuffled)
    again = pages(shuffled)
    tenth = pages([dearer(item) if i % 10 == 0 else item for i, item in enumerate(items)])
    lines = copy_lines(items)
    times: dict[str, list[float]] = {"copy": [], "first": [], "unchanged": [], "tenth": []}
    for round_ in range(rounds):
        times["copy"].append(await bare_copy(conn, lines))
        store = await new_store(conn, f"bench-{size}-{round_}")
        seconds, applied = await crawl(conn, store, first, 0)
        assert applied["new"] == size, applied
        times["first"].append(seconds)
        seconds, applied = await crawl(conn, store, again, 1)
        assert applied["unchanged"] == size, applied
        times["unchanged"].append(seconds)
        seconds, applied = await crawl(conn, store, tenth, 2)
        assert applied["price_changes"] == len(range(0, size, 10)), applied
        times["tenth"].append(seconds)
    rate = {name: size / statistics.median(values) for name, values in times.items()}
    return {
        "products": size,
        "item_bytes": round(sum(map(len, items)) / size),
        **{f"{name}_per_s": round(value) for name, value in rate.items()},
        "first_vs_copy": round(rate["first"] / rate["copy"], 3),
        "unchanged_vs_first": round(rate["unchanged"] / rate["first"], 2),
        "tenth_changed_vs_first": round(rate["tenth"] / rate["first"], 2),
    }


async def run(sizes: Sequence[int], rounds: int) -> dict[str, Any]:
    """Everything, on a server of its own."""
    with tempfile.TemporaryDirectory(prefix="menuwatch-bench-") as folder:
        url, stack = embedded.start(Path(folder) / "postgres")
        with stack:
            migrate.migrate(url)
            async with await connect(url) as conn:
                await conn.execute("SELECT ensure_product_history_partition(%s)", [START])
                # As in a worker that has run for a while: statements are prepared, code is warm.
                await measure(conn, 100, 6)
                await conn.execute(
                    "TRUNCATE catalog_products, product_history, store_crawls, raw_crawl_payloads, dispensaries CASCADE"
                )
                found = [await measure(conn, size, rounds) for size in sizes]
                cursor = await conn.execute("SHOW server_version")
                version = (await cursor.fetchone() or ("?",))[0]
    return {
        # The headline is the largest menu: there the fixed cost of a transaction weighs least.
        **{key: found[-1][key] for key in RATIOS},
        "rounds": rounds,
        "postgresql": re.split(r"\s", version)[0],
        "python": sys.version.split()[0],
        "sizes": found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sizes", default="100,1000,5000", help="menu sizes, comma-separated")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions, of which the median counts")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    report = asyncio.run(run([int(size) for size in args.sizes.split(",")], args.rounds))
    if args.json:
        print(json.dumps(report))
        return
    print(
        f"PostgreSQL {report['postgresql']}, Python {report['python']}, medians of {report['rounds']} rounds; products per second"
    )
    headings = ("menu", "copy", "first", "unchanged", "1/10 new", "first/copy", "unchanged/first", "tenth/first")
    print("  ".join(f"{heading:>{max(9, len(heading))}}" for heading in headings))
    keys = ("products", "copy_per_s", "first_per_s", "unchanged_per_s", "tenth_per_s", *RATIOS)
    for row in report["sizes"]:
        print("  ".join(f"{row[key]:>{max(9, len(heading))},}" for key, heading in zip(keys, headings, strict=True)))


if __name__ == "__main__":
    main()
