"""How a contestant's program talks to the harness: JSON lines, events out on standard output, orders in on standard input.

    SIDE VERB OPTIONS           OPTIONS is a JSON object; the database is DATABASE_URL and the PG… variables of libpq

    install                     makes the schema; says {"installed": VERSION}
    enqueue {jobs, keys, batch} says {"ready"}, waits for a line, enqueues; says {"seconds"} from the first call to the last commit
    singles {}                  says {"ready"}; for each line it reads it enqueues one job and says {"at"}, the moment before the call
    work {jobs, keyed}          runs the worker until it is killed; says {"ready"} and, after `jobs` jobs, {"first", "last", "overlaps"}
    work {announce}             the same, but says {"started"} at the start of each job

Moments are nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share. Job number i has key i % keys; no key when keys is 0.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any


def say(**event: Any) -> None:
    """Tells the harness."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def batches(jobs: int, batch: int) -> Iterator[range]:
    """The numbers of the jobs, in batches."""
    for start in range(0, jobs, batch):
        yield range(start, min(start + batch, jobs))


class Tally:
    """What the handlers do: nothing, and count."""

    def __init__(self, *, jobs: int = 0, announce: bool = False) -> None:
        self._jobs = jobs
        self._announce = announce
        self._started = 0
        self._ended = 0
        self._first = 0
        self._intervals: list[tuple[int, int, int]] = []

    def plain(self) -> None:
        """The whole of a no-op job without a key."""
        if not self._started:
            self._first = time.monotonic_ns()
        self._started += 1
        if self._announce:
            say(started=time.monotonic_ns())
        if self._started == self._jobs:
            self._tell()

    async def exclusive(self, key: int) -> None:
        """A job with a key: it gives way once, so that others of its key would run beside it if they could."""
        begin = time.monotonic_ns()
        if not self._started:
            self._first = begin
        self._started += 1
        await asyncio.sleep(0)
        self._intervals.append((key, begin, time.monotonic_ns()))
        self._ended += 1
        if self._ended == self._jobs:
            self._tell()

    def _tell(self) -> None:
        say(first=self._first, last=time.monotonic_ns(), overlaps=overlaps(self._intervals))


def overlaps(intervals: list[tuple[int, int, int]]) -> int:
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


async def on_lines(act: Callable[[], Awaitable[None]]) -> None:
    """Calls `act` for each line on standard input, until it ends."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    say(ready=True)
    while await reader.readline():
        await act()


async def timed(act: Callable[[], Awaitable[None]]) -> None:
    """Waits for the word to go, then says how long `act` takes."""
    say(ready=True)
    await asyncio.to_thread(sys.stdin.readline)
    start = time.monotonic_ns()
    await act()
    say(seconds=(time.monotonic_ns() - start) / 1e9)


def main(run: Callable[[Coroutine[Any, Any, None]], None], **verbs: Callable[..., Coroutine[Any, Any, None]]) -> None:
    """Does what the command line asks for, on the event loop that the contestant prefers."""
    run(verbs[sys.argv[1]](**json.loads(sys.argv[2])))
