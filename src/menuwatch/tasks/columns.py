"""Batches of tasks and of endings as the parallel arrays that the functions in the database take: a column each. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from menuwatch.db import arrays
from menuwatch.tasks.ending import Ending
from menuwatch.tasks.model import NewTask

OF_ENDINGS = ("ids", "attempts", "verbs", "reasons", "results", "waits", "due", "ran")
OF_NEW = ("roles", "stores", "priorities", "payloads", "due", "platforms", "retries", "alone")
"""What the columns are called."""


def of_new(tasks: Sequence[NewTask]) -> dict[str, Any]:
    """New tasks as the parallel arrays that enqueue_tasks takes."""
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
    """Endings as the parallel arrays that finish_tasks takes; an array of nulls is null.

    In the order of the ids, in which everybody locks tasks.
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
    }


def _task_id(end: Ending) -> int:
    return end.task_id


def _json(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _texts(values: list[str | None]) -> str | None:
    """As an array, or null where all are."""
    return arrays.texts(values) if values.count(None) < len(values) else None


def _times(values: list[datetime | None]) -> str | None:
    return arrays.times(values) if values.count(None) < len(values) else None


def _nulls(count: int) -> str:
    return "{" + ",".join(["NULL"] * count) + "}"
