"""How many workers there are, and having more or fewer: within limits, and never by accident."""

from __future__ import annotations

from dataclasses import dataclass

from menuwatch.cluster.base import Replicas, Scaler
from menuwatch.core.settings import Settings
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations import audit
from menuwatch.operations.reading import rows
from menuwatch.operations.refusals import Conflict, Unusable

_q = sql.load(__package__, "scaling.sql")

NOBODY = (
    "nothing that starts and stops workers is connected to this installation; start another `menuwatch worker` for more, and "
    "decommission workers for fewer"
)
"""Why, where there is no scaler."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The least and the most that may be asked for."""

    low: int
    high: int

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        """Those that are set."""
        return cls(settings.workers_min, settings.workers_max)


async def replicas(conn: Connection, scaler: Scaler | None, limits: Limits) -> Replicas:
    """How many there are and may be."""
    if scaler is None:
        (found,) = await rows(conn, _q.living, {})
        return Replicas(
            current=found["n"],
            desired=None,
            low=limits.low,
            high=limits.high,
            backend="none",
            unit="worker",
            why_not=NOBODY,
        )
    current, desired = await scaler.replicas()
    return Replicas(
        current=current, desired=desired, low=limits.low, high=limits.high, backend=scaler.backend, unit=scaler.unit
    )


async def scale(conn: Connection, scaler: Scaler | None, limits: Limits, wanted: int) -> Replicas:
    """Orders that many. Raises Unusable outside the limits, naming them, and Conflict where the number cannot be changed from here."""
    if not limits.low <= wanted <= limits.high:
        raise Unusable(
            "replicas",
            f"{wanted:,} is too {'few' if wanted < limits.low else 'many'}: from {limits.low:,} to {limits.high:,} are allowed "
            "(WORKERS_MIN and WORKERS_MAX)",
        )
    if scaler is None:
        raise Conflict(NOBODY)
    before, desired = await scaler.replicas()
    await scaler.scale(wanted)
    await audit.record(conn, "workers_scaled", None, backend=scaler.backend, was=desired, running=before, wanted=wanted)
    return await replicas(conn, scaler, limits)
