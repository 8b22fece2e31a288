"""Products per second through decode → normalize → upsert → snapshot, beside the limit: a bare COPY of the same rows.

    python bench/refresh.py [--platform NAME,…|all] [--sample FILE] [--sizes 100,1000,5000] [--rounds 5] [--json]

For each menu size and round, on one connection to one embedded server with its default durability, alternating:

    copy       COPY of the rows that the first crawl writes into catalog_products, made beforehand, into a table without indexes
    first      a store's first crawl
    unchanged  the same menu again: other bytes around the items, other order of the items
    tenth      the same menu with the price of every tenth product changed

Times run from the archived pages' bytes to the commit, with the row of the crawl. Figures are medians over the rounds. Menus are
those of the simulated market; with `--sample FILE`, the items of a page of a platform that is not simulated, repeated with other
ids. Of several platforms, each one's cost per product is compared with Dutchie's: the aim is at most 1.5 times as much.
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
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import msgspec

from menuwatch.archive import store as payloads
from menuwatch.archive.store import NewPayload
from menuwatch.catalog import copy_format as rows
from menuwatch.config.settings import Settings
from menuwatch.core.http import Session
from menuwatch.db import embedded, migrate
from menuwatch.db.pool import Connection, connect
from menuwatch.pipeline import product_refresh
from menuwatch.platforms.base import Platform
from menuwatch.platforms.conformance.sample import Sample, leaves, replaced
from menuwatch.platforms.registry import platforms
from menuwatch.sim.local_session import LocalSession, simulated_platforms
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.platforms.samples import simulated_sample

START = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
RATIOS = ("first_vs_copy", "unchanged_vs_first", "tenth_changed_vs_first")
COLUMNS = f"{rows.PRODUCT_COLUMNS}, {rows.IDENTITY_COLUMNS}"


def sample(name: str, size: int, file: Path | None) -> Sample:
    """A menu of that platform: of the simulated market, as the adapter fetches it, or made of the items of a file."""
    if file is not None:
        recorded = Sample(adapter=platforms(Settings())[name], pages=[file.read_bytes()])
        return Sample(adapter=recorded.adapter, pages=[recorded.page(recorded.scaled(size))])
    session = LocalSession(name, products=size, seed=size)
    adapter = platforms(Settings(**session.settings))[name]
    menu = asyncio.run(adapter.fetch_menu(cast("Session", session), session.store.id))
    return simulated_sample(adapter, menu.pages)


def pages(menu: Sample, items: Sequence[bytes]) -> list[bytes]:
    """The items as the platform would answer them."""
    size = menu.adapter.per_page
    return [menu.page(items[i : i + size], len(items)) for i in range(0, len(items), size)]


class Dearer:
    """Items with another price. Where an item has its price is found by trying its numbers, as in the items before."""

    def __init__(self, adapter: Platform) -> None:
        self._adapter = adapter
        self._paths: list[tuple[str | int, ...]] = []

    def __call__(self, raw: bytes) -> bytes | None:
        """The item with its lowest price changed; None if that takes more than one number, as of two options with one price."""
        item, identity = msgspec.json.decode(raw), self._adapter.identity(msgspec.Raw(raw))
        before = price(self._adapter, raw)
        known = dict(leaves(item))
        for path in dict.fromkeys([*self._paths, *known]):
            if path not in known or (value := _more(known[path])) is None:
                continue
            changed = msgspec.json.encode(replaced(item, path, value))
            after = price(self._adapter, changed)
            if after not in (before, (None, None)) and self._adapter.identity(msgspec.Raw(changed)) == identity:
                self._paths = list(dict.fromkeys([path, *self._paths]))
                return changed
        return None


def price(adapter: Platform, raw: bytes) -> tuple[Decimal | None, Decimal | None]:
    """The item's lowest recreational and medical price."""
    products = adapter.normalize([msgspec.Raw(raw)]).products
    return (products[0].price_rec, products[0].price_med) if products else (None, None)


