"""`menuwatch explain`: why a task is in its state, and its trace with every request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from itertools import groupby
from typing import Annotated

import typer

from menuwatch.cli.options import JsonOption
from menuwatch.cli.output import console, echo, print_json, wrap
from menuwatch.cli.startup import read
from menuwatch.cli.task_selection import get_store_name
from menuwatch.core.format import duration, pluralize, size, strip_period
from menuwatch.db.pool import Connection
from menuwatch.fetch.attempts import FetchAttempt
from menuwatch.queue.explain.service import ExplanationWithTrace, explain_with_trace
from menuwatch.queue.service import FINAL
from menuwatch.queue.task_attempts import TaskAttempt
from menuwatch.queue.task_list import TaskRow, get_task
from menuwatch.queue.trace import TaskHostEvent, TaskTrace
from menuwatch.system import System


def explain(
    task_id: Annotated[int, typer.Argument(help="Id of the task.", metavar="TASK", min=1, max=2**63 - 1)],
    everything: Annotated[bool, typer.Option("--all", help="Show every request, including successful ones.")] = False,
    json: JsonOption = False,
) -> None:
    """Explain a task: why it is in its current state, what enqueued it, its requests, and follow-up tasks."""

    async def act(system: System, conn: Connection) -> tuple[TaskRow, ExplanationWithTrace, str | None]:
        task = await get_task(conn, task_id)
        why = await explain_with_trace(conn, task_id)
        return task, why, await get_store_name(conn, task)

    task, why, store = read(act)
    if json:
        print_json(why)
    else:
        echo(*_lines(task, why, store, everything=everything, width=console.width))


_DONE = {
    "again": "retries",
    "rotate": "changes proxy and browser",
    "reroute": "changes the proxy",
    "give_up": "gives up",
}
_GIVEN_UP = {
    "rate_limited": "task postponed",
    # A site that blocks its robots.txt for all clients is treated as having none.
    "blocked": "gives up for now",
    "challenge": "gives up for now",
}
"""What giving up means for the task, where that is not its end or a retry."""
_EVENTS = {
    "cooldown": "cools down",
    "rate_reduced": "rate reduced",
    "circuit_opened": "circuit opens",
    "circuit_closed": "circuit closes",
}

Moment = tuple[datetime, str]


def _lines(
    task: TaskRow, why: ExplanationWithTrace, store: str | None, *, everything: bool, width: int
) -> Iterator[str]:
    """The explanation, then the trace: moments in their order, in UTC. Of a task that went well its requests are one line for each
    identity, unless `everything` is set."""
    trace = why.story
    of = "" if task.dispensary_id is None else f" of store {task.dispensary_id} ({store or 'gone'})"
    yield f"Task {task.id}: {task.role}{of}, {task.status}"
    yield from wrap(why.reason, width)
    day: date | None = None
    for moment, text in sorted(_moments(task, trace, everything), key=lambda moment: moment[0]):
        at = moment.astimezone(UTC)
        if at.date() != day:
            day = at.date()
            yield ""
            yield f"{day:%Y-%m-%d} (UTC)"
        clock = f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}  "
        pad = len(text) - len(text.lstrip())
        yield from wrap(clock + text, width, 16 + pad)
    if trace.requests_total:
        yield ""
        yield from wrap(_totals(trace), width)


def _moments(task: TaskRow, trace: TaskTrace, everything: bool) -> Iterator[Moment]:
    yield trace.enqueued_at, f"enqueued {trace.origin.text}, priority {task.priority}"
    for attempt in trace.attempts:
        yield from _attempt(attempt)
    in_full = everything or trace.troubles > 0 or task.attempt > 1
    for _, run in groupby(trace.requests, key=lambda request: (request.host, request.proxy_id, request.profile)):
        yield from _identity_run(list(run), in_full)
    previous = None
    for event in trace.events:
        # Several requests at once may cause the same event.
        if (text := _event(event)) != previous:
            yield event.happened_at, text
        previous = text
    if task.status == "pending" and task.scheduled_for is not None:
        yield task.scheduled_for, "due" + (f" for attempt {task.attempt + 1}" if task.attempt else "")
    if task.completed_at is not None:
        payload = "" if trace.payload_id is None else f", with payload {trace.payload_id}"
        yield task.completed_at, f"{task.status}{payload}"
        for follow_up in trace.followed:
            yield task.completed_at, f"then task {follow_up.id} ({follow_up.role}, {follow_up.status})"


def _attempt(attempt: TaskAttempt) -> Iterator[Moment]:
    """Its claim, and its end unless that is the end of the task."""
    again = f", attempt {attempt.attempt}" if attempt.attempt > 1 else ""
    yield attempt.claimed_at, f"claimed by {attempt.worker or attempt.worker_id}{again}"
    if attempt.ended_at is not None and attempt.outcome not in FINAL:
        took = "" if attempt.duration_ms is None else f" after {_ms(attempt.duration_ms)}"
        sent = f", {pluralize(attempt.requests, 'request')}" if attempt.requests else ", without a request"
        error = f": {strip_period(attempt.error)}" if attempt.error else ""
        yield attempt.ended_at, f"attempt {attempt.attempt} {attempt.outcome}{took}{sent}{error}"


def _identity_run(requests: Sequence[FetchAttempt], in_full: bool) -> Iterator[Moment]:
    """Requests of one identity in a row."""
    first = requests[0]
    through = "a proxy" if first.proxy_id is None else f"proxy {first.proxy_id} ({first.proxy or 'removed since'})"
    yield first.attempted_at, f"requests to {first.host} as {first.profile} through {through}"
    if in_full:
        for request in requests:
            yield request.attempted_at, "  " + _request(request)
        return
    elapsed, count = sum(request.elapsed_ms for request in requests), sum(request.bytes for request in requests)
    yield (
        first.attempted_at,
        f"  {pluralize(len(requests), 'request')}, {'all ' if len(requests) > 1 else ''}ok: {_ms(elapsed)}, {size(count)}",
    )


def _request(request: FetchAttempt) -> str:
    status = "" if request.status is None else f"{request.status} "
    waited = f", waited {_ms(request.waited_ms)} before" if request.waited_ms >= _WORTH_MS else ""
    text = f"{status}{request.verdict}: {_ms(request.elapsed_ms)}, {size(request.bytes)}{waited}"
    if request.error:
        text += f"; {request.error}"
    action = _DONE.get(request.reaction)
    if request.reaction == "give_up":
        action = _GIVEN_UP.get(request.verdict, action)
    return f"{text} → {action}" if action else text


_WORTH_MS = 50.0


def _event(event: TaskHostEvent) -> str:
    until = "" if event.until is None else f" until {event.until.astimezone(UTC):%H:%M:%S}"
    return f"{event.host} {_EVENTS.get(event.kind, event.kind)}{until}: {event.reason}"


def _totals(trace: TaskTrace) -> str:
    left = trace.requests_total - len(trace.requests)
    verdicts = Counter(request.verdict for request in trace.requests)
    counted = ", ".join(f"{n:,} {verdict}" for verdict, n in verdicts.most_common())
    text = f"{pluralize(trace.requests_total, 'request')} ({counted}"
    text += f", {left:,} earlier ones not shown)" if left else ")"
    text += (
        f", {pluralize(trace.rotations, 'rotation')}; {_ms(trace.elapsed_ms)} requesting, {_ms(trace.waited_ms)} "
        "waiting for rate limits, "
    )
    return text + size(trace.bytes)


def _ms(value: float) -> str:
    return duration(value / 1000)
