"""How many workers there are, and having more or fewer: within limits, and never by accident."""

from __future__ import annotations

from menuwatch.cluster.base import NOBODY, Limits, Replicas, Scaler, Standing
from menuwatch.core.errors import Transient
from menuwatch.core.settings import Settings
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations import audit
from menuwatch.operations.reading import rows
from menuwatch.operations.refusals import Conflict, Unusable

_q = sql.load(__package__, "scaling.sql")

PODS = Limits(5, 15)
"""Where nothing is set and the scaler has no limits of its own."""


def limits(settings: Settings) -> Limits:
    """Those that are set, for a scaler without its own. One that is set alone moves the other one along."""
    low, high = settings.workers_min, settings.workers_max
    if low is None:
        low = PODS.low if high is None else min(PODS.low, high)
    return Limits(low, max(PODS.high, low) if high is None else high)


async def replicas(conn: Connection, scaler: Scaler | None, settings: Settings) -> Replicas:
    """How many there are and may be."""
    return await _as_it_is(conn, scaler, settings, await _standing(conn, scaler))


async def scale(conn: Connection, scaler: Scaler | None, settings: Settings, wanted: int) -> Replicas:
    """Orders that many. Raises Unusable outside the limits, naming them, and Conflict where the number cannot be changed from here."""
    before = await _as_it_is(conn, scaler, settings, await _standing(conn, scaler, ordering=True))
    check(wanted, Limits(before.low, before.high))
    if scaler is None or before.why_not is not None:
        raise Conflict(before.why_not or NOBODY)
    try:
        await scaler.scale(conn, wanted)
    except Transient as error:
        raise Conflict(str(error)) from error
    await audit.record(
        conn, "workers_scaled", None, backend=scaler.backend, was=before.desired, running=before.current, wanted=wanted
    )
    return await replicas(conn, scaler, settings)


def check(wanted: int, limits: Limits) -> None:
    """Raises Unusable for a number outside the limits, naming them."""
    if not limits.low <= wanted <= limits.high:
        raise Unusable(
            "replicas",
            f"{wanted:,} is too {'few' if wanted < limits.low else 'many'}: from {limits.low:,} to {limits.high:,} are allowed "
            "(WORKERS_MIN and WORKERS_MAX)",
        )


async def _standing(conn: Connection, scaler: Scaler | None, *, ordering: bool = False) -> Standing:
    if scaler is None:
        return Standing(current=0, desired=None, why_not=NOBODY)
    return await scaler.replicas(conn, ordering=ordering)


async def _as_it_is(conn: Connection, scaler: Scaler | None, settings: Settings, found: Standing) -> Replicas:
    """Where nobody holds a number, those that somebody started by hand are counted."""
    current = found.current
    if found.desired is None:
        (living,) = await rows(conn, _q.living, {})
        current = living["pods" if scaler is not None and scaler.unit == "pod" else "n"]
    within = found.limits or limits(settings)
    return Replicas(
        current=current,
        desired=found.desired,
        low=within.low,
        high=within.high,
        backend="none" if scaler is None else scaler.backend,
        unit="worker" if scaler is None else scaler.unit,
        doing=found.doing,
        why_not=found.why_not,
    )
