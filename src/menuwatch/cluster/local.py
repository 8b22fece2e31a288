"""Workers of one machine as something that can be scaled: orders go into the database, and the supervisor that holds it obeys.

So any server may order, wherever the workers run, and an order outlives whoever took it and whoever obeys it.
"""

from __future__ import annotations

from menuwatch.cluster import hold
from menuwatch.cluster.base import NOBODY, Limits, Standing
from menuwatch.cluster.hold import Held
from menuwatch.core.machine import processors
from menuwatch.core.settings import Settings
from menuwatch.db.pool import Connection

LEAST, MOST = 1, 8


def limits(settings: Settings) -> Limits:
    """Those that are set; else one worker at least, and at most two for each processor that may be used, or eight. Workers mostly wait
    for hosts, so that more of them than processors do no harm; each takes memory, so that hundreds would."""
    low = LEAST if settings.workers_min is None else settings.workers_min
    most = max(MOST, 2 * processors())
    return Limits(low, max(low, most) if settings.workers_max is None else settings.workers_max)


class LocalScaler:
    """Where a server orders. What it says is what the supervisor said last, and a supervisor says it at once."""

    backend, unit = "local", "worker"

    def __init__(self, settings: Settings) -> None:
        self._limits = limits(settings)

    async def replicas(self, conn: Connection, *, ordering: bool = False) -> Standing:
        """How it stands."""
        found = await hold.look(conn, lock=ordering)
        if not found.held or found.wanted is None or found.low is None or found.high is None:
            return Standing(current=0, desired=None, why_not=NOBODY, limits=self._limits)
        return Standing(
            current=found.running + found.leaving,
            desired=found.wanted,
            doing=_doing(found, found.wanted),
            limits=Limits(found.low, found.high),
        )

    async def scale(self, conn: Connection, replicas: int) -> None:
        """Orders that many."""
        await hold.order(conn, replicas)


def _doing(found: Held, wanted: int) -> str | None:
    """What is under way, as it will be in a moment: an order that was not seen yet counts as seen."""
    staying = found.running + found.starting
    starting = found.starting + (0 if found.trouble else max(wanted - staying, 0))
    leaving = found.leaving + max(staying - wanted, 0)
    said = []
    if starting:
        said.append(f"{starting:,} starting")
    if leaving:
        said.append(
            f"{leaving:,} finishes what it has and then leaves"
            if leaving == 1
            else f"{leaving:,} finish what they have and then leave"
        )
    if found.trouble:
        said.append(found.trouble)
    return "; ".join(said) or None
