"""What an explanation of a task follows from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec


class Other(msgspec.Struct, frozen=True, kw_only=True):
    """A task that stands in the way."""

    id: int
    role: str
    worker_id: str | None = None
    claimed_at: datetime | None = None


class WorkerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that has not stopped. `roles` None means any; `slots` None that it has not said; `silent` is in seconds."""

    worker_id: str
    friendly_name: str
    roles: list[str] | None
    status: str
    silent: float
    slots: int | None
    active: int
    paused_roles: list[str] = []
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """A host. `code` None: it is asked; else `paused`, `circuit` or `cooling`, and `until` when it is asked again, None where only a
    person can change it."""

    host: str
    code: str | None = None
    reason: str | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that an explanation follows from. `state` is the live task's (r, p, s, a), None for one that is over."""

    id: int
    role: str
    status: str
    now: datetime
    state: str | None = None
    dispensary_id: int | None = None
    scheduled_for: datetime | None = None
    worker_id: str | None = None
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    last_heartbeat_at: datetime | None = None
    error_message: str | None = None
    attempt: int = 0
    retry_count: int = 0
    max_retries: int = 3
    postpone_count: int = 0
    head: Other | None = None
    """The task of the same role and store that goes first, if that is another one."""
    ahead: int = 0
    """Tasks of the same role and store that go before it."""
    holder: Other | None = None
    """The task that works on its store."""
    workers: Sequence[WorkerFacts] = ()
    before: int = 0
    """Ready tasks that its workers would take before it, counted up to COUNTED."""
    hosts: Sequence[HostFacts] = ()
    """Those that its role asks; none where it asks nobody."""
    denier: HostFacts | None = None
    """The host that its last reason names, as it is now."""
    active_proxies: int = 1
    live_seconds: float = 90.0
    stale_seconds: float = 600.0
