"""Convert batches of tasks and of endings into the parallel arrays that the database functions take, one per column. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from menuwatch.db import arrays
from menuwatch.queue.ending import Ending
from menuwatch.queue.model import NewTask

OF_ENDINGS = ("ids", "attempts", "verbs", "reasons", "results", "waits", "due", "ran", "codes", "hosts")
OF_NEW = ("roles", "stores", "priorities", "payloads", "due", "platforms", "retries", "alone")
"""Column names."""


def of_new(tasks: Sequence[NewTask]) -> dict[str, Any]:
    """New tasks as the parallel arrays of enqueue_tasks."""
    count = len(tasks)
    return {
        "roles": arrays.texts([task.role for task in tasks]),
        "stores": arrays.numbers([task.dispensary_id for task in tasks]),
        "priorities": arrays.numbers([task.priority for task in tasks]),
        "payloads": _texts([_json(task.payload) for task in tasks]) or _nulls(count),
        "due": _times([task.scheduled_for for task in tasks]) or _nulls(count),
        "platforms": arrays.texts([task.platform for task in tasks]),
        "retries": arrays.numbers([task.max_retries for task in tasks]),
        "alone": arrays.numbers([task.unique for task in tasks]),
    }


def of_endings(ends: Sequence[Ending]) -> dict[str, Any]:
    """Endings as the parallel arrays of finish_tasks; an array of nulls becomes null.

    In id order, which is the lock order for tasks.
    """
    ends = sorted(ends, key=_task_id)
    done = all(end.verb == "done" for end in ends)
    return {
        "ids": arrays.numbers([end.task_id for end in ends]),
        "attempts": arrays.numbers([end.attempt for end in ends]),
        "verbs": None if done else arrays.texts([end.verb for end in ends]),
        "reasons": _texts([end.reason for end in ends]),
        "results": _texts([_json(end.result) for end in ends]),
        "waits": None if done else arrays.numbers([end.wait for end in ends]),
        "due": None if done else _times([end.due for end in ends]),
        "ran": arrays.numbers([end.ran for end in ends]),
        "codes": None if done else _texts([end.code for end in ends]),
        "hosts": None if done else _texts([end.host for end in ends]),
    }


def _task_id(end: Ending) -> int:
    return end.task_id


def _json(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _texts(values: Sequence[str | None]) -> str | None:
    """The values as an array, or null if all are null."""
    return arrays.texts(values) if values.count(None) < len(values) else None


def _times(values: list[datetime | None]) -> str | None:
    return arrays.times(values) if values.count(None) < len(values) else None


def _nulls(count: int) -> str:
    return "{" + ",".join(["NULL"] * count) + "}"
