"""Scale the pods of a StatefulSet: requests are stored in the database, and the servers carry them out.

    more ──► patch of the scale
    fewer ─► the workers of the pods to remove (highest ordinals) are decommissioned ──► they finish their tasks ──► patch
    until the requested number is reached, pods to remove that restart meanwhile claim nothing

A request survives the server that accepted it: servers check every second, one at a time, and take the next step by the current state.

The API server gets two requests: GET of the StatefulSet and PATCH of its scale. The role in `deploy/` allows only these.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec import Struct
from psycopg.rows import class_row

from menuwatch.config.settings import Settings
from menuwatch.core.errors import Transient
from menuwatch.core.format import pluralize
from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.db.loop import LONGEST_BACKOFF, Loop
from menuwatch.db.pool import Connection, Pool
from menuwatch.scaling.model import ScaleStatus
from menuwatch.workers import commands
from menuwatch.workers.commands import Command

if TYPE_CHECKING:
    from lightkube import AsyncClient

log = get_logger(__name__)

_q = sql.load(__package__, "kubernetes.sql")

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Directory of a pod's service account: token, certificates and namespace."""
_TIMEOUT_SECONDS = 4.0
"""Timeout in seconds of a request to the API server."""
_FAILURE_CACHE_SECONDS = 5.0
"""Seconds for which a failure is cached for reads, since every page of workers makes one."""


class ClusterError(Transient):
    """The API server could not be reached or refused; the message says what is wrong and how to fix it."""


class Changed(ClusterError):
    """The StatefulSet changed after it was read."""


class StatefulSetStatus(Struct, frozen=True, kw_only=True):
    """Snapshot of the StatefulSet: desired, existing and ready pods. `version` changes with every change of it."""

    wanted: int
    there: int
    ready: int
    version: str


class StatefulSets:
    """Client for one StatefulSet. API server and credentials come from the pod's service account, else from a kubeconfig."""

    def __init__(self, settings: Settings, *, account: Path = ACCOUNT) -> None:
        self._account = account
        self.namespace = settings.k8s_namespace
        self.name = settings.k8s_worker_statefulset
        self._failed: tuple[float, ClusterError] | None = None

    async def read(self, *, fresh: bool = True) -> StatefulSetStatus:
        """Read its state; without `fresh` it may repeat a failure of the last seconds. Raises ClusterError."""
        if not fresh and self._failed is not None and time.monotonic() - self._failed[0] < _FAILURE_CACHE_SECONDS:
            raise self._failed[1]
        try:
            stateful_set = await self._request("get", "statefulsets", lambda client, kind: client.get(kind, self.name))
        except ClusterError as error:
            self._failed = time.monotonic(), error
            raise
        self._failed = None
        status = stateful_set.status
        return StatefulSetStatus(
            wanted=1 if stateful_set.spec.replicas is None else stateful_set.spec.replicas,
            there=(status and status.replicas) or 0,
            ready=(status and status.readyReplicas) or 0,
            version=stateful_set.metadata.resourceVersion,
        )

    async def scale(self, replicas: int, *, seen: StatefulSetStatus | None = None, dry_run: bool = False) -> None:
        """Set the number of pods, with `seen` only if nothing changed since. A `dry_run` only checks. Raises ClusterError, Changed."""
        body: dict[str, Any] = {"spec": {"replicas": replicas}}
        if seen is not None:
            body["metadata"] = {"resourceVersion": seen.version}
        from lightkube.types import PatchType

        await self._request(
            "patch",
            "statefulsets/scale",
            lambda client, kind: client.patch(
                kind.Scale, self.name, body, patch_type=PatchType.MERGE, field_manager="menuwatch", dry_run=dry_run
            ),
        )

    async def _request(self, verb: str, resource: str, action: Any) -> Any:
        client, kind = await asyncio.to_thread(self._open)  # importing the library takes a quarter of a second, once
        from httpx2 import HTTPError
        from lightkube.core.exceptions import ApiError, ConfigError

        server = client.config.cluster.server
        try:
            async with client, asyncio.timeout(2 * _TIMEOUT_SECONDS):
                return await action(client, kind)
        except ApiError as error:
            raise self._refused(verb, resource, server, error) from error
        except ConfigError as error:
            raise ClusterError(f"the kubeconfig cannot be used: {error}") from error
        except (HTTPError, TimeoutError, OSError) as error:
            cause = str(error) or type(error).__name__
            raise ClusterError(
                f"the API server of Kubernetes at {server} is unreachable or behind a failing proxy ({cause})"
            ) from error

    def _open(self) -> tuple[AsyncClient, Any]:
        from httpx2 import Timeout
        from lightkube import AsyncClient, KubeConfig
        from lightkube.core.exceptions import ConfigError
        from lightkube.resources.apps_v1 import StatefulSet
        from msgspec import MsgspecError
        from yaml import YAMLError

        try:
            config = KubeConfig.from_env(service_account=self._account).get()
        except ConfigError as error:
            raise ClusterError(
                "this process is not in a cluster (no service account's token is mounted) and has no kubeconfig "
                f"({error}): mount one, or set KUBECONFIG"
            ) from error
        except (KeyError, TypeError, OSError, ValueError, MsgspecError, YAMLError) as error:
            cause = f"{type(error).__name__}: {error}"
            raise ClusterError(
                f"neither the service account of this pod nor the kubeconfig can be read ({cause})"
            ) from error
        if config is None or config.user is None:
            raise ClusterError(
                "the current context of the kubeconfig has no user: set one with `kubectl config set-context`"
            )
        try:
            client = AsyncClient(
                config=config, namespace=self.namespace, timeout=Timeout(_TIMEOUT_SECONDS), trust_env=False
            )
        except (ConfigError, OSError, ValueError) as error:
            raise ClusterError(f"the certificates or the login of the kubeconfig cannot be used: {error}") from error
        return client, StatefulSet

    def _refused(self, verb: str, resource: str, server: str, error: Any) -> ClusterError:
        code, message = error.response.status_code, str(error.status.message or error)
        which = f"{self.namespace}/{self.name}"
        if code == 401:
            return ClusterError(f"the API server at {server} rejected the credentials: the token is wrong or expired")
        if code == 403:
            return ClusterError(
                f"permission denied: this service account may not {verb} {resource} (apps) in the namespace {self.namespace}; "
                f"grant the verb {verb} on {resource} (see deploy/base/rbac.yaml)"
            )
        if code == 404:
            return ClusterError(f"StatefulSet {which} not found: check K8S_NAMESPACE and K8S_WORKER_STATEFULSET")
        if code == 409:
            return Changed(f"conflict: {which} was changed at the same time")
        return ClusterError(f"the API server at {server} refused to {verb} {resource} of {which} ({code}): {message}")


