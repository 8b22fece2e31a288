"""Scale the workers of one machine: requests are stored in the database, and the supervisor that holds the lease carries them out.

So any server can accept requests, wherever the workers run, and a request survives restarts of server and supervisor.
"""

from __future__ import annotations

from typing import Literal

from menuwatch.config.settings import Settings
from menuwatch.core.machine import processors
from menuwatch.db.pool import Connection
from menuwatch.scaling import desired_count
from menuwatch.scaling.desired_count import Lease
from menuwatch.scaling.model import NO_SUPERVISOR, Limits, ScaleStatus

LEAST, MOST = 1, 8


def limits(settings: Settings) -> Limits:
    """The configured limits; else at least one worker, and at most two per usable processor or eight. Workers mostly wait for hosts,
    so more workers than processors are fine; each uses memory, so hundreds are not."""
    low = LEAST if settings.workers_min is None else settings.workers_min
    most = max(MOST, 2 * processors())
    return Limits(low, max(low, most) if settings.workers_max is None else settings.workers_max)


class LocalScaler:
    """Scaler for one machine. Its status is the last one that the supervisor published, which it does at once."""

    backend = "local"
    unit: Literal["pod", "worker"] = "worker"

    def __init__(self, settings: Settings) -> None:
        self._limits = limits(settings)

    async def replicas(self, conn: Connection, *, ordering: bool = False) -> ScaleStatus:
        """Current scale."""
        lease = await desired_count.get(conn, lock=ordering)
        if not lease.held or lease.desired is None or lease.low is None or lease.high is None:
            return ScaleStatus(current=0, desired=None, unavailable_reason=NO_SUPERVISOR, limits=self._limits)
        return ScaleStatus(
            current=lease.running + lease.draining,
            desired=lease.desired,
            progress=_progress(lease, lease.desired),
            limits=Limits(lease.low, lease.high),
        )

    async def scale(self, conn: Connection, replicas: int) -> None:
        """Request that many workers."""
        await desired_count.set_desired(conn, replicas)


def _progress(lease: Lease, wanted: int) -> str | None:
    """Progress of a request; one that the supervisor has not read yet counts as started."""
    staying = lease.running + lease.starting
    starting = lease.starting + (0 if lease.error else max(wanted - staying, 0))
    leaving = lease.draining + max(staying - wanted, 0)
    parts = []
    if starting:
        parts.append(f"{starting:,} starting")
    if leaving:
        parts.append(
            f"{leaving:,} is finishing its tasks" if leaving == 1 else f"{leaving:,} are finishing their tasks"
        )
    if lease.error:
        parts.append(lease.error)
    return "; ".join(parts) or None
