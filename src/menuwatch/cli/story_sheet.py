"""The story of a task as text for people: moments in their order, in UTC."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from itertools import groupby

from menuwatch.cli.output import plural
from menuwatch.operations.attempts import AttemptView
from menuwatch.operations.explanation import Code, Explanation
from menuwatch.operations.reading import Row
from menuwatch.operations.story import Befell, Story
from menuwatch.operations.wording import because

_INDENT = " " * 14
_DONE = {
    "again": "asks again",
    "rotate": "changes proxy and browser",
    "reroute": "changes the proxy",
    "give_up": "gives up",
}
_GIVEN_UP = {
    "rate_limited": "the task is put off",
    # A site that shows its robots.txt to nobody has none, and is asked for the rest.
    "blocked": "gives up for now",
    "challenge": "gives up for now",
}
"""What giving up means for the task, where that is not its end or a retry."""
_EVENTS = {
    "cooldown": "cools down",
    "slower": "is asked more slowly",
    "circuit_opened": "circuit is open",
    "circuit_closed": "circuit closes",
}

Moment = tuple[datetime, str]


def lines(
    task: Row, why: Explanation, story: Story, store: str | None, *, everything: bool, width: int
) -> Iterator[str]:
    """The sentence, then the story. Of a task that went well its requests are one line for each identity, unless `everything` is
    wanted."""
    of = "" if task["dispensary_id"] is None else f" of store {task['dispensary_id']} ({store or 'gone'})"
    yield f"Task {task['id']}: {task['role']}{of}, {task['status']}"
    yield from textwrap.wrap(why.reason, width, break_long_words=False, break_on_hyphens=False)
    day: date | None = None
    for moment, text in sorted(_moments(task, why, story, everything), key=lambda one: one[0]):
        at = moment.astimezone(UTC)
        if at.date() != day:
            day = at.date()
            yield ""
            yield f"{day:%Y-%m-%d} (UTC)"
        clock = f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}  "
        pad = len(text) - len(text.lstrip())
        yield from textwrap.wrap(
            clock + text,
            width,
            subsequent_indent=_INDENT + " " * (pad + 2),
            break_long_words=False,
            break_on_hyphens=False,
        )
    if story.requests_total:
        yield ""
        yield from textwrap.wrap(_sums(story), width, break_on_hyphens=False)


def _moments(task: Row, why: Explanation, story: Story, everything: bool) -> Iterator[Moment]:
    yield story.enqueued_at, f"enqueued {story.origin.text}, priority {task['priority']}"
    if task["claimed_at"] is not None:
        again = f", attempt {task['attempt']}" if task["attempt"] > 1 else ""
        before = f"; it stopped before at: {because(task['error_message'])}" if _at_work(task) else ""
        yield task["claimed_at"], f"claimed by {task['worker_id']}{again}{before}"
    in_full = everything or story.troubles > 0 or task["attempt"] > 1
    for _, run in groupby(story.requests, key=lambda one: (one.host, one.proxy_id, one.profile)):
        yield from _run(list(run), in_full)
    said = None
    for event in story.events:
        # Several requests at once may bring about the same.
        if (text := _event(event)) != said:
            yield event.happened_at, text
        said = text
    if task["status"] == "pending" and task["scheduled_for"] is not None:
        yield task["scheduled_for"], "due" + _put_off(task, why, story)
    if task["completed_at"] is not None:
        made = "" if story.payload_id is None else f", with payload {story.payload_id}"
        yield task["completed_at"], f"{task['status']}{made}"
        for one in story.followed:
            yield task["completed_at"], f"then task {one.id} ({one.role}, {one.status})"


def _at_work(task: Row) -> bool:
    """Whether a worker has it, and its reason is of an attempt before."""
    return task["completed_at"] is None and task["error_message"] is not None


def _put_off(task: Row, why: Explanation, story: Story) -> str:
    """What an attempt ended with, of a task that waits for the next one: its own moment is not on record."""
    if not task["attempt"] or task["error_message"] is None:
        return ""
    how = "tried again" if why.code is Code.BACKING_OFF else "put off"
    asked = "" if story.requests_total else " without a request"
    return f" for attempt {task['attempt'] + 1}; it was {how}{asked}: {because(task['error_message'])}"


def _run(requests: Sequence[AttemptView], in_full: bool) -> Iterator[Moment]:
    """Requests of one identity in a row."""
    first = requests[0]
    through = "a proxy" if first.proxy_id is None else f"proxy {first.proxy_id} ({first.proxy or 'removed since'})"
    yield first.attempted_at, f"asks {first.host} as {first.profile} through {through}"
    if in_full:
        for request in requests:
            yield request.attempted_at, "  " + _request(request)
        return
    took, size = sum(one.elapsed_ms for one in requests), sum(one.bytes for one in requests)
    yield (
        first.attempted_at,
        f"  {plural(len(requests), 'request')}, {'all ' if len(requests) > 1 else ''}ok: {_ms(took)}, {_size(size)}",
    )


def _request(one: AttemptView) -> str:
    status = "" if one.status is None else f"{one.status} "
    waited = f", waited {_ms(one.waited_ms)} before" if one.waited_ms >= _WORTH_MS else ""
    text = f"{status}{one.verdict}: {_ms(one.elapsed_ms)}, {_size(one.bytes)}{waited}"
    if one.error:
        text += f"; {one.error}"
    done = _DONE.get(one.reaction)
    if one.reaction == "give_up":
        done = _GIVEN_UP.get(one.verdict, done)
    return f"{text} → {done}" if done else text


_WORTH_MS = 50.0


def _event(event: Befell) -> str:
    until = "" if event.until is None else f" until {event.until.astimezone(UTC):%H:%M:%S}"
    return f"{event.host} {_EVENTS.get(event.kind, event.kind)}{until}: {event.reason}"


def _sums(story: Story) -> str:
    left = story.requests_total - len(story.requests)
    verdicts = Counter(one.verdict for one in story.requests)
    counted = ", ".join(f"{n:,} {verdict}" for verdict, n in verdicts.most_common())
    text = f"{plural(story.requests_total, 'request')} ({counted}"
    text += f", {left:,} earlier ones not shown)" if left else ")"
    text += f", {plural(story.rotations, 'rotation')}; {_ms(story.elapsed_ms)} asking, {_ms(story.waited_ms)} waiting for its turn, "
    return text + _size(story.bytes)


def _ms(value: float) -> str:
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.1f} s"


def _size(value: int) -> str:
    return f"{value} bytes" if value < 1000 else f"{value / 1e3:.0f} kB" if value < 1e6 else f"{value / 1e6:.1f} MB"
