"""One task as text for people: why it is where it is, its times, what it was asked with and what came of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from menuwatch.cli.output import plural
from menuwatch.operations.explanation import Explanation
from menuwatch.operations.reading import Row
from menuwatch.operations.wording import span
from menuwatch.tasks.model import Status


def lines(task: Row, store: str | None, why: Explanation) -> list[str]:
    """The lines of the sheet; `store` is the name of the task's store, if it has one that is still there."""
    reason = why.reason.removesuffix(": cancelled.") + "." if _unexplained(task) else why.reason
    found = [f"Task {task['id']}: {task['role']}, {task['status']}", reason, ""]
    facts = [
        ("Store", None if task["dispensary_id"] is None else f"{task['dispensary_id']} ({store or 'gone'})"),
        ("Platform", task["platform"]),
        ("Priority", task["priority"]),
        (
            "Attempts",
            f"{task['attempt']}, {task['retry_count']} of {plural(task['max_retries'], 'retry', 'retries')} used",
        ),
        ("Worker", task["worker_id"]),
    ]
    found += [f"{name:<10}{value}" for name, value in facts if value is not None]
    found += ["", *_timeline(task)]
    for name, value in (
        # Under way: what it stopped at before.
        ("Last reason" if is_at_work(task) else "Reason", None if _unexplained(task) else task["error_message"]),
        ("Payload", decoded(task["payload"])),
        ("Result", decoded(task["result"])),
    ):
        if value:
            text = value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value)).decode()
            found += ["", name, *(f"  {line}" for line in text.splitlines())]
    return found


def decoded(value: Any) -> Any:
    """A JSON column of a task."""
    return None if value is None else msgspec.json.decode(value)


def is_at_work(task: Row) -> bool:
    """Whether a worker has it."""
    return task["status"] in (Status.CLAIMED, Status.RUNNING, Status.STALE)


def _unexplained(task: Row) -> bool:
    """It was cancelled by somebody who gave no reason."""
    return bool(task["status"] == Status.CANCELLED and task["error_message"] == "cancelled")


def _timeline(task: Row) -> list[str]:
    """The task's moments in their order, and how long each step took."""
    over, due = task["completed_at"], task["scheduled_for"]
    moments = [
        (task["created_at"], "enqueued"),
        # One that was cancelled before it was due never came to be.
        (None if due is not None and over is not None and due > over else due, "due"),
        (task["claimed_at"], f"claimed by {task['worker_id']}"),
        (task["started_at"], "begun"),
        (task["last_heartbeat_at"], "last sign of its worker"),
        (over, task["status"]),
    ]
    lines = []
    before: datetime | None = None
    for moment, what in sorted((one for one in moments if one[0] is not None), key=lambda one: one[0]):
        later = "" if before is None else f"  +{span((moment - before).total_seconds())}"
        lines.append(f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC  {what}{later}")
        before = moment
    return lines
