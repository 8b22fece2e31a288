"""What a worker counts and times of itself.

Plain numbers that one thread writes: at tens of thousands of tasks a second a client library's counters, each with a lock of its own,
would cost more than the queue does. Whoever scrapes reads them from another thread; a figure may then lag the one beside it by a
batch, and is never torn.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final, Literal

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

Outcome = Literal["completed", "failed", "retried", "postponed", "released"]
"""How an attempt ended: `failed` for good, `retried` to be tried again, `released` as it was, by a worker that stops."""

ROUND_TRIPS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
RUNS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
"""Upper bounds of buckets, in seconds."""
TURNS: Final = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""The same, of waits for a host's budget."""


class Times:
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
        for one in seconds:
            counts[bisect_left(bounds, one)] += 1
        self.total += sum(seconds)

    def exposed(self) -> list[tuple[str, float]]:
        """Cumulative, as Prometheus has them."""
        return list(zip([*map(str, self.bounds), "+Inf"], accumulate(list(self.counts)), strict=True))


class Measures(Collector):
    """One worker's figures; as a collector it hands them to a Prometheus registry.

    `now` is the time since the epoch, in seconds. Only the worker's own thread may call what counts.
    """

    def __init__(self, *, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self.claims = Times(ROUND_TRIPS)
        self.claimed_tasks = 0
        self.waits = Times(RUNS)
        self.settles = Times(ROUND_TRIPS)
        self.runs: dict[str, Times] = {}
        self.attempts: dict[tuple[str, str], int] = {}
        self.lost_tasks = 0
        self.recovered_tasks = 0
        self.heartbeats = 0
        self.last_heartbeat = 0.0
        self.requests: dict[tuple[str, str], int] = {}
        self.turns = Times(TURNS)
        self.pictures: dict[str, int] = {}
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
        self._count(role, outcome, n)

    def ended_many(self, role: str, outcome: Outcome, durations: Sequence[float]) -> None:
        """One attempt at a task of `role` ended for each of these times, in seconds."""
        self._runs(role).add_many(durations)
        self._count(role, outcome, len(durations))

    def settled(self, seconds: float) -> None:
        """A transaction that wrote outcomes took this long."""
        self.settles.add(seconds)

    def lost(self, n: int = 1) -> None:
        """Tasks that ran here are no longer ours: cancelled, or declared stale."""
        self.lost_tasks += n

    def recovered(self, n: int) -> None:
        """This worker took tasks back that silent ones had left."""
        self.recovered_tasks += n

    def beat(self) -> None:
        """A heartbeat was written."""
        self.heartbeats += 1
        self.last_heartbeat = self._now()

    def requested(self, host: str, verdict: str, waited: float) -> None:
        """A request to `host` ended so, after it had `waited` for its turn, in seconds."""
        key = (host, str(verdict))
        self.requests[key] = self.requests.get(key, 0) + 1
        self.turns.add(waited)

    def pictured(self, outcome: str) -> None:
        """Seeing to a picture's address ended so: `stored`, `failed` (it is tried again), `given_up`."""
        self.pictures[outcome] = self.pictures.get(outcome, 0) + 1

    def fetching(self, *, idle: Callable[[], int], leases: Callable[[], int]) -> None:
        """What to ask at each scrape (from another thread): identities that are kept for later, and those that talk to a host."""
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
        """Whose figures these are, and what to ask at each scrape (from another thread)."""
        self._who = {"worker_id": worker_id, "name": name, "pod": pod or ""}
        self._slots, self._running, self._backing_off = slots, running, backing_off

    def collect(self) -> Iterator[Metric]:
        """All figures, as they are now. What nobody told us of is left out, and zero is said where nothing happened."""
        info = InfoMetricFamily("menuwatch_worker", "Who this worker is.")
        if self._who:
            info.add_metric((), self._who)
        yield info
        yield _gauge("menuwatch_worker_slots", "Tasks that this worker runs at once, at most.", self._slots)
        running = None if self._running is None else self._running()
        yield _gauge("menuwatch_worker_running_tasks", "Tasks that this worker runs now.", running)
        off = None if self._backing_off is None else int(self._backing_off())
        yield _gauge("menuwatch_worker_backing_off", "1 while it claims nothing to spare memory or CPU.", off)

        yield _times("menuwatch_worker_claim_seconds", "Time of a claim, there and back, in seconds.", self.claims)
        yield CounterMetricFamily("menuwatch_worker_claimed_tasks", "Tasks claimed.", self.claimed_tasks)
        yield _times(
            "menuwatch_worker_pickup_seconds", "Time from a task being due to its claim, in seconds.", self.waits
        )
        yield _times(
            "menuwatch_worker_settle_seconds", "Time of a transaction that writes outcomes, in seconds.", self.settles
        )
        attempts = CounterMetricFamily(
            "menuwatch_worker_attempts",
            "Attempts ended, by role and outcome: completed, failed, retried, postponed, released.",
            labels=("role", "outcome"),
        )
        for (role, outcome), n in list(self.attempts.items()):
            attempts.add_metric((role, outcome), n)
        yield attempts
        runs = HistogramMetricFamily(
            "menuwatch_worker_run_seconds", "Time that an attempt ran, in seconds, by role.", labels=("role",)
        )
        for role, times in list(self.runs.items()):
            runs.add_metric((role,), times.exposed(), times.total)
        yield runs
        yield CounterMetricFamily(
            "menuwatch_worker_lost_tasks",
            "Tasks that were taken from this worker while it ran them: cancelled, or declared stale.",
            self.lost_tasks,
        )
        yield CounterMetricFamily(
            "menuwatch_worker_recovered_tasks",
            "Tasks of silent workers that this one took back.",
            self.recovered_tasks,
        )
        yield CounterMetricFamily("menuwatch_worker_heartbeats", "Heartbeats written.", self.heartbeats)
        yield _gauge(
            "menuwatch_worker_last_heartbeat_timestamp_seconds",
            "When the last heartbeat was written, in seconds since the epoch.",
            self.last_heartbeat or None,
        )
        yield from self._fetching()

    def _fetching(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "menuwatch_worker_fetch_requests",
            "Requests that this worker made, by host and what came of them.",
            labels=("host", "verdict"),
        )
        for key, n in list(self.requests.items()):
            requests.add_metric(key, n)
        yield requests
        yield _times(
            "menuwatch_worker_fetch_wait_seconds",
            "Time that a request waited for the host's budget, in seconds.",
            self.turns,
        )
        pictures = CounterMetricFamily(
            "menuwatch_worker_image_downloads",
            "Addresses of pictures that this worker saw to, by outcome: stored, failed (tried again), given_up.",
            labels=("outcome",),
        )
        for outcome, n in list(self.pictures.items()):
            pictures.add_metric((outcome,), n)
        yield pictures
        idle = None if self._idle is None else self._idle()
        yield _gauge(
            "menuwatch_worker_idle_identities", "Identities that are kept for later, with their cookies.", idle
        )
        leases = None if self._leases is None else self._leases()
        yield _gauge("menuwatch_worker_leases", "Identities of this worker that talk to a host now.", leases)

    def _runs(self, role: str) -> Times:
        found = self.runs.get(role)
        if found is None:
            found = self.runs[str(role)] = Times(RUNS)
        return found

    def _count(self, role: str, outcome: Outcome, n: int) -> None:
        key = (role, outcome)
        self.attempts[key] = self.attempts.get(key, 0) + n


def _gauge(name: str, text: str, value: float | None) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _times(name: str, text: str, times: Times) -> Metric:
    return HistogramMetricFamily(name, text, buckets=times.exposed(), sum_value=times.total)
