"""How a worker works, and who it is."""

from __future__ import annotations

import os
import secrets
import socket
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from menuwatch import __version__
from menuwatch.core.backoff import Backoff
from menuwatch.core.settings import Settings
from menuwatch.engine.resources import Thresholds
from menuwatch.tasks.model import Role, parse_role
from menuwatch.workers.names import WORKER_NAMES, pod_name, worker_name
from menuwatch.workers.registry import Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a worker works. Times in seconds; `roles` None takes every role that has a handler.

    `ordinal` is its place in its pod; `thresholds` None never backs off for want of resources.
    """

    worker_id: str | None = None
    pod: str | None = None
    ordinal: int | None = None
    roles: frozenset[Role] | None = None
    slots: int = 3
    poll_interval: float = 5.0
    heartbeat_interval: float = 30.0
    reap_interval: float = 60.0
    stale_after: timedelta = timedelta(minutes=10)
    backoff: Backoff = Backoff(base=30.0)
    grace: float = 30.0
    patience: float = 300.0
    thresholds: Thresholds | None = None
    backing_off: float = 10.0

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Raises Refused for a role that does not exist, with the list of those that do."""
        stale_after = timedelta(minutes=settings.stale_after_minutes)
        return cls(
            worker_id=settings.worker_id,
            pod=pod_name(socket.gethostname(), ordinal=settings.pod_ordinal, name=settings.pod_name),
            roles=frozenset(parse_role(name) for name in settings.worker_role) or None,
            slots=settings.max_concurrent_tasks,
            poll_interval=settings.poll_interval_ms / 1000,
            heartbeat_interval=min(settings.heartbeat_interval_ms / 1000, stale_after.total_seconds() / 3),
            reap_interval=min(60.0, stale_after.total_seconds() / 2),
            stale_after=stale_after,
            backoff=Backoff(base=settings.task_retry_base_seconds),
            grace=settings.shutdown_grace_seconds,
            patience=stale_after.total_seconds() / 2,
            thresholds=Thresholds.from_settings(settings),
            backing_off=settings.backoff_duration_ms / 1000,
        )


def identify(options: Options, roles: Collection[Role] | None) -> Identity:
    """A worker's identity: unique per start, so that nobody mistakes a restarted worker for the one that owned a task."""
    host = socket.gethostname()
    pid = os.getpid()
    worker_id = f"{options.worker_id or f'{host}-{pid}'}-{secrets.token_hex(4)}"
    return Identity(
        worker_id=worker_id,
        friendly_name=worker_name(
            zlib.crc32(worker_id.encode()) % len(WORKER_NAMES) if options.ordinal is None else options.ordinal
        ),
        host=host,
        pid=pid,
        pod=options.pod,
        roles=None if roles is None else tuple(sorted(roles)),
        version=__version__,
    )
