"""The protocol of workers written in any language: register, send heartbeats, claim, start, end and postpone tasks, leave."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Request, Response
from msgspec import Struct
from pydantic import Field, model_validator

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import INTEGER_MAX, AnyRole, BigId, Input, JsonObject, StartTime, TaskPath, Text
from menuwatch.api.responses import answer, returns
from menuwatch.api.routes.job_queue import NewTask
from menuwatch.api.routes.workers import Name, NewId, WorkerPath
from menuwatch.core.postpone import PostponeCode
from menuwatch.core.shapes import doc
from menuwatch.queue.enqueue import TaskRequest
from menuwatch.queue.task_list import TaskRow
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, WriteConn
from menuwatch.workers import protocol
from menuwatch.workers import service as workers
from menuwatch.workers.commands import WorkerCommand
from menuwatch.workers.engine.claimable_roles import hosts_in_use
from menuwatch.workers.protocol import AttemptOfWorker, ClaimedTasks
from menuwatch.workers.service import WorkerDetails

LivingStatus = Literal["active", "paused", "backing_off", "stopping"]

Attempt = Annotated[int, Field(ge=1, le=INTEGER_MAX)]
Seconds = Annotated[float, Field(ge=0, le=86_400 * 366, allow_inf_nan=False)]
Reason = Annotated[Text, Field(min_length=1, max_length=4000)]


class Registration(Input):
    """A worker to register."""

    worker_id: NewId | None = Field(
        None, description="Id of the worker; generated if omitted. A known id restarts that worker."
    )
    friendly_name: Name | None = Field(None, description="Readable name; generated if omitted.")
    host: NewId = Field(description="Machine of the worker.")
    pid: int | None = Field(None, ge=1, le=INTEGER_MAX, description="Process id on that machine.")
    pod: Name | None = Field(None, description="Pod of the worker.")
    roles: list[AnyRole] | None = Field(
        None, min_length=1, description="Roles it accepts, by current or former names; all roles if omitted."
    )
    version: Annotated[str, Field(min_length=1, max_length=40)] | None = Field(None, description="Software version.")


class ResourceUsage(Input):
    """Resource usage of a worker's process."""

    memory_mb: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Memory in use within the memory limit, in MiB."
    )
    memory_total_mb: float | None = Field(None, ge=0, allow_inf_nan=False, description="Memory limit, in MiB.")
    memory_rss_mb: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Resident memory of the process, in MiB."
    )
    memory_percent: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Memory in use, in percent of the limit."
    )
    cpu_user_ms: int | None = Field(None, ge=0, description="User CPU time, in ms.")
    cpu_system_ms: int | None = Field(None, ge=0, description="System CPU time, in ms.")
    cpu_percent: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="CPU usage of the container or machine, in percent of the limit."
    )
    process_cpu_percent: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="CPU usage of the process, in percent of the same limit."
    )
    is_backing_off: bool = Field(
        False, description="Whether the worker claims nothing because the machine is overloaded."
    )
    backoff_reason: Text | None = Field(None, description="The resource that is short; null if none is.")


class HeartbeatBody(Input):
    """A heartbeat, sent every 30 seconds."""

    worker_id: Name = Field(description="Id of the worker.")
    current_task_id: BigId | None = Field(None, description="Id of the task that has been running longest.")
    current_task_ids: list[BigId] = Field([], max_length=1000, description="Ids of all running tasks.")
    active_task_count: int | None = Field(
        None, ge=0, le=1000, description="Number of running tasks; counted from the ids if omitted."
    )
    max_concurrent_tasks: int = Field(1, ge=1, le=1000, description="Maximum number of concurrent tasks.")
    attempts: list[Attempt] | None = Field(
        None,
        max_length=1000,
        description="Attempt numbers of the running tasks, in the order of `current_task_ids`; with them, a task that the worker lost "
        "and claimed again counts as lost for the earlier attempt.",
    )
    status: LivingStatus = Field("active", description="Status of the worker.")
    resources: ResourceUsage = Field(
        default_factory=lambda: ResourceUsage.model_validate({}), description="Resource usage."
    )
    paused_roles: list[AnyRole] = Field(
        [], description="Roles that the worker accepts but does not claim at the moment."
    )
    paused_roles_reason: Text | None = Field(None, description="Why these roles are paused.")
    paused_roles_code: PostponeCode | None = Field(None, description="Code of that reason.")
    acknowledged_commands: list[BigId] = Field(
        [], max_length=1000, description="Ids of the commands that the worker has received."
    )

    @model_validator(mode="after")
    def _parallel(self) -> HeartbeatBody:
        if self.attempts is not None and len(self.attempts) != len(self.task_ids()):
            raise ValueError(f"`attempts` must have one number for each of the {len(self.task_ids())} running tasks")
        return self

    def task_ids(self) -> list[int]:
        """Ids of all running tasks, without duplicates."""
        first = [] if self.current_task_id is None else [self.current_task_id]
        return list(dict.fromkeys([*first, *self.current_task_ids]))

    def stored(self) -> dict[str, Any]:
        """The contents to store, in the form that Menuwatch's own workers send."""
        kept = self.model_dump(mode="json", exclude={"acknowledged_commands", "attempts"})
        ids = self.task_ids()
        kept |= {
            "current_task_ids": ids,
            "active_task_count": len(ids) if self.active_task_count is None else self.active_task_count,
        }
        for name in ("paused_roles", "paused_roles_reason", "paused_roles_code"):
            if not kept[name]:
                del kept[name]
        if self.resources.process_cpu_percent is None:
            del kept["resources"]["process_cpu_percent"]
        return kept


