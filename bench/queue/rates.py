"""Enqueue, drain and pick-up, measured in the same way for everybody."""

from __future__ import annotations

import contextlib
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import program
import psycopg
from contestants import Contestant
from program import Failed
from server import Server

STARTUP = 60.0
PATIENCE = 240.0
"""Seconds that one phase may take."""
HOLD = 0.002
"""Seconds that a job lasts where exclusion is put to the test."""
Interval = tuple[int, int, int]
"""Key, begin and end of a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where the measurements are taken."""

    server: Server
    folder: Path


def install(bench: Bench, who: Contestant) -> tuple[str, str]:
    """Makes the contestant's schema in a database that the measurements copy; returns that one's name and the version installed."""
    database = bench.server.create(f"{who.name}_template")
    with program.started(who, "install", bench.server.url(database), bench.folder) as side:
        return database, str(_until(side, "installed", STARTUP))


def rates(bench: Bench, who: Contestant, template: str, *, jobs: int, keys: int) -> dict[str, float]:
    """`enqueue` and `drain` in jobs per second, and with keys also `overlaps`."""
    with bench.server.fresh(who.name, template) as database:
        url = bench.server.url(database)
        bench.server.checkpoint()
        seconds = enqueue(bench, who, url, jobs=jobs, keys=keys)
        took, seen = drain(bench, who, url, jobs=jobs, keyed=keys > 0)
        return {"enqueue": jobs / seconds, "drain": jobs / took} | ({"overlaps": overlaps(seen)} if keys else {})


def enqueue(bench: Bench, who: Contestant, url: str, *, jobs: int, keys: int) -> float:
    """Seconds to put that many jobs in; they are then really there."""
    with program.started(who, "enqueue", url, bench.folder, jobs=jobs, keys=keys, batch=who.batch) as side:
        _until(side, "ready", STARTUP)
        side.tell()
        seconds = float(_until(side, "seconds", PATIENCE))
    with psycopg.connect(url, autocommit=True) as conn:
        there = _count(conn, who.left)
        if there != jobs:
            raise Failed(f"{who.name} has {there} of {jobs} jobs waiting after the enqueue")
    return seconds


def drain(
    bench: Bench, who: Contestant, url: str, *, jobs: int, keyed: bool = False, old_snapshot: bool = False
) -> tuple[float, list[Interval]]:
    """Seconds from the start of the first job to the commit of the last completion, and the intervals of jobs with a key.

    While jobs run nobody looks at the database: only when all of them have been handled is it asked whether all completions are there.
    """
    with psycopg.connect(url, autocommit=True) as conn:
        # A queue that has run for a while has statistics.
        conn.execute("ANALYZE")
        bench.server.checkpoint()
        with (
            _snapshot(url) if old_snapshot else contextlib.nullcontext(),
            program.started(who, "work", url, bench.folder, jobs=jobs, keyed=keyed) as side,
        ):
            deadline = time.monotonic() + PATIENCE
            event = _event(side, "last", PATIENCE)
            while _count(conn, who.left) > 0:
                if time.monotonic() > deadline:
                    raise Failed(f"{who.name} handled all jobs, and did not complete them")
                time.sleep(0.001)
            end = time.monotonic_ns()
            return (end - event["first"]) / 1e9, _intervals(side) if keyed else []


def exclusion(bench: Bench, who: Contestant, template: str, *, jobs: int, keys: int) -> int:
    """Overlaps of jobs that last a little while, with two worker processes: whether exclusion holds where it is put to the test."""
    with bench.server.fresh(who.name, template) as database, contextlib.ExitStack() as stack:
        url = bench.server.url(database)
        enqueue(bench, who, url, jobs=jobs, keys=keys)
        conn = stack.enter_context(psycopg.connect(url, autocommit=True))
        conn.execute("ANALYZE")
        sides = [
            stack.enter_context(program.started(who, "work", url, bench.folder, keyed=True, hold=HOLD))
            for _ in range(2)
        ]
        deadline = time.monotonic() + PATIENCE / 2
        while (left := _count(conn, who.left)) > 0:
            if time.monotonic() > deadline:
                raise Failed(f"{left} of {jobs} jobs were left after {PATIENCE / 2:.0f} seconds with two workers")
            for side in sides:
                side.check()
            time.sleep(0.05)
        return overlaps([one for side in sides for one in _intervals(side)])


def overlaps(intervals: list[Interval]) -> int:
    """How many began before an earlier one of their key had ended."""
    found = 0
    by_key: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for key, begin, end in intervals:
        by_key[key].append((begin, end))
    for spans in by_key.values():
        latest = 0
        for begin, end in sorted(spans):
            found += begin < latest
            latest = max(latest, end)
    return found


def _intervals(side: program.Program) -> list[Interval]:
    side.tell()
    return [(key, begin, end) for key, begin, end in _until(side, "intervals", STARTUP)]


@contextmanager
def _snapshot(url: str) -> Iterator[None]:
    """A transaction that sees the database as it is now, for as long as the context lasts."""
    with psycopg.connect(url) as conn:
        conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        conn.execute("SELECT count(*) FROM pg_class")
        yield


def drain_rate(bench: Bench, who: Contestant, template: str, *, jobs: int, old_snapshot: bool) -> float:
    """Jobs per second with or without a snapshot in the way that is younger than the jobs and older than their completion."""
    with bench.server.fresh(who.name, template) as database:
        url = bench.server.url(database)
        enqueue(bench, who, url, jobs=jobs, keys=0)
        took, _ = drain(bench, who, url, jobs=jobs, old_snapshot=old_snapshot)
        return jobs / took


def pickup(bench: Bench, who: Contestant, template: str, *, jobs: int, rng: random.Random) -> list[float]:
    """Milliseconds from just before the enqueue call to the start of the job, for single jobs at an idle worker."""
    waits = []
    with bench.server.fresh(who.name, template) as database:
        url = bench.server.url(database)
        with (
            program.started(who, "singles", url, bench.folder) as source,
            program.started(who, "work", url, bench.folder, announce=True) as worker,
        ):
            _until(source, "ready", STARTUP)
            _until(worker, "ready", STARTUP)
            for number in range(-20, jobs):  # the first ones warm it up
                source.tell()
                before = int(_until(source, "at", STARTUP))
                started = int(_until(worker, "started", STARTUP))
                if number >= 0:
                    waits.append((started - before) / 1e6)
                # Completion batched, connection back in its pool: idle again. At random, so that nothing falls into step with a poll.
                time.sleep(rng.uniform(0.01, 0.03))
    return waits


def quantiles(waits: list[float]) -> dict[str, float]:
    """p50 and p95."""
    cut = statistics.quantiles(waits, n=20, method="inclusive")
    return {"p50": cut[9], "p95": cut[18]}


def _until(side: program.Program, key: str, timeout: float) -> Any:
    return _event(side, key, timeout)[key]


def _event(side: program.Program, key: str, timeout: float) -> dict[str, Any]:
    deadline = time.monotonic() + timeout
    while True:
        event = side.hear(deadline - time.monotonic())
        if key in event:
            return event


def _count(conn: psycopg.Connection[Any], query: str) -> int:
    row = conn.execute(query).fetchone()
    return int(row[0]) if row else 0
