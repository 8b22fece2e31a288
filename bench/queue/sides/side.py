"""How a contestant's program talks to the harness: JSON lines, events out on standard output, orders in on standard input.

    SIDE VERB OPTIONS           OPTIONS is a JSON object; the database is DATABASE_URL and the PG… variables of libpq

    install                     makes the schema; says {"installed": VERSION}
    enqueue {jobs, keys, batch} says {"ready"}, waits for a line, enqueues; says {"seconds"} from the first call to the last commit
    singles {}                  says {"ready"}; at each line it enqueues one job and says {"at"}, the moment before the call
    work {jobs, keyed, hold}    runs the worker until it is killed; says {"ready"} and, after `jobs` jobs, {"first", "last"}; jobs with
                                a key last `hold` seconds, and at a line it says {"intervals"}: [key, begin, end] of each so far
    work {announce}             the same, but says {"started"} at the start of each job

Moments are nanoseconds of CLOCK_MONOTONIC, which all processes share. Job number i has key i % keys; none when keys is 0.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
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
    """What the handlers do: next to nothing, and count."""

    def __init__(self, *, jobs: int = 0, hold: float = 0.0, announce: bool = False) -> None:
        self._jobs = jobs
        self._hold = hold
        self._announce = announce
        self._started = 0
        self._ended = 0
        self._first = 0
        self._intervals: list[tuple[int, int, int]] = []
        threading.Thread(target=self._answer, daemon=True).start()

    def plain(self) -> None:
        """The whole of a no-op job without a key."""
        if not self._started:
            self._first = time.monotonic_ns()
        self._started += 1
        if self._announce:
            say(started=time.monotonic_ns())
        if self._started == self._jobs:
            say(first=self._first, last=time.monotonic_ns())

    async def exclusive(self, key: int) -> None:
        """A job with a key: it gives way, so that others of its key run beside it if they can."""
        begin = time.monotonic_ns()
        if not self._started:
            self._first = begin
        self._started += 1
        await asyncio.sleep(self._hold)
        end = time.monotonic_ns()
        self._intervals.append((key, begin, end))
        self._ended += 1
        if self._ended == self._jobs:
            say(first=self._first, last=end)

    def _answer(self) -> None:
        for _ in sys.stdin:
            say(intervals=self._intervals)


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