class WorkerDeregistration(Input):
    """A worker to deregister."""

    worker_id: Name = Field(description="Id of the worker.")


class Claim(Input):
    """Which tasks to claim."""

    roles: list[AnyRole] | None = Field(
        None, min_length=1, description="Only tasks of these roles; all roles of the worker if omitted."
    )
    count: int = Field(1, ge=1, le=100, description="Maximum number of tasks.")
    current_task_ids: list[BigId] | None = Field(
        None,
        max_length=1000,
        description="Ids of all tasks that the worker has. Other tasks that it owns, because the response to a claim was lost, return "
        "to the queue first.",
    )


class AttemptStart(Input):
    """The attempt that starts."""

    attempt: Attempt = Field(description="`attempt` of the claimed task.")


class _AttemptEnd(AttemptStart):
    ran_seconds: Seconds | None = Field(
        None, description="Duration of the attempt, for a task that was not started separately."
    )


class AttemptComplete(_AttemptEnd):
    """A successful attempt."""

    result: JsonObject | None = Field(None, description="Result of the task.")
    follow_ups: list[NewTask] = Field(
        [],
        max_length=1000,
        description="Tasks to enqueue in the same transaction: all of them, or nothing is completed.",
    )


class AttemptRetry(_AttemptEnd):
    """A failed attempt of a task that may succeed later."""

    reason: Reason = Field(description="Why it failed.")
    after_seconds: Seconds | None = Field(
        None, description="Delay of the next attempt; exponential backoff (`TASK_RETRY_BASE_SECONDS`) if omitted."
    )
    result: JsonObject | None = Field(None, description="Partial result.")


class AttemptPostpone(_AttemptEnd):
    """A task that cannot be worked on now."""

    reason: Reason = Field(description="Why it cannot be worked on.")
    until: StartTime | None = Field(None, description="Earliest next attempt; either this or `after_seconds`.")
    after_seconds: Seconds | None = Field(None, description="Delay of the next attempt; either this or `until`.")
    code: PostponeCode = Field(PostponeCode.OTHER, description="Code of the reason.")
    host: Name | None = Field(None, description="Host that is the reason.")
    counted: bool = Field(
        True,
        description="Whether the attempt made requests. After 50 such postponements, each further one uses up a retry.",
    )

    @model_validator(mode="after")
    def _has_time(self) -> AttemptPostpone:
        if (self.until is None) == (self.after_seconds is None):
            raise ValueError("give either `until` or `after_seconds`")
        return self


class AttemptFail(_AttemptEnd):
    """A task that will never succeed."""

    reason: Reason = Field(description="Why it failed.")
    result: JsonObject | None = Field(None, description="Partial result.")


class Registered(Struct, kw_only=True, frozen=True):
    """Result of registering a worker."""

    worker: WorkerDetails
    created: Annotated[bool, doc("Whether the id is new.")]


class HeartbeatResponse(Struct, kw_only=True, frozen=True):
    """Response to a heartbeat."""

    worker_id: str
    lost_task_ids: Annotated[
        list[int], doc("Reported tasks that the worker no longer owns: it must stop working on them.")
    ]
    commands: Annotated[
        list[WorkerCommand], doc("Pending commands; acknowledge them in `acknowledged_commands` of the next heartbeat.")
    ]


router = APIRouter(prefix="/api/worker-registry", tags=["workers"], dependencies=[require(Permission.RUN_TASKS)])


@router.post(
    "/register",
    **returns(Registered, 201, {200: "The id was known: the worker is restarted."}),
    summary="Register a worker",
)
async def register_worker(request: Request, conn: WriteConn, worker: Registration) -> Response:
    """For third-party workers at their start; Menuwatch's own workers register themselves. Tasks that an earlier process with this id
    left behind return to the queue, with one retry used up."""
    worker_id, created = await protocol.register(
        conn,
        worker_id=worker.worker_id,
        friendly_name=worker.friendly_name,
        host=worker.host,
        pid=worker.pid,
        pod=worker.pod,
        roles=worker.roles,
        version=worker.version,
    )
    body = Registered(worker=await workers.get_worker(conn, worker_id), created=created)
    return answer(request, body, status=201 if created else 200)