def _more(value: Any) -> Any:
    """The number, or the text of one, and one more; None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value + 1
    try:
        return f"{float(value) + 1:.2f}"
    except (TypeError, ValueError):
        return None


async def new_store(conn: Connection, platform: Platform, name: str) -> int:
    store_id, _ = await stores.promote(
        conn, platform.name, Details(platform_dispensary_id=name, slug=name, name=name, name_raw=name)
    )
    return store_id


async def crawl(
    conn: Connection, platform: Platform, store_id: int, menu: Sequence[bytes], number: int
) -> tuple[float, Any]:
    """Seconds from bytes to commit, and what was applied. The payload's row is the fetch's work, and made before."""
    at = START + timedelta(minutes=number)
    payload_id = await payloads.insert(
        conn,
        NewPayload(
            task_id=None, dispensary_id=store_id, platform=platform.name, status="ok", product_count=1, fetched_at=at,
            path=f"payloads/{store_id}/{number}", bytes=1, raw_bytes=1, sha256="", content_sha256="",
        ),
    )  # fmt: skip
    payload = await payloads.get(conn, payload_id)
    assert payload is not None
    started = time.perf_counter()
    items = [item for page in menu for item in platform.split(page)]
    async with conn.transaction():
        result = await product_refresh.apply_payload(conn, payload, platform, items)
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


def copy_lines(platform: Platform, items: Sequence[bytes]) -> list[str]:
    """What the first crawl of these items copies into catalog_products."""
    products = platform.normalize([msgspec.Raw(item) for item in items]).products
    at = START.isoformat()
    return [
        f"{rows.product_line(number, b'x' * 16, product)}\t{rows.identity_line(1, platform.name, product, at)}\n"
        for number, product in enumerate(products)
    ]


async def measure(conn: Connection, name: str, size: int, rounds: int, file: Path | None = None) -> dict[str, Any]:
    """Medians of one menu size."""
    menu = await asyncio.to_thread(sample, name, size, file)
    platform, items = menu.adapter, menu.raws
    size = len(items)
    first = pages(menu, items)
    shuffled = items[:]
    random.Random(1).shuffle(shuffled)
    again = pages(menu, shuffled)
    dearer = Dearer(platform)
    changed: dict[int, bytes] = {}
    for i in random.Random(2).sample(range(size), size):
        if len(changed) < size // 10 and (other := dearer(items[i])) is not None:
            changed[i] = other
    tenth = pages(menu, [changed.get(i, item) for i, item in enumerate(items)])
    lines = copy_lines(platform, items)
    times: dict[str, list[float]] = {"copy": [], "first": [], "unchanged": [], "tenth": []}
    for round_ in range(rounds):
        times["copy"].append(await bare_copy(conn, lines))
        store = await new_store(conn, platform, f"bench-{name}-{size}-{round_}")
        seconds, applied = await crawl(conn, platform, store, first, 0)
        assert applied["new"] == size, applied
        times["first"].append(seconds)
        seconds, applied = await crawl(conn, platform, store, again, 1)
        assert applied["unchanged"] == size, applied
        times["unchanged"].append(seconds)
        seconds, applied = await crawl(conn, platform, store, tenth, 2)
        assert applied["price_changes"] == len(changed), applied
        times["tenth"].append(seconds)
    rate = {name: size / statistics.median(values) for name, values in times.items()}
    return {
        "platform": name,
        "products": size,
        **{f"{name}_us": round(1_000_000 / value, 1) for name, value in rate.items() if name != "copy"},
        "item_bytes": round(sum(map(len, items)) / size),
        **{f"{name}_per_s": round(value) for name, value in rate.items()},
        "first_vs_copy": round(rate["first"] / rate["copy"], 3),
        "unchanged_vs_first": round(rate["unchanged"] / rate["first"], 2),
        "tenth_changed_vs_first": round(rate["tenth"] / rate["first"], 2),
    }


async def run(names: Sequence[str], sizes: Sequence[int], rounds: int, file: Path | None) -> dict[str, Any]:
    """Everything, on a server of its own."""
    with tempfile.TemporaryDirectory(prefix="menuwatch-bench-") as folder:
        url, stack = embedded.start(Path(folder) / "postgres")
        with stack:
            migrate.migrate(url)
            async with await connect(url) as conn:
                await conn.execute("SELECT ensure_product_history_partition(%s)", [START])
                # As in a worker that has run for a while: statements are prepared, code is warm.
                for name in names:
                    await measure(conn, name, 100, 12, file)
                await conn.execute(
                    "TRUNCATE catalog_products, product_history, store_crawls, raw_crawl_payloads, dispensaries CASCADE"
                )
                found = [await measure(conn, name, size, rounds, file) for name in names for size in sizes]
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
    parser.add_argument("--platform", default="dutchie", help="platforms, comma-separated; all: those of the simulator")
    parser.add_argument("--sample", type=Path, help="page of the platform, if it is not simulated")
    parser.add_argument("--sizes", default="100,1000,5000", help="menu sizes, comma-separated")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions, of which the median counts")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    names = simulated_platforms() if args.platform == "all" else args.platform.split(",")
    sizes = [int(size) for size in args.sizes.split(",")]
    report = asyncio.run(run(names, sizes, args.rounds, args.sample))
    if args.json:
        print(json.dumps(report))
        return
    print(
        f"PostgreSQL {report['postgresql']}, Python {report['python']}, medians of {report['rounds']} rounds; products per second"
    )
    headings = (
        "platform",
        "menu",
        "copy",
        "first",
        "unchanged",
        "1/10 new",
        "first/copy",
        "unchanged/first",
        "tenth/first",
    )
    print("  ".join(f"{heading:>{max(9, len(heading))}}" for heading in headings))
    keys = ("platform", "products", "copy_per_s", "first_per_s", "unchanged_per_s", "tenth_per_s", *RATIOS)
    for row in report["sizes"]:
        cells = (row[key] if key == "platform" else f"{row[key]:,}" for key in keys)
        print("  ".join(f"{cell:>{max(9, len(heading))}}" for heading, cell in zip(headings, cells, strict=True)))
    print("\nMicroseconds per product, and how many times Dutchie's:")
    usual = {row["products"]: row for row in report["sizes"] if row["platform"] == "dutchie"}
    for row in report["sizes"]:
        costs = []
        for name in ("first", "unchanged", "tenth"):
            dutchie = usual.get(row["products"])
            times = f" ({row[f'{name}_us'] / dutchie[f'{name}_us']:.2f})" if dutchie else ""
            costs.append(f"{name} {row[f'{name}_us']:,}{times}")
        print(
            f"{row['platform']:>14}  {row['products']:>6,} products of {row['item_bytes']:,} bytes: {', '.join(costs)}"
        )


if __name__ == "__main__":
    main()
