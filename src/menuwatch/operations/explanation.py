"""An answer to why a task is where it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from menuwatch.operations.facts import Other


class Code(StrEnum):
    """The reasons."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    RUNNING = "running"
    SILENT = "silent"
    STALE = "stale"
    LATER = "later"
    BACKING_OFF = "backing_off"
    POSTPONED = "postponed"
    HOST_CLOSED = "host_closed"
    BEHIND = "behind"
    STORE_BUSY = "store_busy"
    NO_HANDLER = "no_handler"
    NO_WORKER = "no_worker"
    NO_WORKER_FOR_ROLE = "no_worker_for_role"
    NO_PROXY = "no_proxy"
    WORKERS_PAUSED = "workers_paused"
    WORKERS_STOPPING = "workers_stopping"
    WORKERS_BACKING_OFF = "workers_backing_off"
    NO_FREE_SLOT = "no_free_slot"
    READY = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """The workers that a task could have. Those that `take` its role live; `claiming` are those that would claim it now."""

    live: int
    take: int
    claiming: int
    paused: int
    backing_off: int
    slots: int
    busy: int
    silent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a task is where it is. `reason` is for people; the rest is what it was made of, None where it plays no part."""

    task_id: int
    status: str
    code: Code
    reason: str
    until: datetime | None = None
    seconds: float | None = None
    blocked_by: Other | None = None
    ahead: int | None = None
    worker_id: str | None = None
    since: datetime | None = None
    workers: Crew | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
