"""Who works on what at this moment: pods with their workers, what they have in hand and what they take next."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import msgspec

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations import workers
from menuwatch.operations.reading import Row, rows
from menuwatch.operations.refusals import NotFound
from menuwatch.workers.commands import Command

_q = sql.load(__package__, "pods.sql")

WORKERS = 1000
"""Most workers of one read."""

State = Literal["active", "backing_off", "paused", "stopping", "silent"]


class _Resources(msgspec.Struct, frozen=True):
    """As a heartbeat says it. Workers that somebody else wrote may leave anything out."""

    memory_mb: float | None = None
    memory_total_mb: float | None = None
    memory_percent: float | None = None
    cpu_percent: float | None = None
    is_backing_off: bool = False
    backoff_reason: str | None = None


class _Beat(msgspec.Struct, frozen=True):
    max_concurrent_tasks: int | None = None
    resources: _Resources = _Resources()
    paused_roles: list[str] = []
    paused_roles_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerNow:
    """One worker. `cpu` and `memory` are shares of its limits, None before its first heartbeat; `memory_mb` and `memory_total_mb` are
    MiB. `told` are commands that it has not taken yet; `version` of the software, None where it does not say. `why` is why it
    claims nothing, or not everything."""

    worker_id: str
    name: str
    pod: str
    host: str
    pid: int | None
    roles: Sequence[str] | None
    state: State
    started_at: datetime
    last_heartbeat_at: datetime
    silent_seconds: float
    task_ids: Sequence[int]
    slots: int
    cpu: float | None
    memory: float | None
    memory_mb: float | None
    memory_total_mb: float | None
    why: str | None
    paused_roles: Sequence[str]
    told: Sequence[str]
    version: str | None = None

    @property
    def busy(self) -> int:
        """Tasks in hand."""
        return len(self.task_ids)

    @property
    def load(self) -> float | None:
        """The fuller of processor and memory, as a share."""
        return max((share for share in (self.cpu, self.memory) if share is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodNow:
    """Workers that stand together: those of a pod, or of a host where they have none."""

    name: str
    workers: Sequence[WorkerNow]

    @property
    def living(self) -> Sequence[WorkerNow]:
        """Those that gave a sign lately."""
        return [worker for worker in self.workers if worker.state != "silent"]

    @property
    def busy(self) -> int:
        """Tasks in hand."""
        return sum(worker.busy for worker in self.workers)

    @property
    def slots(self) -> int:
        """Tasks that its living workers run at once."""
        return sum(worker.slots for worker in self.living)

    @property
    def cpu(self) -> float | None:
        """Of its fullest worker: limits are the pod's."""
        return max((worker.cpu for worker in self.living if worker.cpu is not None), default=None)

    @property
    def memory(self) -> float | None:
        """Of its fullest worker."""
        return max((worker.memory for worker in self.living if worker.memory is not None), default=None)

    @property
    def load(self) -> float | None:
        """The fuller of the two."""
        return max((share for share in (self.cpu, self.memory) if share is not None), default=None)

    @property
    def state(self) -> State:
        """That of all of its living workers where they agree, else active; silent without any."""
        states = {worker.state for worker in self.living}
        return "silent" if not states else states.pop() if len(states) == 1 else "active"

    @property
    def reasons(self) -> Sequence[str]:
        """Why workers of it claim nothing, each reason once."""
        return sorted({worker.why for worker in self.living if worker.why})

    @property
    def versions(self) -> Sequence[str]:
        """Of the software that its living workers run, each once; those that do not say are left out."""
        return sorted({worker.version for worker in self.living if worker.version})

    def count(self, state: State) -> int:
        """Its workers in that state."""
        return sum(worker.state == state for worker in self.workers)


async def pods(conn: Connection) -> list[PodNow]:
    """Every pod with workers that have not stopped, by name; at most WORKERS workers."""
    found = [_worker(one) for one in await rows(conn, _q.crew_now, {"limit": WORKERS})]
    return [
        PodNow(name=name, workers=list(workers))
        for name, workers in itertools.groupby(found, lambda worker: worker.pod)
    ]


async def names(conn: Connection) -> list[str]:
    """Pods that the registry knows, also those that are gone."""
    return [one["pod"] for one in await rows(conn, _q.pod_names, {})]


async def gone(conn: Connection, *, limit: int = 8) -> list[Row]:
    """Workers that stopped in the last day."""
    return await rows(conn, _q.gone_lately, {"limit": limit})


async def held(conn: Connection, workers: Sequence[str] | None = None, *, limit: int = 100) -> list[Row]:
    """Tasks that workers have, those first that they have had longest; of these workers, or of all."""
    return await rows(conn, _q.held_now, {"workers": None if workers is None else list(workers), "limit": limit})


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What nobody has in hand: tasks that could be taken now, and those that are for later, the first of them at `next_at`."""

    ready: int
    scheduled: int
    next_at: datetime | None


async def waiting(conn: Connection) -> Waiting:
    """How much waits."""
    (found,) = await rows(conn, _q.waiting, {})
    return Waiting(**found)


async def next_ready(conn: Connection, *, limit: int = 8) -> list[Row]:
    """Tasks that are taken next, in that order."""
    return await rows(conn, _q.next_ready, {"limit": limit})


def _worker(one: Row) -> WorkerNow:
    try:
        beat = msgspec.json.decode(one["heartbeat"], type=_Beat)
    except msgspec.ValidationError:
        # Somebody else's worker, with a body of its own.
        beat = _Beat()
    used = beat.resources
    return WorkerNow(
        worker_id=one["worker_id"],
        name=one["friendly_name"],
        pod=one["pod"],
        host=one["host"],
        pid=one["pid"],
        roles=one["roles"],
        state=_state(one["status"], used) if one["alive"] else "silent",
        started_at=one["started_at"],
        last_heartbeat_at=one["last_heartbeat_at"],
        silent_seconds=one["silent_seconds"],
        task_ids=one["task_ids"],
        slots=min(max(beat.max_concurrent_tasks or 1, 1), 1000),
        cpu=_share(used.cpu_percent),
        memory=_share(used.memory_percent),
        memory_mb=used.memory_mb,
        memory_total_mb=used.memory_total_mb,
        why=used.backoff_reason or beat.paused_roles_reason,
        paused_roles=beat.paused_roles,
        told=one["told"],
        version=one["version"],
    )


def _state(status: str, used: _Resources) -> State:
    if status == "active" and used.is_backing_off:
        return "backing_off"
    return status  # type: ignore[return-value]  # the database has checked which there are, and those that stopped were not read


def _share(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


async def tell(conn: Connection, pod: str, command: Command, by: str | None = None) -> tuple[int, int]:
    """Tells every worker of a pod; returns how many were told, and how many it does not concern: they leave or have left, or gave no
    sign lately. Raises NotFound for a pod without workers."""
    crew = [worker for one in await pods(conn) if one.name == pod for worker in one.workers]
    if not crew:
        raise NotFound(f"there is no worker in the pod {pod!r} (any more)")
    hearing = [worker for worker in crew if worker.state not in ("silent", "stopping")]
    for worker in hearing:
        await workers.tell(conn, worker.worker_id, command, by)
    return len(hearing), len(crew) - len(hearing)
