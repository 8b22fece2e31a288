"""The adapter's side of the benchmark's contract, for any queue with a Python client.

Settings come from environment variables. Records are JSON lines on standard output: one `descriptor`, then samples at each multiple of
`SAMPLE_EVERY_S` of the clock. Messages for people go to standard error. SIGTERM ends the process with status 0.

Jobs are objects: `n`, unique in the run; `at`, when the enqueue call began (milliseconds since 1970); `pad`, for their size.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import secrets
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

Job = dict[str, Any]
Work = Callable[[Job], Awaitable[None]]

_OBSERVE_EVERY = 0.25
_AFTER_ERROR = 0.2
_LAST_WORDS = 4.0
"""Seconds that a worker has to end after SIGTERM: the contract gives the process five."""


class Queue(Protocol):
    """A queue under test. Methods may raise any error while the database is away; they are called again."""

    name: str
    version: str
    event_tables: Sequence[str]

    async def install(self) -> None:
        """Brings the empty database to the queue's schema; another replica may have done so."""

    async def enqueue(self, jobs: list[Job]) -> None:
        """Returns once they are committed."""

    async def work(self, job: Work, slots: int, stop: asyncio.Event) -> None:
        """Runs a worker with so many jobs at once until `stop`; then waits for those that run."""

    async def depth(self) -> int:
        """How many jobs wait."""

    async def close(self) -> None:
        """Closes what `enqueue` and `depth` opened."""


def _number(name: str, default: float) -> float:
    text = os.environ.get(name) or str(default)
    try:
        return float(text)
    except ValueError:
        raise SystemExit(f"{name} must be a number, not {text!r}") from None


@dataclass(frozen=True, slots=True)
class Settings:
    """What the benchmark asks for."""

    url: str = field(default_factory=lambda: os.environ["DATABASE_URL"])
    instance: int = field(default_factory=lambda: int(_number("BENCH_INSTANCE_ID", 0)))
    mode: str = field(default_factory=lambda: os.environ.get("PRODUCER_MODE", "fixed"))
    pacing: str = field(default_factory=lambda: os.environ.get("PRODUCER_PACING", "adapter"))
    rate: float = field(default_factory=lambda: _number("PRODUCER_RATE", 800))
    rate_file: str | None = field(default_factory=lambda: os.environ.get("PRODUCER_RATE_CONTROL_FILE"))
    only_first: bool = field(default_factory=lambda: bool(_number("PRODUCER_ONLY_INSTANCE_ZERO", 0)))
    batch_max: int = field(default_factory=lambda: int(_number("PRODUCER_BATCH_MAX", 128)))
    batch_every: float = field(default_factory=lambda: _number("PRODUCER_BATCH_MS", 25) / 1000)
    target_depth: int = field(default_factory=lambda: int(_number("TARGET_DEPTH", 1000)))
    slots: int = field(default_factory=lambda: int(_number("WORKER_COUNT", 32)))
    payload_bytes: int = field(default_factory=lambda: int(_number("JOB_PAYLOAD_BYTES", 256)))
    work: float = field(default_factory=lambda: _number("JOB_WORK_MS", 1) / 1000)
    every: float = field(default_factory=lambda: _number("SAMPLE_EVERY_S", 5))
    window: float = field(default_factory=lambda: _number("LATENCY_WINDOW_MS", 30_000) / 1000)
    ledger: str | None = field(default_factory=lambda: os.environ.get("BENCH_LEDGER"))
    """Where to note each job that was enqueued and done; an addition of our runner."""

    def __post_init__(self) -> None:
        scenario = os.environ.get("SCENARIO", "long_horizon")
        if scenario != "long_horizon":
            raise SystemExit(f"SCENARIO={scenario}: this adapter has only long_horizon")
        if self.mode not in ("fixed", "depth-target"):
            raise SystemExit(f"PRODUCER_MODE={self.mode}: use fixed or depth-target")

    @property
    def produces(self) -> bool:
        """Whether this replica enqueues."""
        return self.instance == 0 or not self.only_first

    def current_rate(self) -> float:
        """Jobs per second at this moment."""
        with contextlib.suppress(OSError, ValueError):
            if self.rate_file:
                return float(Path(self.rate_file).read_text())
        return self.rate


