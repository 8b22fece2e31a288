"""Pages per second and core through a proxy: Menuwatch's whole fetch path beside bare curl_cffi, crawlee-python and Scrapy.

    python bench/fetch.py [--json] [--rounds 5] [--stores 80] [--pages 5] [--products-per-page 100] [--concurrency 8]
                          [--only NAME…] [--quick] [--profile]

The platform is the simulator behind TLS, its answers compressed, reached through its HTTP proxies with a login. Each contestant
is a process on a core of its own; platform, proxies and PostgreSQL have the other cores. The job, the same for everybody: every
page of every store's menu, C menus at once, the pages of a menu in order and through one proxy, each menu archived into one
gzip file. Only `curl_cffi` does less: it fetches, and neither reads nor archives; `curl_cffi-kept` does not even change who it is.
A run counts only if everything came through a proxy and is in the files. Rounds alternate between the contestants, each round in
another order; figures are medians over the rounds.

    pages/CPU s   pages per second of processor time of the contestant's process, all its threads: what a core can do. The ratios
                  are of these.
    pages/s       pages per second of the clock, where the core may have waited for the platform (`core busy` tells)
    database ms   processor time of PostgreSQL's processes per page, which Menuwatch alone uses; `with database` counts it in
    platform ms   processor time of the simulator and its proxies per page
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pstats
import sys
import tempfile
from pathlib import Path
from typing import Any

from fetch import contestants, report, stage
from fetch.contestants import OURS
from fetch.program import Failed
from fetch.rounds import Stage, measure
from fetch.stage import Size
from menuwatch.core import logging as telemetry


def say(text: str) -> None:
    """Progress, which is no result."""
    print(text, file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    names = [one.name for one in contestants.ALL]
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions, of which the median counts")
    parser.add_argument("--stores", type=int, default=80, help="menus per run")
    parser.add_argument("--pages", type=int, default=5, help="pages of each menu")
    parser.add_argument("--products-per-page", type=int, default=100, help="at most 100, as the platform has it")
    parser.add_argument("--concurrency", type=int, default=8, help="menus at once")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=names, default=names, help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="one small round: shows that it works, no figures to keep")
    parser.add_argument("--profile", action="store_true", help="profile one run of Menuwatch instead")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.stores = 1, min(args.stores, 16)
    if not 3 <= args.products_per_page <= 100:
        parser.error("--products-per-page must be between 3 and 100")
    if min(args.rounds, args.pages, args.concurrency) < 1 or args.stores < args.concurrency:
        parser.error("--rounds, --pages and --concurrency must be at least 1, --stores at least the concurrency")
    return args


def compare(where: Stage, args: argparse.Namespace) -> tuple[dict[str, list[dict[str, float]]], dict[str, str]]:
    """All rounds; a contestant that fails is left out from then on."""
    figures: dict[str, list[dict[str, float]]] = {one.name: [] for one in contestants.ALL if one.name in args.only}
    failures: dict[str, str] = {}
    who = [one for one in contestants.ALL if one.name in args.only]
    for number in range(args.rounds):
        turn = number % len(who)
        for one in [*who[turn:], *who[:turn]]:
            if one.name in failures:
                continue
            try:
                found = measure(where, one)
            except Failed as error:
                say(f"round {number + 1}: {one.name} failed: {error}")
                failures[one.name] = str(error)
                figures[one.name] = []
                continue
            figures[one.name].append(found)
            told = ", ".join(f"{key} {value:,.2f}" for key, value in found.items())
            say(f"round {number + 1}: {one.name}: {told}")
    return figures, failures


def run(args: argparse.Namespace) -> dict[str, Any] | None:
    """Everything; None when only a profile was wanted, which is printed."""
    size = Size(
        stores=args.stores,
        pages=args.pages,
        per_page=args.products_per_page,
        concurrency=args.concurrency,
        warm=min(args.stores, 6 * args.concurrency),
    )
    own, others = stage.cores()
    with tempfile.TemporaryDirectory(prefix="menuwatch-bench-fetch-") as name:
        folder = Path(name)
        say("preparing the platform and the database")
        with (
            stage.platform(folder, size, proxies=2 * size.concurrency, core=others) as platform,
            stage.server(folder, others) as (url, home),
        ):
            database = asyncio.run(stage.database(url, home, platform))
            where = Stage(platform=platform, database=database, size=size, folder=folder, core=own)
            if args.profile:
                path = folder / "profile"
                measure(where, next(one for one in contestants.ALL if one.name == OURS), profile=path)
                pstats.Stats(str(path)).sort_stats("tottime").print_stats(25)
                return None
            figures, failures = compare(where, args)
    return report.build(
        [one for one in contestants.ALL if one.name in args.only], figures, failures, size,
        rounds=args.rounds, quick=args.quick, pinned=own is not None, postgresql=database.version,
    )  # fmt: skip


def main() -> None:
    args = parse()
    telemetry.configure("console", "error")
    found = run(args)
    if found is not None:
        print(json.dumps(found) if args.json else report.table(found))


if __name__ == "__main__":
    main()
