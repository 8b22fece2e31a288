"""Why a task is in its current state: the result, and the facts it follows from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from menuwatch.core.postpone import PostponeCode
from menuwatch.core.shapes import Instant, doc


class Code(StrEnum):
    """Reason codes."""

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


class BlockingTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task that blocks another one."""

    id: int
    role: str
    worker_id: Annotated[str | None, doc("Id of the worker that runs it; null if it is pending.")]
    worker_name: Annotated[str | None, doc("Name of that worker.")]
    claimed_at: Annotated[Instant | None, doc("Null if it is pending.")]


class WorkerAvailability(msgspec.Struct, frozen=True, kw_only=True):
    """Workers that could run a task. A worker is live if it has sent a heartbeat in the last two minutes."""

    live: Annotated[int, doc("Number of live workers.")]
    take: Annotated[int, doc("Number of live workers that accept the role.")]
    claiming: Annotated[int, doc("Number of those workers that currently claim tasks.")]
    paused: Annotated[
        int, doc("Number of those workers paused by an operator or not claiming this role at the moment.")
    ]
    backing_off: Annotated[int, doc("Number of those workers backing off because their machine is overloaded.")]
    slots: Annotated[int, doc("Number of task slots of the claiming workers.")]
    busy: Annotated[int, doc("Number of tasks that they run.")]
    silent: Annotated[int, doc("Number of workers that have not stopped and send no heartbeat.")]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a task is in its current state. Fields that do not apply are null."""

    task_id: int
    status: str
    code: Annotated[Code, doc("Reason code.")]
    reason: Annotated[str, doc("Reason as a sentence.")]
    until: Annotated[Instant | None, doc("End of the wait.")]
    seconds: Annotated[
        float | None, doc("Seconds until then; for a running task, since the last heartbeat of its worker.")
    ]
    blocked_by: BlockingTask | None
    ahead: Annotated[
        int | None,
        doc(
            "Number of tasks ahead of it: of its role and store (`behind`), or of all that its workers accept (up to 10,000)."
        ),
    ]
    worker_id: Annotated[str | None, doc("Worker that runs it, ran it, or runs the task that blocks it.")]
    since: Annotated[Instant | None, doc("Start of that state; for a finished task, when it ended.")]
    workers: Annotated[WorkerAvailability | None, doc("Workers that could run it.")]
    details: Annotated[dict[str, Any], doc("Further facts: retries, the last error, the live workers.")]


class WorkerFacts(Struct, frozen=True, kw_only=True):
    """A worker that has not stopped. `roles` None means any; `slots` None that it has not reported them; `silent` in seconds."""

    worker_id: str
    friendly_name: str
    roles: list[str] | None
    status: str
    silent: float
    alive: bool
    slots: int | None
    active: int
    paused_roles: Sequence[str] = ()
    reason: str | None = None
    paused_roles_code: str | None = None


class HostFacts(Struct, frozen=True, kw_only=True):
    """A host. `code` None: it takes requests; else why not, and `until` when it does again, None: when an operator resumes it."""

    host: str
    code: PostponeCode | None = None
    reason: str | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts for an explanation. `state` is the live task's (r, p, s, a), None for a finished one."""

    id: int
    role: str
    status: str
    now: datetime
    state: str | None = None
    dispensary_id: int | None = None
    scheduled_for: datetime | None = None
    worker_id: str | None = None
    worker_name: str | None = None
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    last_heartbeat_at: datetime | None = None
    error_message: str | None = None
    postpone_code: PostponeCode | None = None
    postpone_host: str | None = None
    attempt: int = 0
    retry_count: int = 0
    max_retries: int = 3
    postpone_count: int = 0
    head: BlockingTask | None = None
    """The first task of the same role and store, if that is another one."""
    ahead: int = 0
    """Tasks of the same role and store before it."""
    holder: BlockingTask | None = None
    """The active task of its store."""
    workers: Sequence[WorkerFacts] = ()
    before: int = 0
    """Ready tasks that its workers would claim first, counted up to MAX_COUNTED."""
    blocked: HostFacts | None = None
    """The host that blocks it (the view `live_tasks`)."""
    postponed_by: HostFacts | None = None
    """Current state of `postpone_host`."""
    active_proxies: int = 1
    alive_seconds: float = 120.0
    """Time without a heartbeat after which a worker no longer counts as alive."""
    stale_seconds: float = 600.0
    """Time without a heartbeat after which its task is recovered."""

    def explain(self, code: Code, reason: str, **known: Any) -> Explanation:
        """The explanation with that reason; ignores arguments that are not `known`."""
        fields: dict[str, Any] = {**_UNKNOWN, "details": {}, **known}
        return Explanation(task_id=self.id, status=self.status, code=code, reason=reason, **fields)


_UNKNOWN = dict.fromkeys(("until", "seconds", "blocked_by", "ahead", "worker_id", "since", "workers"))
