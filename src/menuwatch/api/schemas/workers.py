"""The worker registry."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import AfterValidator, BaseModel, Field

from menuwatch.api.schemas.common import INTEGER_MAX, BigId, Input, Page, PageQuery, Text
from menuwatch.api.schemas.tasks import AnyRole
from menuwatch.workers.commands import Command

Status = Literal["active", "paused", "backing_off", "stopping", "stopped"]
LivingStatus = Literal["active", "paused", "backing_off", "stopping"]


def _printable(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise ValueError("may hold printable characters only, and no blank at either end")
    return text


def _addressable(text: str) -> str:
    if "/" in text:
        raise ValueError("may not hold a slash: it is part of addresses")
    return text


Name = Annotated[Text, Field(min_length=1, max_length=200), AfterValidator(_printable)]

NewId = Annotated[Name, AfterValidator(_addressable)]

WorkerPath = Annotated[Name, Path(description="Id of the worker.")]


class WorkerQuery(PageQuery):
    """Which workers."""

    status: list[Status] | None = Field(None, description="Only these states (repeat for several).")
    alive: bool | None = Field(
        None, description="Only workers that gave a sign in the last two minutes, or only those that did not."
    )
    role: AnyRole | None = Field(None, description="Only workers that may claim this role.")
    pod: Text | None = Field(None, description="Only workers of this pod.")


class Worker(BaseModel):
    """One worker, from its start until some time after it stopped."""

    worker_id: str = Field(description="Its id: another one at each start.")
    friendly_name: str = Field(description="A name that people can say; unique in its pod.")
    pod: str | None = Field(description="The group of workers that it belongs to.")
    host: str = Field(description="The machine.")
    pid: int | None = Field(description="Its process on that machine.")
    roles: list[str] | None = Field(description="The roles that it may claim; null for any.")
    status: Status = Field(
        description="`active`: it claims; `paused`: an operator stopped that; `backing_off`: the machine has no room; "
        "`stopping`: it finishes what runs; `stopped`: it has left."
    )
    alive: bool = Field(description="It has not left, and gave a sign in the last two minutes.")
    silent_seconds: float = Field(description="Seconds since its last sign.")
    started_at: datetime = Field(description="When it started.")
    last_heartbeat_at: datetime = Field(description="Its last sign.")
    heartbeat: dict[str, Any] = Field(description="What it said of itself then; empty before its first heartbeat.")
    version: str | None = Field(description="Version of the software that it runs; null where it does not say.")
    pending_commands: list[str] = Field(description="What it was told and has not taken yet.")


class GivenCommand(BaseModel):
    """What a worker was told."""

    id: int = Field(description="Number of the command.")
    command: Command = Field(description="What.")
    created_at: datetime = Field(description="When it was told.")
    created_by: str | None = Field(description="By whom.")
    acknowledged_at: datetime | None = Field(description="When the worker took it; null as long as it has not.")


class WorkerDetails(Worker):
    """One worker with what it was told."""

    commands: list[GivenCommand] = Field(description="The last 20 commands, newest first.")


class WorkerPage(Page[Worker]):
    """One page of workers."""


class RoleWorkers(BaseModel):
    """The workers of a role."""

    role: str = Field(description="The kind of work.")
    live_workers: int = Field(description="Workers that live and may claim it, those that take any role among them.")
    claiming_workers: int = Field(
        description="Of these, the ones that claim it now: not paused, not backing off, not stopping."
    )
    slots: int = Field(description="Tasks that the living ones run at once.")


class RoleList(BaseModel):
    """All roles."""

    items: list[RoleWorkers] = Field(description="One for each role.")


class Registration(Input):
    """A worker that enters itself."""

    worker_id: NewId | None = Field(None, description="Its id; made up when left out. A known one starts anew.")
    friendly_name: Name | None = Field(None, description="A name that people can say; chosen when left out.")
    host: NewId = Field(description="The machine that it runs on.")
    pid: int | None = Field(None, ge=1, le=INTEGER_MAX, description="Its process there.")
    pod: Name | None = Field(None, description="The group of workers that it belongs to.")
    roles: list[AnyRole] | None = Field(
        None, min_length=1, description="Roles that it may claim, by their present or former names; any when left out."
    )
    version: Annotated[str, Field(min_length=1, max_length=40)] | None = Field(
        None, description="Version of its software."
    )


class Registered(BaseModel):
    """What registering did."""

    worker: WorkerDetails = Field(description="The worker.")
    created: bool = Field(description="Whether its id is new.")


class ResourceFigures(Input):
    """What a worker's process uses."""

    memory_mb: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Memory in use, MiB, of that it runs under."
    )
    memory_total_mb: float | None = Field(None, ge=0, allow_inf_nan=False, description="Memory that there is, MiB.")
    memory_rss_mb: float | None = Field(None, ge=0, allow_inf_nan=False, description="Memory of the process, MiB.")
    memory_percent: float | None = Field(None, ge=0, allow_inf_nan=False, description="Memory in use, percent.")
    cpu_user_ms: int | None = Field(None, ge=0, description="Processor time outside the kernel, ms.")
    cpu_system_ms: int | None = Field(None, ge=0, description="Processor time in the kernel, ms.")
    cpu_percent: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Processor in use, percent of the limit."
    )
    is_backing_off: bool = Field(False, description="Whether it claims nothing because the machine has no room.")
    backoff_reason: Text | None = Field(None, description="What there is too little of.")