@router.post("/heartbeat", **returns(HeartbeatResponse), summary="Send a worker heartbeat")
async def beat_worker(request: Request, conn: WriteConn, beat: HeartbeatBody) -> Response:
    """Keeps the worker and its tasks alive; returns the tasks it has lost and its pending commands."""
    lost, pending = await protocol.record_heartbeat(
        conn,
        beat.worker_id,
        status=beat.status,
        body=msgspec.json.encode(beat.stored()),
        task_ids=beat.task_ids(),
        attempts=beat.attempts,
        acknowledged=beat.acknowledged_commands,
    )
    return answer(request, HeartbeatResponse(worker_id=beat.worker_id, lost_task_ids=lost, commands=pending))


@router.post("/deregister", **returns(WorkerDetails), summary="Deregister a worker")
async def deregister_worker(request: Request, conn: WriteConn, worker: WorkerDeregistration) -> Response:
    """For workers that stop: tasks that it still holds return to the queue as they were. The record stays for a while with status
    `stopped`."""
    await protocol.leave(conn, worker.worker_id)
    return answer(request, await workers.get_worker(conn, worker.worker_id))


@router.post("/{worker_id}/claim", **returns(ClaimedTasks), summary="Claim tasks")
async def claim_tasks(
    request: Request, system: AppDep, conn: WriteConn, worker_id: WorkerPath, wanted: Claim
) -> Response:
    """Claims due tasks by the rules of Menuwatch's own workers: by priority and age, a share for the role that has waited longest, one
    active task per store. A paused or stopping worker gets none; roles that make requests are withheld
    while all hosts are blocked."""
    claimed = await protocol.claim(
        conn,
        worker_id,
        roles=wanted.roles,
        n=wanted.count,
        hosts=await hosts_in_use(conn, system.platforms),
        holding=wanted.current_task_ids,
    )
    return answer(request, claimed)


def _attempt(worker_id: str, task_id: int, body: AttemptStart) -> AttemptOfWorker:
    ran = body.ran_seconds if isinstance(body, _AttemptEnd) else None
    return AttemptOfWorker(worker_id=worker_id, task_id=task_id, attempt=body.attempt, ran=ran)


_TASK = "/{worker_id}/tasks/{task_id}"


@router.post(f"{_TASK}/start", **returns(TaskRow), summary="Start an attempt")
async def start_attempt(
    request: Request, conn: WriteConn, worker_id: WorkerPath, task_id: TaskPath, body: AttemptStart
) -> Response:
    """The task shows as running. Short attempts need not be started. As for all ends of attempts: 409 if the attempt is no longer the
    worker's, which must then stop working on it; nothing was changed."""
    return answer(request, await protocol.start(conn, _attempt(worker_id, task_id, body)))


@router.post(f"{_TASK}/complete", **returns(TaskRow), summary="Complete a task")
async def complete_attempt(
    request: Request, system: AppDep, conn: WriteConn, worker_id: WorkerPath, task_id: TaskPath, body: AttemptComplete
) -> Response:
    """Completes the task and enqueues its follow-up tasks, atomically. A repeated request for the same attempt changes nothing
    and gets the same response."""
    task = await protocol.complete(
        conn,
        _attempt(worker_id, task_id, body),
        result=body.result,
        follow_ups=[TaskRequest(**dict(new)) for new in body.follow_ups],
        platforms=tuple(system.platforms),
    )
    return answer(request, task)


@router.post(f"{_TASK}/retry", **returns(TaskRow), summary="Retry a task later")
async def retry_attempt(
    request: Request, conn: WriteConn, worker_id: WorkerPath, task_id: TaskPath, body: AttemptRetry
) -> Response:
    """Uses up a retry; without one left, the task fails."""
    attempt = _attempt(worker_id, task_id, body)
    return answer(
        request, await protocol.retry(conn, attempt, body.reason, wait=body.after_seconds, result=body.result)
    )


@router.post(f"{_TASK}/postpone", **returns(TaskRow), summary="Postpone a task")
async def postpone_attempt(
    request: Request, conn: WriteConn, worker_id: WorkerPath, task_id: TaskPath, body: AttemptPostpone
) -> Response:
    """Uses up no retry, except when a task has already been postponed 50 times with `counted`."""
    task = await protocol.postpone(
        conn,
        _attempt(worker_id, task_id, body),
        body.reason,
        due=body.until,
        wait=body.after_seconds,
        code=body.code,
        host=body.host,
        counted=body.counted,
    )
    return answer(request, task)


@router.post(f"{_TASK}/fail", **returns(TaskRow), summary="Fail a task")
async def fail_attempt(
    request: Request, conn: WriteConn, worker_id: WorkerPath, task_id: TaskPath, body: AttemptFail
) -> Response:
    """The task fails at once, whatever retries are left."""
    return answer(
        request, await protocol.fail(conn, _attempt(worker_id, task_id, body), body.reason, result=body.result)
    )
