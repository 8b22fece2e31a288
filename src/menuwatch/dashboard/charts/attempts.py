"""The timeline of a task: its attempts with their requests as a waterfall, and what happened between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from markupsafe import Markup
from msgspec import Struct

from menuwatch.core.format import pluralize
from menuwatch.dashboard.charts.svg import rect, svg
from menuwatch.fetch.attempts import FetchAttempt
from menuwatch.queue.explain.model import Code, Explanation
from menuwatch.queue.model import Status
from menuwatch.queue.task_attempts import TaskAttempt
from menuwatch.queue.task_list import TaskRow
from menuwatch.queue.trace import TaskTrace

_WIDTH, _HEIGHT = 200.0, 10.0
_NOTABLE_SECONDS = 1.0
_SHORTEST = 1.5
"""Width of the shortest bar that can be seen."""
_EVENTS = {
    "cooldown": "started a cool-down",
    "rate_reduced": "had its rate reduced",
    "circuit_opened": "opened its circuit: too many refusals",
    "circuit_closed": "closed its circuit",
}
KINDS = {
    "completed": "good", "failed": "bad", "cancelled": "warn", "running": "info", "retried": "bad", "postponed": "warn",
    "released": "none", "lost": "bad",
}  # fmt: skip
"""Colour of an attempt by its outcome."""


class Requests(Struct, frozen=True, kw_only=True):
    """Equal requests in a row: same host, identity, outcome and error. `bars` is their waterfall; times in seconds."""

    first: FetchAttempt
    count: int
    waited: float
    elapsed: float
    bytes: int
    bars: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that happened at one moment. `kind` is its colour, `quote` a reason, `task_id` a related task, `wait` the seconds
    since the end of the step before, if that is notable."""

    kind: str
    title: str
    at: datetime
    quote: str | None = None
    task_id: int | None = None
    attempt: TaskAttempt | None = None
    requests: Sequence[Requests] = ()
    missing: int = 0
    """Requests of the attempt that are not listed."""
    events: Sequence[Step] = ()
    wait: float | None = None

    @property
    def end(self) -> datetime:
        return (self.attempt and self.attempt.ended_at) or self.at


def timeline(task: TaskRow, why: Explanation, trace: TaskTrace, now: datetime) -> list[Step]:
    """The steps of a task in their order."""
    events = [_event(event.host, event.kind, event.reason, event.happened_at) for event in trace.events]
    blocks = [_block(attempt, trace.requests, events, now) for attempt in trace.attempts]
    loose = [event for event in events if not any(event in block.events for block in blocks)]
    steps = sorted([*_moments(task, why, trace, now), *blocks, *loose], key=lambda step: step.at)
    timed: list[Step] = []
    for step in steps:
        seconds = (step.at - timed[-1].end).total_seconds() if timed else 0.0
        timed.append(replace(step, wait=seconds) if seconds >= _NOTABLE_SECONDS else step)
    return timed


def _moments(task: TaskRow, why: Explanation, trace: TaskTrace, now: datetime) -> Iterator[Step]:
    origin = trace.origin
    yield Step(kind="plain", title=f"Enqueued {origin.text}", at=task.created_at, task_id=origin.task_id)
    if trace.attempts and trace.attempts[0].attempt > 1:
        first = trace.attempts[0]
        missing = pluralize(first.attempt - 1, "earlier attempt")
        yield Step(kind="plain", title=f"{missing} not kept", at=first.claimed_at)
    waits, due = task.status == Status.PENDING, task.scheduled_for
    if waits and due is not None and due > task.created_at:
        again = f" attempt {task.attempt + 1}" if task.attempt else ""
        named = "Retry" if why.code == Code.BACKING_OFF else "Scheduled"
        title = f"{named}{',' if again else ''}{again}" if due > now else f"Due{again and ' for' + again}"
        yield Step(kind="warn" if again else "plain", title=title, at=due)
    if task.status == Status.CANCELLED and task.claimed_at is None and task.completed_at is not None:
        yield Step(kind="warn", title="Cancelled", at=task.completed_at, quote=task.error_message)
    for follow_up in trace.followed:
        title = f"Follow-up: {follow_up.role}, {follow_up.status}"
        yield Step(kind="plain", title=title, at=follow_up.created_at, task_id=follow_up.id)


def _event(host: str, kind: str, reason: str, at: datetime) -> Step:
    colour = "good" if kind == "circuit_closed" else "warn"
    return Step(kind=colour, title=f"{host} {_EVENTS.get(kind, kind)}", at=at, quote=reason)


def _block(attempt: TaskAttempt, requests: Sequence[FetchAttempt], events: Sequence[Step], now: datetime) -> Step:
    mine = [request for request in requests if request.task_attempt == attempt.attempt]
    end = max([attempt.ended_at or now, *(_ended(request) for request in mine)])
    begun = min([attempt.started_at or attempt.claimed_at, *(_asked(request) for request in mine)])
    return Step(
        kind=KINDS[attempt.outcome],
        title=f"Attempt {attempt.attempt}",
        at=attempt.claimed_at,
        quote=attempt.error,
        attempt=attempt,
        requests=[_folded(list(run), begun, end) for _, run in groupby(mine, key=_look)],
        missing=attempt.requests - len(mine),
        events=[event for event in events if attempt.claimed_at <= event.at <= end],
    )


def _look(request: FetchAttempt) -> tuple[object, ...]:
    """What two requests must have in common to be shown as one line."""
    outcome = (request.verdict, request.status, request.reaction, request.error)
    return (request.host, request.proxy_id, request.profile, *outcome)


def _asked(request: FetchAttempt) -> datetime:
    """When it began to wait for its turn."""
    return request.attempted_at - timedelta(milliseconds=request.waited_ms)


def _ended(request: FetchAttempt) -> datetime:
    return request.attempted_at + timedelta(milliseconds=request.elapsed_ms)


def _folded(run: Sequence[FetchAttempt], begun: datetime, end: datetime) -> Requests:
    waited, elapsed = (sum(getattr(one, name) for one in run) / 1000 for name in ("waited_ms", "elapsed_ms"))
    label = f"waited {waited:.3f} s, took {elapsed:.3f} s"
    return Requests(
        first=run[0],
        count=len(run),
        waited=waited,
        elapsed=elapsed,
        bytes=sum(one.bytes for one in run),
        bars=svg("waterfall", _WIDTH, _HEIGHT, label, _bars(run, begun, end)),
    )


def _bars(run: Sequence[FetchAttempt], begun: datetime, end: datetime) -> Iterator[Markup]:
    whole = max((end - begun).total_seconds(), 0.001)
    for one in run:
        asked, sent, ended = (
            (at - begun).total_seconds() / whole * _WIDTH for at in (_asked(one), one.attempted_at, _ended(one))
        )
        if sent - asked >= 0.5:
            yield rect("none", asked, 3, sent - asked, 4)
        width = max(ended - sent, _SHORTEST)
        yield rect("good" if one.verdict == "ok" else "bad", min(sent, _WIDTH - width), 0, width, _HEIGHT)
