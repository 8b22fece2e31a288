"""The life of a task as steps, oldest first: enqueued, claimed, started, what went wrong meanwhile, and its end. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from menuwatch.operations.attempts import AttemptView
from menuwatch.operations.reading import Row
from menuwatch.operations.story import Story
from menuwatch.operations.wording import many, span
from menuwatch.tasks.model import Status

TROUBLES = 12
"""Most requests in trouble that are steps of their own; the list of requests has all of them."""

_EVENTS = {
    "cooldown": "cools down",
    "slower": "is asked more slowly",
    "circuit_opened": "is left alone: too many refusals",
    "circuit_closed": "is asked again",
}
_ENDS = {
    Status.COMPLETED: ("good", "Completed"),
    Status.FAILED: ("bad", "Failed"),
    Status.CANCELLED: ("warn", "Cancelled"),
}
_NOTABLE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One of them. `kind` is its colour (good, bad, warn, info or plain), `quote` what was said by others: a reason, an
    answer; `task_id` a task that it names; `wait` how long it was since the step before, in words."""

    kind: str
    title: str
    at: datetime
    quote: str | None = None
    task_id: int | None = None
    worker: str | None = None
    wait: str | None = None


def steps(task: Row, story: Story, now: datetime) -> list[Step]:
    """The steps in their order, each with the time since the one before."""
    found = sorted(_steps(task, story, now), key=lambda step: step.at)
    told: list[Step] = []
    for step in found:
        seconds = (step.at - told[-1].at).total_seconds() if told else 0.0
        told.append(replace(step, wait=span(seconds)) if seconds >= _NOTABLE_SECONDS else step)
    return told


def _steps(task: Row, story: Story, now: datetime) -> Iterator[Step]:
    origin = story.origin
    yield Step(kind="plain", title=f"Enqueued {origin.text}", at=task["created_at"], task_id=origin.task_id)
    over, due = task["completed_at"], task["scheduled_for"]
    waits = task["status"] == Status.PENDING
    if due is not None and due > task["created_at"] and (over is None or due <= over):
        tried = f", after {many(task['attempt'], 'attempt')}" if waits and task["attempt"] else ""
        yield Step(
            kind="warn" if tried else "plain",
            title=f"Due{tried}" if due <= now else f"Due then{tried}",
            at=due,
            quote=task["error_message"] if tried else None,
        )
    if task["claimed_at"] is not None:
        which = f"Claimed, attempt {task['attempt']}" if task["attempt"] > 1 else "Claimed"
        yield Step(kind="info", title=which, at=task["claimed_at"], worker=task["worker_id"])
    if task["started_at"] is not None:
        again = task["attempt"] > 1 and over is None
        yield Step(kind="info", title="Started", at=task["started_at"], quote=task["error_message"] if again else None)
    yield from _requests(story.requests)
    for event in story.events:
        kind = "good" if event.kind == "circuit_closed" else "warn"
        yield Step(
            kind=kind,
            title=f"{event.host} {_EVENTS.get(event.kind, event.kind)}",
            at=event.happened_at,
            quote=event.reason,
        )
    if over is None and task["last_heartbeat_at"] is not None and task["claimed_at"] is not None:
        yield Step(
            kind="amber" if task["status"] == Status.STALE else "info",
            title="Last heartbeat",
            at=max(task["last_heartbeat_at"], task["started_at"] or task["claimed_at"]),
        )
    if over is not None:
        kind, title = _ENDS[Status(task["status"])]
        retries = f" after {many(task['attempt'], 'attempt')}" if task["attempt"] > 1 else ""
        yield Step(kind=kind, title=title + retries, at=over, quote=task["error_message"])
    for one in story.followed:
        yield Step(kind="plain", title=f"Follow-up: {one.role}, {one.status}", at=one.created_at, task_id=one.id)


def _requests(requests: Sequence[AttemptView]) -> Iterator[Step]:
    """What went well is one step; of what did not, the newest are told one by one."""
    well = [one for one in requests if one.verdict == "ok"]
    if well:
        yield Step(
            kind="good", title=f"{many(len(well), 'request')} answered, the first of them", at=well[0].attempted_at
        )
    troubles = [one for one in requests if one.verdict != "ok"]
    for one in troubles[-TROUBLES:]:
        status = f" (HTTP {one.status})" if one.status else ""
        then = "; another identity" if one.rotated else ""
        title = f"{one.host}: {one.verdict.replace('_', ' ')}{status}{then}"
        yield Step(kind="bad", title=title, at=one.attempted_at, quote=one.error)