class HeartbeatBody(Input):
    """One heartbeat, every 30 seconds."""

    worker_id: Name = Field(description="Who.")
    current_task_id: BigId | None = Field(None, description="The task that has been running longest.")
    current_task_ids: list[BigId] = Field([], max_length=1000, description="Every task that it runs.")
    active_task_count: int | None = Field(None, ge=0, le=1000, description="How many that are.")
    max_concurrent_tasks: int = Field(1, ge=1, le=1000, description="How many it runs at most.")
    status: LivingStatus = Field("active", description="What it does.")
    resources: ResourceFigures = Field(
        default_factory=lambda: ResourceFigures.model_validate({}), description="What it uses."
    )
    paused_roles: list[AnyRole] = Field([], description="Roles that it does not claim for now though it may.")
    paused_roles_reason: Text | None = Field(None, description="Why not.")
    acknowledged_commands: list[BigId] = Field(
        [], max_length=1000, description="Commands that it has taken, by number."
    )

    def task_ids(self) -> list[int]:
        """Every task that it runs, once."""
        first = [] if self.current_task_id is None else [self.current_task_id]
        return list(dict.fromkeys([*first, *self.current_task_ids]))

    def said(self) -> dict[str, Any]:
        """What is kept of it, in the words of our own workers."""
        kept = self.model_dump(mode="json", exclude={"acknowledged_commands"})
        ids = self.task_ids()
        kept |= {
            "current_task_ids": ids,
            "active_task_count": len(ids) if self.active_task_count is None else self.active_task_count,
        }
        for name in ("paused_roles", "paused_roles_reason"):
            if not kept[name]:
                del kept[name]
        return kept


class HeartbeatAnswer(BaseModel):
    """What a worker learns from its heartbeat."""

    worker_id: str = Field(description="Who.")
    lost_task_ids: list[int] = Field(
        description="Tasks it named that are not its own (any more): it must not go on with them."
    )
    commands: list[GivenCommand] = Field(
        description="What it was told; it says so in `acknowledged_commands` of its next heartbeat once it has taken it."
    )


class Leave(Input):
    """A worker that leaves."""

    worker_id: Name = Field(description="Who.")


class Teller(Input):
    """Who tells a worker."""

    by: Name | None = Field(None, description="Your name: the worker's log and the registry show it.")


class Told(BaseModel):
    """What telling a worker did."""

    command: GivenCommand = Field(description="The command.")
    worker: WorkerDetails = Field(description="The worker as it was then.")
