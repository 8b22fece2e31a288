"""A worker's own metrics, and serving them over HTTP from a thread of their own.

Plain numbers that one thread writes: at tens of thousands of tasks a second a client library's counters, each with a lock of its own,
would cost more than the queue does. Scrapes read them from another thread; values may then differ by a batch, but
each is consistent.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Final, Literal

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from menuwatch.core.logging import get_logger

log = get_logger(__name__)

Outcome = Literal["completed", "failed", "retried", "postponed", "released"]
"""How an attempt ended: `failed` permanently, `retried` to be tried again, `released` unchanged, by a worker that stops."""

ROUND_TRIPS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
RUNS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
"""Upper bounds of buckets, in seconds."""
BUDGET_WAITS: Final = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""The same, of waits for a host's budget."""


class Histogram:
    """How often something took how long."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def add(self, seconds: float, n: int = 1) -> None:
        """`n` things took this long, each."""
        self.counts[bisect_left(self.bounds, seconds)] += n
        self.total += seconds * n

    def add_many(self, seconds: Sequence[float]) -> None:
        """One thing for each of these."""
        bounds, counts = self.bounds, self.counts
        for duration in seconds:
            counts[bisect_left(bounds, duration)] += 1
        self.total += sum(seconds)

    def exposed(self) -> list[tuple[str, float]]:
        """Cumulative, as Prometheus has them."""
        return list(zip([*map(str, self.bounds), "+Inf"], accumulate(list(self.counts)), strict=True))


class WorkerMetrics(Collector):
    """One worker's figures; as a collector it hands them to a Prometheus registry.

    `now` is the time since the epoch, in seconds. Only the worker's own thread may call what counts.
    """

    def __init__(self, *, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self.claims = Histogram(ROUND_TRIPS)
        self.claimed_tasks = 0
        self.waits = Histogram(RUNS)
        self.settles = Histogram(ROUND_TRIPS)
        self.runs: dict[str, Histogram] = {}
        self.attempts: Counter[tuple[str, ...]] = Counter()
        self.lost_tasks = 0
        self.recovered_tasks = 0
        self.dropped_log_lines = 0
        self.heartbeats = 0
        self.last_heartbeat = 0.0
        self.requests: Counter[tuple[str, ...]] = Counter()
        self.turns = Histogram(BUDGET_WAITS)
        self.pictures: Counter[tuple[str, ...]] = Counter()
        self._idle: Callable[[], int] | None = None
        self._leases: Callable[[], int] | None = None
        self._slots: int | None = None
        self._running: Callable[[], int] | None = None
        self._backing_off: Callable[[], bool] | None = None
        self._who: dict[str, str] = {}

    def claimed(self, n: int, seconds: float, waited: Sequence[float] = ()) -> None:
        """A claim came back after `seconds` with `n` tasks; `waited` is how long each had been due."""
        self.claims.add(seconds)
        self.claimed_tasks += n
        if waited:
            self.waits.add_many(waited)

    def ended(self, role: str, outcome: Outcome, seconds_ran: float, n: int = 1) -> None:
        """`n` attempts at tasks of `role` ended, after `seconds_ran` each."""
        self._runs(role).add(seconds_ran, n)
        self.attempts[role, outcome] += n

    def ended_many(self, role: str, outcome: Outcome, durations: Sequence[float]) -> None:
        """One attempt at a task of `role` ended for each of these times, in seconds."""
        self._runs(role).add_many(durations)
        self.attempts[role, outcome] += len(durations)

    def settled(self, seconds: float) -> None:
        """Duration in seconds of a transaction that wrote outcomes."""
        self.settles.add(seconds)

    def lost(self, n: int = 1) -> None:
        """Tasks that ran here are no longer ours: cancelled, or declared stale."""
        self.lost_tasks += n

    def recovered(self, n: int) -> None:
        """This worker took tasks back that silent ones had left."""
        self.recovered_tasks += n

    def log_lines_dropped(self, n: int) -> None:
        """Lines of the log that were not stored."""
        self.dropped_log_lines += n

    def beat(self) -> None:
        """A heartbeat was written."""
        self.heartbeats += 1
        self.last_heartbeat = self._now()

    def requested(self, host: str, verdict: str, waited: float) -> None:
        """A request to `host` ended so, after it had `waited` for its turn, in seconds."""
        self.requests[host, str(verdict)] += 1
        self.turns.add(waited)

    def pictured(self, outcome: str) -> None:
        """Seeing to a picture's address ended so: `stored`, `failed` (it is tried again), `given_up`."""
        self.pictures[(outcome,)] += 1

    def fetching(self, *, idle: Callable[[], int], leases: Callable[[], int]) -> None:
        """Set what to read at each scrape (from another thread): the numbers of idle identities, and of those in use at a host."""
        self._idle, self._leases = idle, leases

    def introduce(
        self,
        *,
        worker_id: str,
        name: str,
        pod: str | None = None,
        slots: int | None = None,
        running: Callable[[], int] | None = None,
        backing_off: Callable[[], bool] | None = None,
    ) -> None:
        """Set the worker's identity, and the values to read at each scrape (from another thread)."""
        self._who = {"worker_id": worker_id, "name": name, "pod": pod or ""}
        self._slots, self._running, self._backing_off = slots, running, backing_off

    def collect(self) -> Iterator[Metric]:
        """All metrics as of now. Unknown ones are omitted; those without events are zero."""
        yield InfoMetricFamily("menuwatch_worker", "Identity of the worker.", self._who or None)
        yield _gauge("slots", "Task slots of this worker.", self._slots)
        yield _gauge("running_tasks", "Tasks that this worker runs now.", self._running)
        yield _gauge(
            "backing_off", "1 while the worker backs off because its machine is overloaded, else 0.", self._backing_off
        )
        yield _histogram("claim_seconds", "Duration of a claim round trip, in seconds.", self.claims)
        yield _counter("claimed_tasks", "Tasks claimed.", self.claimed_tasks)
        yield _histogram("pickup_seconds", "Time from a task being due to its claim, in seconds.", self.waits)
        yield _histogram("settle_seconds", "Duration of a transaction that writes outcomes, in seconds.", self.settles)
        yield _counter(
            "attempts",
            "Attempts ended, by role and outcome: completed, failed, retried, postponed, released.",
            self.attempts,
            labels=("role", "outcome"),
        )
        runs = HistogramMetricFamily(
            "menuwatch_worker_run_seconds", "Time that an attempt ran, in seconds, by role.", labels=("role",)
        )
        for role, times in list(self.runs.items()):
            runs.add_metric((role,), times.exposed(), times.total)
        yield runs
        yield _counter(
            "lost_tasks",
            "Running tasks that this worker lost: cancelled or declared stale.",
            self.lost_tasks,
        )
        yield _counter("recovered_tasks", "Stale tasks that this worker recovered.", self.recovered_tasks)
        yield _counter(
            "dropped_log_lines",
            "Log lines that were not stored: too many at once, or the database was unreachable.",
            self.dropped_log_lines,
        )
        yield _counter("heartbeats", "Heartbeats written.", self.heartbeats)
        yield _gauge(
            "last_heartbeat_timestamp_seconds",
            "When the last heartbeat was written, in seconds since the epoch.",
            self.last_heartbeat or None,
        )
        yield _counter(
            "fetch_requests",
            "Requests of this worker by host and verdict.",
            self.requests,
            labels=("host", "verdict"),
        )
        yield _histogram(
            "fetch_wait_seconds", "Time that a request waited for the host's rate limit, in seconds.", self.turns
        )
        yield _counter(
            "image_downloads",
            "Image downloads of this worker by outcome: stored, failed (will be retried), given_up.",
            self.pictures,
            labels=("outcome",),
        )
        yield _gauge("idle_identities", "Idle identities kept with their cookies.", self._idle)
        yield _gauge("leases", "Leases held by this worker.", self._leases)

    def _runs(self, role: str) -> Histogram:
        times = self.runs.get(role)
        if times is None:
            times = self.runs[str(role)] = Histogram(RUNS)
        return times


