"""What the simulator saw, held against what was allowed and against what the workers wrote down. Pure, so that the checks can
themselves be checked.

Times are seconds of the machine's monotonic clock, which all its processes share; the database's times are moved onto it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from menuwatch.sim.stats import Arrival, busiest

WINDOWS = (1.0, 5.0, 20.0)
"""Seconds."""
_SLACK = 0.5
"""Seconds by which the clocks of a request's two ends may disagree, a process that had to wait for the processor included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A row of `fetch_attempts`. `proxy` is the simulator's number; `task` None is a probe."""

    id: int
    task: int | None
    proxy: int | None
    agent: str
    status: int | None
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Window:
    """The busiest span of so many seconds: `requests` in it, `allowed` by rate and burst alone."""

    seconds: float
    requests: int
    allowed: float

    @property
    def beyond(self) -> float:
        """Requests beyond what rate and burst allow by themselves; below 0 where there was room."""
        return self.requests - self.allowed


def windows(arrivals: Sequence[Arrival], *, rate: float, burst: int) -> list[Window]:
    """The busiest span of each length.

    Moments are given out so that any span of W seconds holds at most `burst + rate * W` of them. What the simulator logs is when a
    request *arrived*: one that left at its moment and was held up on the way (by a busy processor, mostly) may arrive in a span
    that was full already. Whoever is held up holds an identity, and there are at most `concurrency` of those: so many more are no
    fault of the budget's, and not one beyond. See `over_budget`.
    """
    return [Window(seconds, busiest(arrivals, seconds), burst + rate * seconds) for seconds in WINDOWS]


def over_budget(found: Iterable[Window], *, concurrency: int) -> Iterator[str]:
    """Spans that not even delays explain."""
    for window in found:
        if window.beyond > concurrency:
            yield (
                f"{window.requests} requests arrived within {window.seconds:g} s, where {window.allowed:g} are allowed "
                f"and {concurrency} may have been late"
            )


def stragglers(arrivals: Sequence[Arrival], pause: float) -> list[tuple[Arrival, list[float]]]:
    """For each 429, how many seconds after it each request arrived that came before its `pause` was over."""
    times = [arrival.at for arrival in arrivals]
    return [
        (
            arrival,
            [
                at - arrival.at
                for at in times[bisect_right(times, arrival.at) : bisect_left(times, arrival.at + pause - 0.05)]
            ],
        )
        for arrival in arrivals
        if arrival.status == 429
    ]


def ignored(found: Iterable[tuple[Arrival, Sequence[float]]], *, concurrency: int, timeout: float) -> Iterator[str]:
    """Where more requests followed a 429 than could have been on their way, or later than those can be."""
    for arrival, after in found:
        # The one that got the 429 had an identity as well.
        if len(after) > concurrency - 1 or any(seconds > timeout for seconds in after):
            delays = ", ".join(f"{seconds:.2f}" for seconds in after)
            yield f"after the 429 of request {arrival.number} others came, {delays} s later, before its time was over"


@dataclass(frozen=True, slots=True)
class Hold:
    """A proxy leased by one task, from the lease's row to its deletion or its end."""

    task: int
    proxy: int
    began: float
    ended: float


def unleased(attempts: Iterable[Attempt], held: Iterable[Hold]) -> Iterator[str]:
    """Requests of a task that were not made, from beginning to end, within a lease of that task on that proxy."""
    by_task: dict[tuple[int, int], list[Hold]] = defaultdict(list)
    for hold in held:
        by_task[hold.task, hold.proxy].append(hold)
    for attempt in attempts:
        if attempt.task is None or attempt.proxy is None:
            continue
        own = by_task[attempt.task, attempt.proxy]
        if not any(hold.began - _SLACK <= attempt.began and attempt.ended <= hold.ended + _SLACK for hold in own):
            leases = ", ".join(f"{hold.began:.3f} to {hold.ended:.3f}" for hold in own) or "none"
            yield (
                f"request {attempt.id} of task {attempt.task} through proxy {attempt.proxy}, {attempt.began:.3f} to "
                f"{attempt.ended:.3f}, was outside the task's leases: {leases}"
            )


def shared(held: Iterable[Hold]) -> Iterator[str]:
    """Proxies that two tasks held at the same time."""
    until: dict[int, Hold] = {}
    for hold in sorted(held, key=lambda hold: (hold.began, hold.ended)):
        before = until.get(hold.proxy)
        if before is not None and hold.began < before.ended:
            yield (
                f"proxy {hold.proxy} was leased by task {hold.task} {before.ended - hold.began:.3f} s before "
                f"the lease of task {before.task} ended"
            )
        if before is None or hold.ended > before.ended:
            until[hold.proxy] = hold


def at_once(found: Iterable[Hold]) -> int:
    """The most identities that were held at the same moment."""
    turns = sorted(turn for hold in found for turn in ((hold.began, 1), (hold.ended, -1)))
    most = now = 0
    for _, step in turns:
        now += step
        most = max(most, now)
    return most


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """Arrivals beside attempts: requests that nobody wrote down, rows of answers to requests that never arrived, pairs."""

    unwritten: list[Arrival]
    invented: list[Attempt]
    matched: int


def compare(arrivals: Iterable[Arrival], attempts: Iterable[Attempt]) -> Books:
    """Pairs each request that arrived with the row that tells of it: same proxy, same browser, same status, within its time. Rows
    without a status tell of requests whose answer never came, which may have arrived or not; what they explain is a pair too."""
    waiting: dict[tuple[int | None, str], list[Arrival]] = defaultdict(list)
    for arrival in sorted(arrivals, key=lambda arrival: arrival.at):
        waiting[arrival.proxy, arrival.agent].append(arrival)
    invented: list[Attempt] = []
    matched = 0
    for attempt in sorted(attempts, key=lambda attempt: (attempt.status is None, attempt.began)):
        queue = waiting.get((attempt.proxy, attempt.agent), [])
        for place, arrival in enumerate(queue):
            on_time = attempt.began - _SLACK <= arrival.at <= attempt.ended + _SLACK
            if on_time and (attempt.status is None or attempt.status == arrival.status):
                del queue[place]
                matched += 1
                break
        else:
            if attempt.status is not None:
                invented.append(attempt)
    return Books(
        unwritten=sorted((arrival for queue in waiting.values() for arrival in queue), key=lambda a: a.at),
        invented=invented,
        matched=matched,
    )


@dataclass(frozen=True, slots=True)
class Kill:
    """A worker that died at `at` with so many `slots`, each of which had so many requests (`pages`) not written down at most."""

    at: float
    slots: int
    pages: int


def unexplained(books: Books, kills: Sequence[Kill], *, session: float) -> Iterator[str]:
    """What is wrong with the books. A worker that was killed did not write down the requests of the sessions it had open, none of
    which is longer than `session` seconds: so many of its last requests may be missing, and no others."""
    for attempt in books.invented:
        yield f"attempt {attempt.id} tells of status {attempt.status} through proxy {attempt.proxy}, and nothing arrived"
    lost: dict[Kill, int] = defaultdict(int)
    for arrival in books.unwritten:
        kill = next((kill for kill in kills if kill.at - session <= arrival.at <= kill.at + _SLACK), None)
        if kill is None:
            yield f"nobody wrote down request {arrival.number} ({arrival.path}, {arrival.status}, proxy {arrival.proxy})"
        else:
            lost[kill] += 1
    for kill, count in lost.items():
        if count > kill.slots * kill.pages:
            yield f"{count} requests of a killed worker with {kill.slots} slots are not written down"
