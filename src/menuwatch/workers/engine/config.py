"""Configuration and identity of a worker."""

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
from menuwatch.config.settings import Settings
from menuwatch.core.backoff import Backoff
from menuwatch.queue.model import Role, worker_roles
from menuwatch.workers.engine.resources import Thresholds
from menuwatch.workers.names import WORKER_NAMES, pod_name, worker_name
from menuwatch.workers.registry import Identity

MAX_HEARTBEAT_SECONDS = 40.0
"""A third of the two minutes after which a worker counts as gone (`worker_alive_for` in SQL)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """How a worker works. Times in seconds; `roles` None takes every role that has a handler.

    `ordinal` is its place in its pod; `thresholds` None never backs off for want of resources; `log_rate` is the most claimed tasks
    that are logged per second.
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
    db_timeout: float = 300.0
    thresholds: Thresholds | None = None
    backing_off: float = 10.0
    log_rate: float = 10.0

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Raises Refused for a role that does not exist, with the list of those that do."""
        stale_after = timedelta(minutes=settings.stale_after_minutes)
        return cls(
            worker_id=settings.worker_id,
            pod=pod_name(socket.gethostname(), ordinal=settings.pod_ordinal, name=settings.pod_name),
            roles=worker_roles(settings.worker_role) or None,
            slots=settings.max_concurrent_tasks,
            poll_interval=settings.poll_interval_ms / 1000,
            heartbeat_interval=min(
                settings.heartbeat_interval_ms / 1000, stale_after.total_seconds() / 3, MAX_HEARTBEAT_SECONDS
            ),
            reap_interval=min(60.0, stale_after.total_seconds() / 2),
            stale_after=stale_after,
            backoff=Backoff(base=settings.task_retry_base_seconds),
            grace=settings.shutdown_grace_seconds,
            db_timeout=stale_after.total_seconds() / 2,
            thresholds=Thresholds.from_settings(settings),
            backing_off=settings.backoff_duration_ms / 1000,
            log_rate=settings.task_log_rate,
        )


def identify(options: WorkerConfig, roles: Collection[Role] | None) -> Identity:
    """A worker's identity. Its id is the configured one, followed by its place in a pod (`resync-1`, `resync-2`); otherwise it is
    new at each start."""
    host = socket.gethostname()
    pid = os.getpid()
    if options.worker_id is None:
        worker_id = f"{host}-{pid}-{secrets.token_hex(4)}"
    else:
        worker_id = options.worker_id if options.ordinal is None else f"{options.worker_id}-{options.ordinal + 1}"
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
