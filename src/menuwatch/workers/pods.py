"""Current state of pods and workers: their tasks, and the tasks that are next."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Struct

from menuwatch.core.errors import NotFound
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all
from menuwatch.workers import service as workers
from menuwatch.workers.commands import Command

_q = sql.load(__package__, "pods.sql")

WORKERS = 1000
"""Most workers of one read."""

State = Literal["active", "backing_off", "paused", "stopping", "silent"]


class _Resources(msgspec.Struct, frozen=True):
    """Resources in a heartbeat. Third-party workers may omit any of them."""

    memory_mb: float | None = None
    memory_total_mb: float | None = None
    memory_rss_mb: float | None = None
    memory_percent: float | None = None
    cpu_percent: float | None = None
    process_cpu_percent: float | None = None
    is_backing_off: bool = False
    backoff_reason: str | None = None


class _Heartbeat(msgspec.Struct, frozen=True):
    max_concurrent_tasks: int | None = None
    resources: _Resources = _Resources()
    paused_roles: list[str] = []
    paused_roles_reason: str | None = None


class WorkerStatus(Struct, frozen=True, kw_only=True):
    """One worker. `cpu` and `memory` are what its process uses, `machine_cpu` and `machine_memory` what its container or machine uses,
    as shares of the limits; None if not reported. `rss_mb` and `memory_total_mb` are MiB. `pending_commands` are not acknowledged
    yet; `version` is that of the software, None if not reported. `why` is why it claims nothing, or not everything."""

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
    machine_cpu: float | None
    machine_memory: float | None
    rss_mb: float | None
    memory_total_mb: float | None
    why: str | None
    paused_roles: Sequence[str]
    pending_commands: Sequence[str]
    version: str | None = None

    @property
    def busy(self) -> int:
        """Number of tasks that it holds."""
        return len(self.task_ids)

    @property
    def load(self) -> float | None:
        """The fuller of processor and memory, as a share: of its own process, since others' load says nothing of it."""
        return _max(self.cpu, self.memory)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodStatus:
    """Workers that stand together: those of a pod, or of a host where they have none."""

    name: str
    workers: Sequence[WorkerStatus]

    @property
    def living(self) -> Sequence[WorkerStatus]:
        """Workers with a recent heartbeat."""
        return [worker for worker in self.workers if worker.state != "silent"]

    @property
    def busy(self) -> int:
        """Number of tasks that its live workers hold."""
        return sum(worker.busy for worker in self.workers)

    @property
    def slots(self) -> int:
        """Tasks that its living workers run at once."""
        return sum(worker.slots for worker in self.living)

    @property
    def cpu(self) -> float | None:
        """What its processes use together: their limits are the pod's."""
        return self._sum("cpu")

    @property
    def memory(self) -> float | None:
        """What its processes use together."""
        return self._sum("memory")

    def _sum(self, name: str) -> float | None:
        """Over processes: several workers may run in one."""
        by_process = {
            worker.worker_id if worker.pid is None else (worker.host, worker.pid): share
            for worker in self.living
            if (share := getattr(worker, name)) is not None
        }
        return min(sum(by_process.values()), 1.0) if by_process else None

    @property
    def machine_cpu(self) -> float | None:
        """What its container, or its machine with all other processes, uses."""
        return _max(*(worker.machine_cpu for worker in self.living))

    @property
    def machine_memory(self) -> float | None:
        """As `machine_cpu`."""
        return _max(*(worker.machine_memory for worker in self.living))

    @property
    def load(self) -> float | None:
        """The fuller of processor and memory, by its own processes: an idle pod has none, whatever else the machine does."""
        return _max(self.cpu, self.memory)

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


async def pods(conn: Connection) -> list[PodStatus]:
    """Every pod with workers that have not stopped, by name; at most WORKERS workers."""
    workers = [_worker(row) for row in await fetch_all(conn, _q.workers_by_pod, {"limit": WORKERS})]
    return [
        PodStatus(name=name, workers=list(members))
        for name, members in itertools.groupby(workers, lambda worker: worker.pod)
    ]


async def names(conn: Connection) -> list[str]:
    """Names of all pods in the registry, including those without workers."""
    return [row["pod"] for row in await fetch_all(conn, _q.pod_names, {})]


async def list_stopped(conn: Connection, *, limit: int = 8) -> list[Row]:
    """Workers that stopped in the last day."""
    return await fetch_all(conn, _q.gone_lately, {"limit": limit})


async def held(conn: Connection, workers: Sequence[str] | None = None, *, limit: int = 100) -> list[Row]:
    """Tasks that workers hold, longest held first; of these workers, or of all."""
    return await fetch_all(conn, _q.held_now, {"workers": None if workers is None else list(workers), "limit": limit})


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Unclaimed tasks: those that can be claimed now, those that are `blocked_by` hosts, and those scheduled for later, the first at
    `next_at`."""

    ready: int
    blocked: int
    blocked_by: Sequence[str]
    scheduled: int
    next_at: datetime | None


async def waiting(conn: Connection) -> Waiting:
    """Count unclaimed tasks."""
    (row,) = await fetch_all(conn, _q.waiting, {})
    return Waiting(**row)


async def next_ready(conn: Connection, *, limit: int = 8) -> list[Row]:
    """Tasks that are next, in claim order; blocked ones are not."""
    return await fetch_all(conn, _q.next_ready, {"limit": limit})


def _worker(row: Row) -> WorkerStatus:
    status, is_alive, text = (row.pop(name) for name in ("status", "alive", "heartbeat"))
    try:
        heartbeat = msgspec.json.decode(text, type=_Heartbeat)
    except msgspec.ValidationError:
        # A third-party worker with its own heartbeat fields.
        heartbeat = _Heartbeat()
    used = heartbeat.resources
    return WorkerStatus(
        **row,
        state=_state(status, used) if is_alive else "silent",
        slots=min(max(heartbeat.max_concurrent_tasks or 1, 1), 1000),
        cpu=_share(used.process_cpu_percent),
        memory=used.memory_rss_mb / used.memory_total_mb if used.memory_rss_mb and used.memory_total_mb else None,
        machine_cpu=_share(used.cpu_percent),
        machine_memory=_share(used.memory_percent),
        rss_mb=used.memory_rss_mb,
        memory_total_mb=used.memory_total_mb,
        why=used.backoff_reason or heartbeat.paused_roles_reason,
        paused_roles=heartbeat.paused_roles,
    )


def _state(status: str, used: _Resources) -> State:
    if status == "active" and used.is_backing_off:
        return "backing_off"
    return status  # type: ignore[return-value]  # checked by the database, and stopped ones were not read


def _share(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def _max(*shares: float | None) -> float | None:
    return max((share for share in shares if share is not None), default=None)


async def send_command(conn: Connection, pod: str, command: Command, by: str | None = None) -> tuple[int, int]:
    """Send a command to every worker of a pod; returns how many got it, and how many it does not apply to (stopping, stopped or
    silent). Raises NotFound for a pod without workers."""
    of_pod = [worker for status in await pods(conn) if status.name == pod for worker in status.workers]
    if not of_pod:
        raise NotFound(f"no worker in pod {pod!r}")
    receiving = [worker for worker in of_pod if worker.state not in ("silent", "stopping")]
    for worker in receiving:
        await workers.send_command(conn, worker.worker_id, command, by)
    return len(receiving), len(of_pod) - len(receiving)