def _gauge(name: str, text: str, value: float | Callable[[], float] | None) -> Metric:
    return GaugeMetricFamily(f"menuwatch_worker_{name}", text, value=value() if callable(value) else value)


def _counter(
    name: str, text: str, value: int | Mapping[tuple[str, ...], int], labels: Sequence[str] | None = None
) -> Metric:
    """With `labels`, one value for each combination of theirs."""
    if isinstance(value, int):
        return CounterMetricFamily(f"menuwatch_worker_{name}", text, value)
    family = CounterMetricFamily(f"menuwatch_worker_{name}", text, labels=labels)
    for key, n in list(value.items()):
        family.add_metric(key, n)
    return family


def _histogram(name: str, text: str, times: Histogram) -> Metric:
    return HistogramMetricFamily(f"menuwatch_worker_{name}", text, buckets=times.exposed(), sum_value=times.total)


@contextmanager
def serve_metrics(measures: WorkerMetrics, *, host: str, port: int, ordinal: int = 0) -> Iterator[int | None]:
    """Serves `/metrics` on `port` + `ordinal` for as long as the context lasts; gives the port. 0 serves nothing.

    `ordinal` is the worker's place in its pod, from 0. What hinders it is a warning: a worker works without being watched.
    """
    if port == 0:
        yield None
        return
    chosen = port + ordinal
    registry = CollectorRegistry()
    registry.register(measures)
    ProcessCollector(registry=registry)
    try:
        server, thread = start_http_server(chosen, addr=host, registry=registry)
    except (OSError, OverflowError) as error:
        log.warning(
            "metrics port unavailable, metrics disabled",
            action="metrics_unavailable",
            host=host,
            port=chosen,
            error=getattr(error, "strerror", None) or str(error),
        )
        yield None
        return
    log.info("metrics server listening", action="metrics_listening", host=host, port=server.server_port)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
