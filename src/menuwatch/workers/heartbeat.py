"""What a worker says of itself at each beat; the field names are fixed, dashboards read them."""

from __future__ import annotations

import msgspec


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """What the worker's process uses. Memory in MiB; percentages from 0 to 100, of the limit it runs under."""

    memory_mb: float
    memory_total_mb: float
    memory_rss_mb: float
    memory_percent: float
    cpu_user_ms: int
    cpu_system_ms: int
    cpu_percent: float
    is_backing_off: bool = False
    backoff_reason: str | None = None


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """The body of one beat; `current_task_id` is the task that has been running longest. `paused_roles` are those that it does not
    claim for now though it may, `paused_roles_reason` says why; both are there only when there is such a role."""

    worker_id: str
    current_task_id: int | None
    current_task_ids: list[int]
    active_task_count: int
    max_concurrent_tasks: int
    status: str
    resources: Resources
    paused_roles: list[str] | msgspec.UnsetType = msgspec.UNSET
    paused_roles_reason: str | msgspec.UnsetType = msgspec.UNSET
