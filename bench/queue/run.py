"""Menuwatch's queue beside procrastinate, pgqueuer, graphile-worker and pg-boss, on one PostgreSQL server.

    python bench/queue/run.py [--json] [--rounds 3] [--jobs 20000] [--only NAME…] [--parts rates|snapshot|claims…] [--quick]

Every contestant is its own released package, used through its public interface, at the best setting that its documentation
names (contestants.py). The server is an embedded one with its default durability (fsync on), or BENCH_DATABASE_URL. Each
measurement has a fresh copy of the contestant's database, with statistics and after a checkpoint. Rounds alternate between the
contestants, each round in another order; figures are medians over the rounds. Defined alike for everybody:

    enqueue       N no-op jobs through the bulk call, batch after batch on one connection of one process: from the first call to
                  the return (after the commit) of the last.
    drain         N waiting no-op jobs, one worker process with its real worker: from the start of the first job to the commit of
                  the last completion. Whether all are completed is asked only once all have been handled.
    keyed drain   the same with N jobs over 2,000 keys (stores), of which no two of one key may run at a time. Handlers give way to
                  the event loop once and record their intervals, in which overlaps are counted.
    exclusion     4,000 jobs of 2 ms over 100 keys and two worker processes: overlaps counted in the same way, no rate taken. Who
                  lets jobs overlap, here or in the keyed drain, is not the best peer for keyed work.
    pick-up       300 single jobs, one after another, at an idle worker: from just before the enqueue call to the start of the
                  handler, on the clock that all processes share (CLOCK_MONOTONIC). p50 and p95 of each round.
    claim cost    milliseconds per task of a claim of 50 to its commit, at 10k, 100k and 1M waiting tasks, and at 10k with 1M finished
                  ones; 50 stores are busy and have the oldest tasks. Claims alternate between the four databases; what was
                  claimed is completed and replaced. Medians of 200.
    old snapshot  drain of 5 N jobs with a REPEATABLE READ transaction open that took its snapshot before, and without.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import claims
import contestants
import rates
import report
import server
from contestants import Contestant
from rates import Bench
from results import Results

KEYS = 2000
OURS = "menuwatch"
SNAPSHOT = (OURS, "graphile-worker")
PARTS = ("rates", "snapshot", "claims")


def say(text: str) -> None:
    """Progress, which is no result."""
    print(text, file=sys.stderr, flush=True)


def compare(
    bench: Bench, who: Sequence[Contestant], templates: dict[str, str], args: argparse.Namespace, results: Results
) -> None:
    """All rounds of enqueue, drain, keyed drain and pick-up."""
    rng = random.Random(1)
    for number in range(args.rounds):
        turn = number % len(who)
        for one in [*who[turn:], *who[:turn]]:
            say(f"round {number + 1}: {one.name}")
            template = templates[one.name]
            with results.phase(one.name, "plain") as open_:
                if open_:
                    results.add(one.name, rates.rates(bench, one, template, jobs=args.jobs, keys=0))
            with results.phase(one.name, "keyed") as open_:
                if open_ and one.exclusion:
                    found = rates.rates(bench, one, template, jobs=args.jobs, keys=min(KEYS, args.jobs // 2))
                    results.add(one.name, {f"keyed_{key}": value for key, value in found.items()})
            with results.phase(one.name, "exclusion") as open_:
                if open_ and one.exclusion:
                    jobs = args.exclusion_jobs
                    seen = rates.exclusion(bench, one, template, jobs=jobs, keys=jobs // 40)
                    results.add(one.name, {"overlaps_in_two_processes": seen})
            with results.phase(one.name, "pickup") as open_:
                if open_:
                    waits = rates.quantiles(rates.pickup(bench, one, template, jobs=args.pickups, rng=rng))
                    results.add(one.name, {f"pickup_{key}_ms": value for key, value in waits.items()})


def old_snapshots(
    bench: Bench, who: Sequence[Contestant], templates: dict[str, str], args: argparse.Namespace, results: Results
) -> None:
    """Rounds of drains with and without an old snapshot."""
    for number in range(args.rounds):
        for one in who:
            say(f"old snapshot, round {number + 1}: {one.name}")
            for held in (False, True) if number % 2 else (True, False):
                key = "drain_old_snapshot" if held else "drain_large"
                with results.phase(one.name, "old snapshot") as open_:
                    if open_:
                        rate = rates.drain_rate(
                            bench, one, templates[one.name], jobs=args.snapshot_jobs, old_snapshot=held
                        )
                        results.add(one.name, {key: rate})


def parse() -> argparse.Namespace:
    names = [one.name for one in contestants.ALL]
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions, of which the median counts")
    parser.add_argument("--jobs", type=int, default=20_000, help="jobs per rate")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=names, default=names, help=", ".join(names))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="leave out the others; default all")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, one round: shows that it works, no figures to keep"
    )
    args = parser.parse_args()
    args.pickups, args.snapshot_jobs, args.backlog, args.claims = 300, 5 * args.jobs, 10_000, 200
    args.exclusion_jobs = 4000
    if args.quick:
        args.rounds, args.jobs, args.pickups = 1, min(args.jobs, 4000), 50
        args.snapshot_jobs, args.backlog, args.claims = 10_000, 1000, 40
        args.exclusion_jobs = 1000
    if args.rounds < 1 or args.jobs < 100:
        parser.error("--rounds must be at least 1 and --jobs at least 100")
    return args


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Everything, on one server."""
    results = Results(say)
    with tempfile.TemporaryDirectory(prefix="menuwatch-bench-queue-") as name:
        folder = Path(name)
        with server.started(folder) as postgres:
            bench = Bench(server=postgres, folder=folder)
            templates: dict[str, str] = {}
            for one in contestants.ALL:
                if one.name in args.only:
                    with results.phase(one.name, "install"):
                        templates[one.name], results.versions[one.name] = rates.install(bench, one)
            who = [one for one in contestants.ALL if one.name in templates]
            if who and "rates" in args.parts:
                compare(bench, who, templates, args, results)
            if "snapshot" in args.parts:
                old_snapshots(bench, [one for one in who if one.name in SNAPSHOT], templates, args, results)
            if "claims" in args.parts and OURS in templates:
                say("claim cost")
                with results.phase(OURS, "claims"):
                    among = claims.sizes(args.backlog)
                    results.claims = asyncio.run(claims.claim_cost(bench, templates[OURS], among, args.claims, say))
            settings = postgres.settings()
    return report.build(args, [one for one in contestants.ALL if one.name in args.only], results, settings)


def main() -> None:
    args = parse()
    found = run(args)
    print(json.dumps(found) if args.json else report.table(found))


if __name__ == "__main__":
    main()
