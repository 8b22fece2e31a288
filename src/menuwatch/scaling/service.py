"""Read and change the number of workers, within limits."""

from __future__ import annotations

from menuwatch.accounts import audit
from menuwatch.config.settings import Settings
from menuwatch.core.errors import Conflict, InvalidField, Transient
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all
from menuwatch.scaling.model import NO_SUPERVISOR, Limits, ReplicaCount, Scaler, ScaleStatus

_q = sql.load(__package__)

PODS = Limits(5, 15)
"""Limits if none are configured and the scaler has none of its own."""


def limits(settings: Settings) -> Limits:
    """The configured limits, for a scaler without its own. If only one is set, the other is adjusted to it."""
    low, high = settings.workers_min, settings.workers_max
    if low is None:
        low = PODS.low if high is None else min(PODS.low, high)
    return Limits(low, max(PODS.high, low) if high is None else high)


async def replicas(conn: Connection, scaler: Scaler | None, settings: Settings) -> ReplicaCount:
    """Current, desired and allowed number."""
    return await _replica_count(conn, scaler, settings, await _status(conn, scaler))


async def scale(conn: Connection, scaler: Scaler | None, settings: Settings, wanted: int) -> ReplicaCount:
    """Request that many. Raises InvalidField outside the limits, and Conflict if the number cannot be changed."""
    before = await _replica_count(conn, scaler, settings, await _status(conn, scaler, ordering=True))
    check(wanted, Limits(before.low, before.high))
    if scaler is None or before.why_not is not None:
        raise Conflict(before.why_not or NO_SUPERVISOR)
    try:
        await scaler.scale(conn, wanted)
    except Transient as error:
        raise Conflict(str(error)) from error
    await audit.record(
        conn, "workers_scaled", None, backend=scaler.backend, was=before.desired, running=before.current, wanted=wanted
    )
    return await replicas(conn, scaler, settings)


def check(wanted: int, limits: Limits) -> None:
    """Raises InvalidField for a number outside the limits, naming them."""
    if not limits.low <= wanted <= limits.high:
        raise InvalidField(
            "replicas",
            f"{wanted:,} is too {'few' if wanted < limits.low else 'many'}: allowed are {limits.low:,} to {limits.high:,} "
            "(WORKERS_MIN, WORKERS_MAX)",
        )


async def _status(conn: Connection, scaler: Scaler | None, *, ordering: bool = False) -> ScaleStatus:
    if scaler is None:
        return ScaleStatus(current=0, desired=None, unavailable_reason=NO_SUPERVISOR)
    return await scaler.replicas(conn, ordering=ordering)


async def _replica_count(
    conn: Connection, scaler: Scaler | None, settings: Settings, status: ScaleStatus
) -> ReplicaCount:
    """Without a supervisor, counts the workers that were started manually."""
    current = status.current
    if status.desired is None:
        (living,) = await fetch_all(conn, _q.count_live, {})
        current = living["pods" if scaler is not None and scaler.unit == "pod" else "n"]
    within = status.limits or limits(settings)
    return ReplicaCount(
        current=current,
        desired=status.desired,
        low=within.low,
        high=within.high,
        backend="none" if scaler is None else scaler.backend,
        unit="worker" if scaler is None else scaler.unit,
        doing=status.progress,
        why_not=status.unavailable_reason,
    )
