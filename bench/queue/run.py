"""Menuwatch's queue beside procrastinate, pgqueuer, graphile-worker and pg-boss, on one PostgreSQL server.

    python bench/queue/run.py [--json] [--rounds 3] [--jobs 20000] [--only NAME…] [--quick]

Every contestant is its own released package, used through its public interface, at the best setting that its documentation names
(contestants.py). The server is an embedded one with its default durability (fsync on), or BENCH_DATABASE_URL. Each
measurement has a fresh copy of the contestant's database, with statistics and after a checkpoint. Rounds alternate between the contestants,
each round in another order; figures are medians over the rounds. Defined alike for everybody:

    enqueue       N no-op jobs through the bulk call, batch after batch on one connection of one process: from the first call to the
                  return (after the commit) of the last.
    drain         N waiting no-op jobs, one worker process with its real worker: from the start of the first job to the commit of
                  the last completion. Whether all are completed is asked only once all have been handled.
    keyed drain   the same with N jobs over 2,000 keys (stores), of which no two of one key may run at a time. Handlers give way to the event
                  loop once and record their intervals; overlaps are counted. Who lets jobs overlap is not the best peer.
    pick-up       single jobs, one after another, at an idle worker: from just before the enqueue call to the start of the
                  handler, on the clock that all processes share (CLOCK_MONOTONIC). p50 and p95 over all rounds together.
    claim cost    milliseconds per task of a claim of 50, at 10k, 100k and 1M waiting tasks, and at 10k with 1M finished ones; 50 stores
                  are busy. Claims alternate between the four databases; what was claimed is completed and replaced. Medians.
    old snapshot  drain of 100k jobs with one REPEATABLE READ transaction open whose snapshot is older than all of them, and without.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import contestants
import rates
import report
import server
from contestants import Contestant
from rates import Bench

KEYS = 2000
PICKUPS = 300


def say(text: str) -> None:
    """Progress, which is no result."""
    print(text, file=sys.stderr, flush=True)


class Results:
    """What each contestant did in each round, and who dropped out and why."""

    def __init__(self) -> None:
        self.figures: dict[str, dict[str, list[float]]] = {}
        self.failures: dict[str, dict[str, str]] = {}

    def add(self, name: str, figures: dict[str, float]) -> None:
        for key, value in figures.items():
            self.figures.setdefault(name, {}).setdefault(key, []).append(value)

    def fail(self, name: str, phase: str, reason: str) -> None:
        say(f"  {name}: {phase} failed: {reason}")
        self.failures.setdefault(name, {})[phase] = reason

    def failed(self, name: str, phase: str) -> bool:
        return phase in self.failures.get(name, {})


def compare(bench: Bench, who: Sequence[Contestant], args: argparse.Namespace, results: Results) -> dict[str, str]:
    """All rounds of enqueue, drain, keyed drain and pick-up; returns the versions."""
    versions: dict[str, str] = {}
    templates: dict[str, str] = {}
    for one in who:
        say(f"installing {one.name}")
        try:
            templates[one.name], versions[one.name] = rates.install(bench, one)
        except rates.Failed as error:
            results.fail(one.name, "install", str(error))
    present = [one for one in who if one.name in templates]
    rng = random.Random(1)
    for number in range(args.rounds):
        turn = number % len(present) if present else 0
        for one in present[turn:] + present[:turn]:
            measure(bench, one, templates[one.name], number, args, results, rng)
    return versions


def measure(
    bench: Bench, one: Contestant, template: str, number: int, args: argparse.Namespace, results: Results, rng: random.Random
) -> None:
    """One contestant's turn of one round."""
    if not results.failed(one.name, "plain"):
        try:
            found = rates.rates(bench, one, template, jobs=args.jobs, keys=0)
            results.add(one.name, found)
            say(f"  round {number + 1}: {one.name}: enqueue {found['enqueue']:,.0f}/s, drain {found['drain']:,.0f}/s")
        except rates.Failed as error:
            results.fail(one.name, "plain", str(error))
    if one.exclusion and not results.failed(one.name, "keyed"):
        try:
            found = rates.rates(bench, one, template, jobs=args.jobs, keys=min(KEYS, args.jobs // 2))
            results.add(one.name, {f"keyed_{key}": value for key, value in found.items()})
            say(
                f"  round {number + 1}: {one.name}: keyed enqueue {found['enqueue']:,.0f}/s, "
                f"drain {found['drain']:,.0f}/s, {found['overlaps']:.0f} overlaps"
            )
        except rates.Failed as error:
            results.fail(one.name, "keyed", str(error))
    if not results.failed(one.name, "pickup"):
        try:
            waits = rates.pickup(bench, one, template, jobs=args.pickups, rng=rng)
            for wait in waits:
                results.add(one.name, {"pickup": wait})
            cut = rates.quantiles(waits)
            say(f"  round {number + 1}: {one.name}: pick-up p50 {cut['p50']:.2f} ms, p95 {cut['p95']:.2f} ms")
        except rates.Failed as error:
            results.fail(one.name, "pickup", str(error))


def parse() -> argparse.Namespace:
    names = [one.name for one in contestants.ALL]
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions, of which the median counts")
    parser.add_argument("--jobs", type=int, default=20_000, help="jobs per rate")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=names, default=names, help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: shows that it works, no figures to keep")
    args = parser.parse_args()
    args.pickups = PICKUPS
    if args.quick:
        args.rounds, args.jobs, args.pickups = 1, min(args.jobs, 4000), 50
    if args.rounds < 1 or args.jobs < 100:
        parser.error("--rounds must be at least 1 and --jobs at least 100")
    return args


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Everything, on one server."""
    results = Results()
    who = [one for one in contestants.ALL if one.name in args.only]
    with tempfile.TemporaryDirectory(prefix="menuwatch-bench-queue-") as name:
        folder = Path(name)
        with server.started(folder) as postgres:
            bench = Bench(server=postgres, folder=folder)
            versions = compare(bench, who, args, results)
            settings = postgres.settings()
    return report.build(args=args, who=who, results=results, versions=versions, server=settings)


def main() -> None:
    args = parse()
    found = run(args)
    print(json.dumps(found) if args.json else report.table(found))


if __name__ == "__main__":
    main()