class ScaleRequest(Struct, frozen=True, kw_only=True):
    """The row. `desired` None: no request. `late`: no server has checked it lately."""

    desired: int | None
    error: str | None
    late: bool


class DrainingWorker(Struct, frozen=True, kw_only=True):
    """A live worker in a pod to remove."""

    worker_id: str
    host: str
    decommissioned: bool
    tasks: int


async def get_request(conn: Connection) -> ScaleRequest:
    """The current request."""
    async with conn.cursor(row_factory=class_row(ScaleRequest)) as cursor:
        await cursor.execute(_q.scale_request)
        request = await cursor.fetchone()
    assert request is not None, "the migration inserts the row"
    return request


async def claim_request(conn: Connection) -> int | None:
    """Lock and return the requested number, for one server until the transaction ends. None: nothing to do."""
    row = await (await conn.execute(_q.take_scale_request)).fetchone()
    return None if row is None else int(row[0])


async def create_request(conn: Connection, wanted: int) -> None:
    """Request that many, replacing any earlier request."""
    await conn.execute(_q.place_scale_request, {"desired": wanted})


async def set_request_error(conn: Connection, error: str | None) -> None:
    """Record what blocks the request; None: nothing."""
    await conn.execute(_q.set_scale_error, {"error": error})


async def complete_request(conn: Connection) -> None:
    """Mark the request as completed: that many pods exist."""
    await conn.execute(_q.end_scale_request)


async def live_workers(conn: Connection, hosts: Sequence[str]) -> list[DrainingWorker]:
    """Workers on these hosts with a recent heartbeat; a pod's host has the pod's name."""
    async with conn.cursor(row_factory=class_row(DrainingWorker)) as cursor:
        await cursor.execute(_q.living_in_pods, {"hosts": list(hosts)})
        return await cursor.fetchall()


def runs_workers(settings: Settings) -> bool:
    """Whether Kubernetes runs the workers."""
    return settings.scaler == "kubernetes" or (settings.scaler == "auto" and (ACCOUNT / "token").is_file())


