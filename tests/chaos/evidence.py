"""What is left when the run is over, and what must be true of it. Pure, so that the checks can themselves be checked."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from tests.chaos.plan import EXHAUST_RETRIES, Node

Key = tuple[int, int]
"""An attempt: task and number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A row of the history."""

    id: int
    name: str
    role: str
    store: int | None
    priority: int
    status: str
    attempt: int
    retry_count: int
    postpone_count: int
    worker: str | None
    claimed: datetime | None
    completed: datetime
    result: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A row that an outcome wrote in the transaction that settled it; `at` is within that transaction."""

    id: int
    attempt: int
    name: str
    what: str
    worker: str
    store: int | None
    claimed: datetime
    at: datetime


@dataclass(slots=True)
class Run:
    """One attempt as its handler saw it, in seconds of the machine's monotonic clock. `ended` None: it never got there."""

    id: int
    attempt: int
    name: str
    store: int | None
    worker: str
    claimed: datetime
    began: float
    ended: float | None = None
    cut: bool = False
    told: list[bool] = field(default_factory=list)

    @property
    def key(self) -> Key:
        return (self.id, self.attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All of it. `beats`: when each heartbeat that went through began, by worker, in order. `offset`: wall clock less monotonic."""

    ended: Sequence[Ended]
    effects: Sequence[Effect]
    runs: Sequence[Run]
    beats: dict[str, list[float]]
    offset: float
    live: Sequence[int]
    stranded: int


def runs_of(lines: Iterable[dict[str, Any]]) -> tuple[list[Run], dict[str, list[float]], float]:
    """The attempts and heartbeats that traces tell of, and how far the two clocks are apart."""
    offset = 0.0
    runs: list[Run] = []
    last: dict[Key, Run] = {}
    beats: dict[str, list[float]] = defaultdict(list)
    for line in lines:
        match line["event"]:
            case "start":
                run = Run(
                    id=line["id"],
                    attempt=line["attempt"],
                    name=line["name"],
                    store=line["store"],
                    worker=line["worker"],
                    claimed=datetime.fromisoformat(line["claimed"]),
                    began=line["at"],
                )
                runs.append(run)
                last[run.key] = run
            case "end" | "cut" as event:
                run = last[line["id"], line["attempt"]]
                run.ended = line["at"]
                run.cut = event == "cut"
            case "told":
                last[line["id"], line["attempt"]].told.append(line["committed"])
            case "beat":
                beats[line["worker"]].append(line["began"])
            case "hello":
                offset = line["wall"] - line["at"]
    return runs, {worker: sorted(times) for worker, times in beats.items()}, offset


def faults(nodes: dict[str, Node], seen: Evidence, *, stale: float) -> list[str]:
    """Everything that is wrong, in words; empty when all is well. `stale`: seconds of silence before a task may be taken back."""
    return [
        *_nothing_left(seen),
        *_every_task_once(nodes, seen),
        *_as_planned(nodes, seen),
        *_effects(nodes, seen),
        *_attempts(seen),
        *_fates(seen),
        *_claims_apart(seen, stale),
        *_handlers_apart(seen, stale),
    ]


def _nothing_left(seen: Evidence) -> Iterator[str]:
    if seen.live:
        yield f"{len(seen.live)} tasks are still live: {list(seen.live)[:10]}"
    if seen.stranded:
        yield f"{seen.stranded} parked tasks had no head before them"


def _every_task_once(nodes: dict[str, Node], seen: Evidence) -> Iterator[str]:
    """No task lost or doubled, so every chain exactly complete: a follow-up of a task that was lost would be missing too."""
    times = Counter(row.name for row in seen.ended)
    missing = sorted(nodes.keys() - times.keys())
    if missing:
        yield f"{len(missing)} tasks are missing: {missing[:10]}"
    unknown = sorted(times.keys() - nodes.keys())
    if unknown:
        yield f"{len(unknown)} tasks were never asked for: {unknown[:10]}"
    for name, n in times.items():
        if n > 1:
            yield f"task {name} is there {n} times"
    for task_id, n in Counter(row.id for row in seen.ended).items():
        if n > 1:
            yield f"id {task_id} ended {n} times"


def _as_planned(nodes: dict[str, Node], seen: Evidence) -> Iterator[str]:
    for row in seen.ended:
        node = nodes.get(row.name)
        if node is None:
            continue
        asked = (str(node.role), node.store, node.priority, str(node.status))
        found = (row.role, row.store, row.priority, row.status)
        if asked != found:
            yield f"task {row.name} should be {asked}, is {found}"
        if node.end in ("done", "fail", "raise") and row.postpone_count != node.postpones:
            yield f"task {row.name} was postponed {row.postpone_count} times, not {node.postpones}"
        if node.end in ("done", "fail") and (row.result or {}).get("tries", 0) != node.tries:
            yield f"task {row.name} was retried {row.result} times, not {node.tries}"
        if node.end == "exhaust" and row.retry_count != EXHAUST_RETRIES:
            yield f"task {row.name} failed after {row.retry_count} retries, not {EXHAUST_RETRIES}"


def _effects(nodes: dict[str, Node], seen: Evidence) -> Iterator[str]:
    """Each effect exactly once: of every settled outcome that writes, and of no other."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for effect in seen.effects:
        found[effect.name][effect.what] += 1
    ended = {row.name: row for row in seen.ended}
    for name, node in nodes.items():
        got = found.pop(name, Counter())
        wanted: Counter[str] = Counter()
        if node.writes and node.end in ("done", "fail", "raise"):
            wanted = Counter({"retry": node.tries, "postpone": node.postpones})
            if node.end != "raise":
                wanted[node.end] = 1
        if node.writes and node.end == "exhaust":
            # Every death of a worker takes one of its tries; the last attempt may end in a death as well.
            if not set(got) <= {"retry"} or got["retry"] > EXHAUST_RETRIES + 1:
                yield f"task {name} had the effects {dict(got)}, at most {EXHAUST_RETRIES + 1} retries were to be"
        elif +got != +wanted:
            yield f"task {name} had the effects {dict(got)}, not {dict(+wanted)}"
    for name in found:
        yield f"effects of a task that was never asked for: {name}"
    for key, n in Counter((effect.id, effect.attempt) for effect in seen.effects).items():
        if n > 1:
            yield f"attempt {key} had its effect {n} times"
    for effect in seen.effects:
        row = ended.get(effect.name)
        if row is None or row.id != effect.id:
            yield f"an effect of task {effect.id} for {effect.name}, which is another task"
        elif effect.what in ("done", "fail") and (row.attempt, row.worker) != (effect.attempt, effect.worker):
            yield f"task {effect.name} was ended by {row.worker} at attempt {row.attempt}, its effect is of {effect}"
        elif effect.attempt > row.attempt:
            yield f"task {effect.name} ended at attempt {row.attempt}, and had an effect at {effect.attempt}"


def _attempts(seen: Evidence) -> Iterator[str]:
    """No attempt is given out twice, and what completed was run to its end by the one who completed it."""
    runs = {run.key: run for run in seen.runs}
    for key, n in Counter(run.key for run in seen.runs).items():
        if n > 1:
            yield f"attempt {key} was begun {n} times"
    for row in seen.ended:
        run = runs.get((row.id, row.attempt))
        if row.status == "completed" and (run is None or run.ended is None or run.cut or run.worker != row.worker):
            yield f"task {row.name} is completed by {row.worker} at attempt {row.attempt}, which is not known to have run: {run}"


def _fates(seen: Evidence) -> Iterator[str]:
    """Who was told that an outcome was committed, or was not, was told the truth, and once."""
    written = {(effect.id, effect.attempt) for effect in seen.effects}
    completed = {(row.id, row.attempt): row.worker for row in seen.ended if row.status == "completed"}
    writing = {effect.name for effect in seen.effects}
    for run in seen.runs:
        if len(run.told) > 1:
            yield f"attempt {run.key} was told of its fate {len(run.told)} times"
        for committed in run.told:
            happened = run.key in written or completed.get(run.key) == run.worker
            if not committed and happened:
                yield f"attempt {run.key} was told that it was rolled back, and was committed"
            if committed and not happened and run.name in writing:
                yield f"attempt {run.key} was told that it was committed, and was not"


def _claims_apart(seen: Evidence, stale: float) -> Iterator[str]:
    """In the database's own time: while a store is owned nobody else owns it.

    Known are the claims of all attempts that began, and the ends of those that were settled by their owner; an attempt that was
    neither settled nor cut off by its own worker was owned for `stale` seconds at the very least. A task that somebody cancels frees
    its store at once.
    """
    cancelled = {row.id for row in seen.ended if row.status == "cancelled"}
    spans: dict[int, list[tuple[float, float, Key]]] = defaultdict(list)
    known: set[Key] = set()

    def own(store: int | None, key: Key, claimed: datetime, until: float) -> None:
        if store is not None and key not in known:
            known.add(key)
            spans[store].append((claimed.timestamp(), until, key))

    for effect in seen.effects:
        own(effect.store, (effect.id, effect.attempt), effect.claimed, effect.at.timestamp())
    for row in seen.ended:
        if row.claimed is not None and row.id not in cancelled:
            own(row.store, (row.id, row.attempt), row.claimed, row.completed.timestamp())
    for run in seen.runs:
        lost = run.ended is None and not run.told and run.id not in cancelled
        own(run.store, run.key, run.claimed, run.claimed.timestamp() + (stale if lost else 0.0))
    for store, owned in spans.items():
        owned.sort()
        until, owner = float("-inf"), (0, 0)
        for began, ended, key in owned:
            if began < until:
                yield f"store {store} was claimed by {key} {until - began:.3f} s before {owner} had ended"
            if ended > until:
                until, owner = ended, key


def overlaps(seen: Evidence) -> Iterator[tuple[Run, Run]]:
    """Pairs of handlers that ran for one store at once, by their own account, the one that was claimed first first.

    A handler that never got to its end counts as running for ever.
    """
    by_store: dict[int, list[Run]] = defaultdict(list)
    for run in seen.runs:
        if run.store is not None:
            by_store[run.store].append(run)
    for runs in by_store.values():
        runs.sort(key=lambda run: run.began)
        open_runs: list[Run] = []
        for run in runs:
            open_runs = [other for other in open_runs if other.ended is None or other.ended > run.began]
            for other in open_runs:
                yield (other, run) if other.claimed <= run.claimed else (run, other)
            open_runs.append(run)


def _handlers_apart(seen: Evidence, stale: float) -> Iterator[str]:
    """Handlers of one store run at the same moment only where the first one's worker had been given up for dead.

    Such a handler may live on, or even begin, when its worker wakes; it can write no more, which the other checks hold it to. That
    a worker was given up rightly shows in its heartbeats: for (nearly) the time of `stale` none went through between the two claims.
    The other case is a task that somebody cancelled while it ran: its handler stops when its worker hears of it.
    """
    cancelled = {row.id for row in seen.ended if row.status == "cancelled"}
    ours = {(effect.id, effect.attempt) for effect in seen.effects}
    ours |= {(row.id, row.attempt) for row in seen.ended if row.status == "completed"}
    for first, second in overlaps(seen):
        if first.id in cancelled:
            continue
        pair = f"store {first.store}: {first.key} of {first.worker} and {second.key} of {second.worker}"
        if first.key in ours:
            yield f"two owners at once, the first of which was not lost: {pair}"
        begin, end = (run.claimed.timestamp() - seen.offset for run in (first, second))
        silence = longest_silence(seen.beats.get(first.worker, ()), begin, end)
        if silence < 0.8 * stale:
            yield f"two handlers at once, though the first one's worker was never silent for more than {silence:.2f} s: {pair}"


def longest_silence(beats: Sequence[float], begin: float, end: float) -> float:
    """The longest time between two heartbeats within that span, its ends counting as such."""
    inside = [begin, *(beat for beat in beats if begin < beat < end), end]
    return max(later - earlier for earlier, later in pairwise(inside))
