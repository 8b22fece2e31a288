"""The StatefulSet of the workers, through the Kubernetes API: how many pods it has, and having another number.

Two requests are all there is: GET of the StatefulSet and PATCH of its scale. The role in `deploy/` allows these and nothing else.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from menuwatch.core.errors import Transient
from menuwatch.core.settings import Settings

if TYPE_CHECKING:
    from lightkube import AsyncClient

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod has its service account: token, certificates and namespace."""
_SECONDS = 4.0
"""Longest wait for one answer of the API server; it is near."""
_MEMORY = 5.0
"""Seconds for which a failure is taken as it is by those who only look: every page of workers does."""


class ClusterError(Transient):
    """The API server was not reached or refused; the message says what is wrong and what would be right."""


class Changed(ClusterError):
    """Somebody else changed the StatefulSet since it was looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The StatefulSet at one moment: pods that it should have, has, and has ready. `version` changes with whatever changes in it."""

    wanted: int
    there: int
    ready: int
    version: str


class StatefulSets:
    """One StatefulSet. Where the API server is and who we are comes from the pod's service account, else from a kubeconfig."""

    def __init__(self, settings: Settings, *, account: Path = ACCOUNT) -> None:
        self._account = account
        self.namespace = settings.k8s_namespace
        self.name = settings.k8s_worker_statefulset
        self._failed: tuple[float, ClusterError] | None = None

    async def look(self, *, fresh: bool = True) -> Seen:
        """How it stands; one that is not `fresh` may repeat a failure of some seconds ago. Raises ClusterError."""
        if not fresh and self._failed is not None and time.monotonic() - self._failed[0] < _MEMORY:
            raise self._failed[1]
        try:
            found = await self._ask("get", "statefulsets", lambda client, kind: client.get(kind, self.name))
        except ClusterError as error:
            self._failed = time.monotonic(), error
            raise
        self._failed = None
        status = found.status
        return Seen(
            wanted=1 if found.spec.replicas is None else found.spec.replicas,
            there=(status and status.replicas) or 0,
            ready=(status and status.readyReplicas) or 0,
            version=found.metadata.resourceVersion,
        )

    async def scale(self, replicas: int, *, seen: Seen | None = None, trial: bool = False) -> None:
        """Has that many pods; with `seen` only if nothing has changed since. A `trial` changes nothing and raises what the real one
        would. Raises ClusterError, and Changed."""
        body: dict[str, Any] = {"spec": {"replicas": replicas}}
        if seen is not None:
            body["metadata"] = {"resourceVersion": seen.version}
        from lightkube.types import PatchType

        await self._ask(
            "patch",
            "statefulsets/scale",
            lambda client, kind: client.patch(
                kind.Scale, self.name, body, patch_type=PatchType.MERGE, field_manager="menuwatch", dry_run=trial
            ),
        )

    async def _ask(self, verb: str, resource: str, what: Any) -> Any:
        client, kind = await asyncio.to_thread(self._open)  # loading the library takes a quarter of a second, once
        from httpx2 import HTTPError
        from lightkube.core.exceptions import ApiError, ConfigError

        server = client.config.cluster.server
        try:
            async with client, asyncio.timeout(2 * _SECONDS):
                return await what(client, kind)
        except ApiError as error:
            raise self._refused(verb, resource, server, error) from error
        except ConfigError as error:
            raise ClusterError(f"the kubeconfig cannot be used: {error}") from error
        except (HTTPError, TimeoutError, OSError) as error:
            said = str(error) or type(error).__name__
            raise ClusterError(
                f"the API server of Kubernetes at {server} cannot be reached or gives no answer of its own ({said})"
            ) from error

    def _open(self) -> tuple[AsyncClient, Any]:
        from httpx2 import Timeout
        from lightkube import AsyncClient, KubeConfig
        from lightkube.core.exceptions import ConfigError
        from lightkube.resources.apps_v1 import StatefulSet
        from msgspec import MsgspecError
        from yaml import YAMLError

        try:
            found = KubeConfig.from_env(service_account=self._account).get()
        except ConfigError as error:
            raise ClusterError(
                "this process is not in a cluster (no service account's token is mounted) and has no kubeconfig "
                f"({error}): mount one, or set KUBECONFIG"
            ) from error
        except (KeyError, TypeError, OSError, ValueError, MsgspecError, YAMLError) as error:
            said = f"{type(error).__name__}: {error}"
            raise ClusterError(
                f"neither the service account of this pod nor the kubeconfig can be read ({said})"
            ) from error
        if found is None or found.user is None:
            raise ClusterError("the kubeconfig names no user in its current context: nobody could be asked as anybody")
        try:
            client = AsyncClient(config=found, namespace=self.namespace, timeout=Timeout(_SECONDS), trust_env=False)
        except (ConfigError, OSError, ValueError) as error:
            raise ClusterError(f"the certificates or the login of the kubeconfig cannot be used: {error}") from error
        return client, StatefulSet

    def _refused(self, verb: str, resource: str, server: str, error: Any) -> ClusterError:
        code, said = error.response.status_code, str(error.status.message or error)
        which = f"{self.namespace}/{self.name}"
        if code == 401:
            return ClusterError(
                f"the API server at {server} does not know who we are: the token is wrong or has expired"
            )
        if code == 403:
            return ClusterError(
                f"no rights: the account of this server may not {verb} {resource} (apps) in the namespace {self.namespace}; "
                f"its role needs the verb {verb} on {resource}, as in deploy/base/rbac.yaml"
            )
        if code == 404:
            return ClusterError(
                f"there is no StatefulSet {which}: K8S_NAMESPACE and K8S_WORKER_STATEFULSET say which one runs the workers"
            )
        if code == 409:
            return Changed(f"somebody else changed {which} at the same moment")
        return ClusterError(f"the API server at {server} refused to {verb} {resource} of {which} ({code}): {said}")
