"""Pods of a StatefulSet as something that can be scaled: orders go into the database, and the servers carry them out.

    more ──► patch of the scale
    fewer ─► the workers of the pods that go (the highest numbers) are told to leave ──► they finish what they have ──► patch
    until as many pods are left as were ordered, those that go and are started again meanwhile begin nothing

An order outlives whoever took it: each server looks every second, one at a time, and does what comes next by what it finds.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from pathlib import Path

from menuwatch.cluster import orders
from menuwatch.cluster.base import Standing
from menuwatch.cluster.orders import Leaver
from menuwatch.cluster.statefulset import ACCOUNT, Changed, ClusterError, Seen, StatefulSets
from menuwatch.core.settings import Settings
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Connection, Pool
from menuwatch.workers import commands
from menuwatch.workers.commands import Command

log = get_logger(__name__)


def scales(settings: Settings) -> bool:
    """Whether it is Kubernetes that runs the workers."""
    return settings.scaler == "kubernetes" or (settings.scaler == "auto" and (ACCOUNT / "token").is_file())


class KubernetesScaler:
    """Where a server orders. The number is the StatefulSet's, whoever changed it; an order stands until it is carried out."""

    backend, unit = "kubernetes", "pod"

    def __init__(self, settings: Settings, *, account: Path = ACCOUNT) -> None:
        self._pods = StatefulSets(settings, account=account)

    async def replicas(self, conn: Connection, *, ordering: bool = False) -> Standing:
        """How it stands. Where that cannot be found out it says so: nothing can be ordered then, and all else goes on."""
        try:
            seen = await self._pods.look(fresh=ordering)
        except ClusterError as error:
            return Standing(current=0, desired=None, why_not=str(error))
        order = await orders.look(conn)
        wanted = seen.wanted if order.wanted is None else order.wanted
        leavers = await orders.living(conn, self.hosts(wanted, seen)) if order.wanted is not None else []
        said = [text for text in (_doing(wanted, seen, leavers), order.trouble) if text]
        if order.late:
            said.append("no server carries it out at present: start one (`menuwatch server`) with SCALER=kubernetes")
        return Standing(current=seen.ready, desired=wanted, doing="; ".join(said) or None)

    async def scale(self, conn: Connection, replicas: int) -> None:
        """Orders that many. What the API server would refuse is refused now: it is asked to try without doing it."""
        await self._pods.scale(replicas, trial=True)
        await orders.place(conn, replicas)

    def hosts(self, wanted: int, seen: Seen) -> Sequence[str]:
        """The hosts of the pods that are too many."""
        return [f"{self._pods.name}-{ordinal}" for ordinal in range(wanted, max(seen.wanted, seen.there))]

    async def carry_out(self, pool: Pool) -> bool:
        """The next step of an order, if there is one and no other server is at it; says whether one is under way."""
        async with pool.connection(timeout=5) as conn, conn.transaction():
            wanted = await orders.take(conn)
            if wanted is None:
                return False
            try:
                await self._step(conn, wanted)
                await orders.hindered(conn, None)
            except Changed:
                pass  # it is looked at again
            except ClusterError as error:
                log.warning("pods could not be scaled", action="pods_not_scaled", wanted=wanted, error=str(error))
                await orders.hindered(conn, str(error))
            return True

    async def _step(self, conn: Connection, wanted: int) -> None:
        seen = await self._pods.look()
        leavers = await orders.living(conn, self.hosts(wanted, seen))
        for one in leavers:
            if not one.told:
                await commands.give(conn, one.worker_id, Command.DECOMMISSION, "scaling")
                log.info("a worker leaves with its pod", action="pod_leaves", worker_id=one.worker_id, host=one.host)
        if wanted < seen.wanted and leavers:
            return
        if wanted != seen.wanted:
            # Somebody else may just have ordered more: then these pods have workers whom nobody told, and it is refused.
            await self._pods.scale(wanted, seen=seen)
            log.info("pods are scaled", action="pods_scaled", was=seen.wanted, wanted=wanted)
        elif seen.there <= wanted:
            await orders.done(conn)
            log.info("as many pods as were ordered", action="pods_settled", wanted=wanted, ready=seen.ready)


def _doing(wanted: int, seen: Seen, leavers: Sequence[Leaver]) -> str | None:
    going = max(seen.there, seen.wanted) - wanted
    if going > 0:
        tasks, workers = sum(one.tasks for one in leavers), len(leavers)
        of = "1 pod leaves" if going == 1 else f"{going:,} pods leave"
        if not workers:
            return of
        busy = f"{tasks:,} {'task' if tasks == 1 else 'tasks'}"
        return (
            f"{of} when {workers:,} {'worker has' if workers == 1 else 'workers have'} finished what they have ({busy})"
        )
    starting = wanted - seen.ready
    return f"{starting:,} starting" if starting > 0 else None


async def goes(conn: Connection, settings: Settings) -> bool:
    """Whether this pod is one of those that an order takes away: then it begins no work any more."""
    name = settings.pod_name or socket.gethostname()
    found = re.fullmatch(rf"{re.escape(settings.k8s_worker_statefulset)}-(\d{{1,6}})", name)
    if found is None:
        return False
    order = await orders.look(conn)
    return order.wanted is not None and int(found[1]) >= order.wanted