class Latencies:
    """Percentiles of the last seconds, to three significant digits: a count per value and second, so memory is bounded."""

    def __init__(self, window: float) -> None:
        self._seconds: deque[tuple[int, Counter[float]]] = deque(maxlen=max(1, round(window)) + 1)

    def add(self, milliseconds: float) -> None:
        second = int(time.monotonic())
        if not self._seconds or self._seconds[-1][0] != second:
            self._seconds.append((second, Counter()))
        self._seconds[-1][1][float(f"{milliseconds:.2e}")] += 1

    def percentiles(self, of: Iterable[float]) -> list[float] | None:
        """None where there was nothing."""
        since = time.monotonic() - (self._seconds.maxlen or 1)
        counts: Counter[float] = Counter()
        for second, seen in self._seconds:
            if second >= since:
                counts.update(seen)
        if not counts:
            return None
        values = sorted(counts)
        reached = list(itertools.accumulate(counts[value] for value in values))
        return [next(v for v, n in zip(values, reached, strict=True) if n >= share * reached[-1]) for share in of]


class Adapter:
    """Producer, worker and sampler of one replica."""

    def __init__(self, queue: Queue, settings: Settings) -> None:
        self._queue = queue
        self._settings = settings
        self._stop = asyncio.Event()
        self._run = secrets.token_hex(3)
        self._numbers = itertools.count()
        self._latencies = Latencies(settings.window)
        self._enqueued = self._started = self._done = 0
        self._sampled = (time.monotonic(), 0, 0)
        """When the last samples were taken, and how many jobs were enqueued and done by then."""
        self._depth = 0
        self._depth_from = (0, 0)
        self._worker_restarts = 0
        self._ledger = Path(settings.ledger).open("ab", buffering=0) if settings.ledger else None  # noqa: SIM115 - closed by the end

    async def run(self) -> None:
        """Until SIGTERM."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        await self._queue.install()
        self._describe()
        worker = asyncio.create_task(self._work())
        others = [asyncio.create_task(part) for part in (self._produce(), self._observe(), self._sample())]
        stopped = asyncio.create_task(self._stop.wait())
        ended, _ = await asyncio.wait({stopped, worker, *others}, return_when=asyncio.FIRST_COMPLETED)
        self._stop.set()
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.wait({worker}, timeout=_LAST_WORDS)
        worker.cancel()
        self._emit_samples()
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._queue.close(), 1)
        for task in ended - {stopped}:
            task.result()

    def _describe(self) -> None:
        _emit(
            kind="descriptor",
            system=self._queue.name,
            instance_id=self._settings.instance,
            event_tables=self._queue.event_tables,
            extensions=[],
            version=self._queue.version,
            schema_version=self._queue.version,
            db_name=urlsplit(self._settings.url).path.lstrip("/"),
            started_at=_clock(),
        )

    # Worker

    async def _work(self) -> None:
        """A worker that ends by itself is started again, as a supervisor would."""
        while True:
            why = "it returned"
            try:
                await self._queue.work(self._job, self._settings.slots, self._stop)
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
            if self._stop.is_set():
                return
            self._worker_restarts += 1
            _say(f"the worker ended, it is started again: {why}")
            await asyncio.sleep(_AFTER_ERROR)

    async def _job(self, job: Job) -> None:
        self._latencies.add(max(0.0, time.time() * 1000 - job["at"]))
        self._started += 1
        if self._settings.work > 0:
            await asyncio.sleep(self._settings.work)
        self._done += 1
        self._note("d", [job])

    # Producer

    async def _produce(self) -> None:
        if not self._settings.produces:
            await self._stop.wait()
        async for count in self._orders():
            jobs = self._jobs(count)
            try:
                await self._queue.enqueue(jobs)
            except Exception as error:
                _say(f"enqueueing failed: {type(error).__name__}: {error}")
                await asyncio.sleep(_AFTER_ERROR)
                continue
            self._enqueued += count
            self._note("e", jobs)

    async def _orders(self) -> AsyncIterator[int]:
        """How many jobs to enqueue, each time when it is time."""
        settings = self._settings
        if settings.mode == "fixed" and settings.pacing == "harness":
            lines = await _standard_input()
            while line := await lines.readline():
                word, _, count = line.decode().strip().partition(" ")
                if word == "ENQUEUE" and count.isdigit() and int(count):
                    yield int(count)
            await self._stop.wait()
        credit, last = 0.0, time.monotonic()
        while True:
            if settings.mode == "depth-target":
                # Between two looks at the depth, what this replica enqueued and started changes it.
                enqueued, started = self._depth_from
                depth = self._depth + (self._enqueued - enqueued) - (self._started - started)
                count = min(settings.batch_max, settings.target_depth - depth)
            else:
                now = time.monotonic()
                credit, last = min(credit + (now - last) * settings.current_rate(), settings.current_rate()), now
                count = min(settings.batch_max, int(credit))
                credit -= max(0, count)
            if count > 0:
                yield count
            if count < settings.batch_max:
                await asyncio.sleep(settings.batch_every)

    def _jobs(self, count: int) -> list[Job]:
        pad = "x" * max(0, self._settings.payload_bytes - 64)
        run = f"{self._settings.instance}-{self._run}"
        at = time.time() * 1000
        return [{"n": f"{run}-{next(self._numbers)}", "at": at, "pad": pad} for _ in range(count)]

    def _note(self, what: str, jobs: list[Job]) -> None:
        if self._ledger:
            self._ledger.write("".join(f"{what} {job['n']}\n" for job in jobs).encode())

    # Samples

    async def _observe(self) -> None:
        while True:
            if self._settings.instance == 0:
                with contextlib.suppress(Exception):
                    before = (self._enqueued, self._started)
                    self._depth = await self._queue.depth()
                    self._depth_from = before
            await asyncio.sleep(_OBSERVE_EVERY)

    async def _sample(self) -> None:
        every = self._settings.every
        while True:
            await asyncio.sleep(every - time.time() % every)
            self._emit_samples()

    def _emit_samples(self) -> None:
        settings = self._settings
        since, enqueued, done = self._sampled
        now = time.monotonic()
        seconds = max(now - since, 0.001)
        self._sampled = (now, self._enqueued, self._done)
        samples: list[tuple[str, float, float]] = [
            ("enqueue_rate", (self._enqueued - enqueued) / seconds, settings.every),
            ("completion_rate", (self._done - done) / seconds, settings.every),
            ("worker_restarts", self._worker_restarts, 0),
        ]
        if found := self._latencies.percentiles((0.5, 0.95, 0.99)):
            names = ("claim_p50_ms", "claim_p95_ms", "claim_p99_ms")
            samples += [(name, value, settings.window) for name, value in zip(names, found, strict=True)]
        if settings.instance == 0:
            samples += [("queue_depth", self._depth, 0), ("producer_target_rate", settings.current_rate(), 0)]
        at = _clock()
        for metric, value, window in samples:
            _emit(
                t=at,
                system=self._queue.name,
                kind="adapter",
                subject_kind="adapter",
                subject="",
                instance_id=settings.instance,
                metric=metric,
                value=round(value, 3),
                window_s=window,
            )


def _clock() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _emit(**record: Any) -> None:
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


async def _standard_input() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def main(make: Callable[[Settings], Queue], run: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run) -> None:
    """An adapter's process."""
    settings = Settings()

    async def start() -> None:
        await Adapter(make(settings), settings).run()

    run(start())