class KubernetesScaler:
    """Scaler for Kubernetes. The current number is that of the StatefulSet; a request stays until it is carried out."""

    backend = "kubernetes"
    unit: Literal["pod", "worker"] = "pod"

    def __init__(self, settings: Settings, *, account: Path = ACCOUNT) -> None:
        self._pods = StatefulSets(settings, account=account)

    async def replicas(self, conn: Connection, *, ordering: bool = False) -> ScaleStatus:
        """Current scale. If it cannot be determined, the status says so and scaling is disabled."""
        try:
            seen = await self._pods.read(fresh=ordering)
        except ClusterError as error:
            return ScaleStatus(current=0, desired=None, unavailable_reason=str(error))
        request = await get_request(conn)
        wanted = seen.wanted if request.desired is None else request.desired
        leavers = await live_workers(conn, self.hosts(wanted, seen)) if request.desired is not None else []
        parts = [text for text in (_progress(wanted, seen, leavers), request.error) if text]
        if request.late:
            parts.append("no server is processing the request: start one (`menuwatch server`) with SCALER=kubernetes")
        return ScaleStatus(current=seen.ready, desired=wanted, progress="; ".join(parts) or None)

    async def scale(self, conn: Connection, replicas: int) -> None:
        """Request that many pods. A dry run rejects at once what the API server would refuse."""
        await self._pods.scale(replicas, dry_run=True)
        await create_request(conn, replicas)

    def hosts(self, wanted: int, seen: StatefulSetStatus) -> Sequence[str]:
        """Hosts of the pods to remove."""
        return [f"{self._pods.name}-{ordinal}" for ordinal in range(wanted, max(seen.wanted, seen.there))]

    async def carry_out(self, pool: Pool) -> bool:
        """Take the next step of a request, unless another server is doing so; returns whether one is in progress."""
        async with pool.connection(timeout=5) as conn, conn.transaction():
            wanted = await claim_request(conn)
            if wanted is None:
                return False
            try:
                await self._step(conn, wanted)
                await set_request_error(conn, None)
            except Changed:
                pass  # checked again
            except ClusterError as error:
                log.warning("scaling pods failed", action="pods_not_scaled", wanted=wanted, error=str(error))
                await set_request_error(conn, str(error))
            return True

    async def _step(self, conn: Connection, wanted: int) -> None:
        seen = await self._pods.read()
        leavers = await live_workers(conn, self.hosts(wanted, seen))
        for worker in leavers:
            if not worker.decommissioned:
                await commands.send(conn, worker.worker_id, Command.DECOMMISSION, "scaling")
                log.info(
                    "decommissioning worker of a removed pod",
                    action="pod_leaves",
                    worker_id=worker.worker_id,
                    host=worker.host,
                )
        if wanted < seen.wanted and leavers:
            return
        if wanted != seen.wanted:
            # Another user may just have requested more: then workers of these pods are not decommissioned, and the patch is refused.
            await self._pods.scale(wanted, seen=seen)
            log.info("pods scaled", action="pods_scaled", was=seen.wanted, wanted=wanted)
        elif seen.there <= wanted:
            await complete_request(conn)
            log.info("desired pod count reached", action="pods_settled", wanted=wanted, ready=seen.ready)


def _progress(wanted: int, seen: StatefulSetStatus, leavers: Sequence[DrainingWorker]) -> str | None:
    going = max(seen.there, seen.wanted) - wanted
    if going > 0:
        tasks, workers = sum(worker.tasks for worker in leavers), len(leavers)
        of = "1 pod leaves" if going == 1 else f"{going:,} pods leave"
        if not workers:
            return of
        busy = pluralize(tasks, "task")
        return f"{of} after {pluralize(workers, 'worker')} {'finishes its' if workers == 1 else 'finish their'} tasks ({busy})"
    starting = wanted - seen.ready
    return f"{starting:,} starting" if starting > 0 else None


async def is_removed(conn: Connection, settings: Settings) -> bool:
    """Whether a scale request removes this pod: then it claims no more tasks."""
    name = settings.pod_name or socket.gethostname()
    ordinal = re.fullmatch(rf"{re.escape(settings.k8s_worker_statefulset)}-(\d{{1,6}})", name)
    if ordinal is None:
        return False
    request = await get_request(conn)
    return request.desired is not None and int(ordinal[1]) >= request.desired


class PodReconciler(Loop):
    """Checks every second, since nothing announces that a draining worker has finished."""

    name: ClassVar[str] = "pod-reconciler"

    def __init__(self, pool: Pool, scaler: KubernetesScaler, *, interval: float = 1.0) -> None:
        super().__init__(interval=interval)
        self._pool = pool
        self._scaler = scaler

    async def step(self) -> float | None:
        """One step of the current request. A failure is recorded on the request, which is then checked less often."""
        in_progress = await self.attend("pod_order", 1, self._scaler.carry_out(self._pool), self._record_failure)
        return None if in_progress else max(self.interval, LONGEST_BACKOFF)

    async def _record_failure(self, reason: str) -> None:
        async with self._pool.connection() as conn:
            await set_request_error(conn, f"carrying it out failed: {reason}")
