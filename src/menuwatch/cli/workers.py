"""`menuwatch workers`: list, scale, pause, resume and decommission workers."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any, get_args

import msgspec
import typer

from menuwatch import bootstrap
from menuwatch.cli.logs import worker_logs
from menuwatch.cli.options import Commands, JsonOption, LimitedOutput
from menuwatch.cli.output import Column, ago, echo, notice, print_json
from menuwatch.cli.startup import in_transaction, read, with_system
from menuwatch.core.errors import Conflict, NotFound, Refused, Transient
from menuwatch.core.format import percent, pluralize, timestamp
from menuwatch.db.pool import Connection
from menuwatch.scaling import service as scaling
from menuwatch.scaling.model import ReplicaCount
from menuwatch.system import System
from menuwatch.workers import service as workers
from menuwatch.workers.commands import Command, WorkerCommand
from menuwatch.workers.service import Status, Worker, WorkerDetails, WorkerFilter

app = Commands("List and control workers.")

WorkerArgument = Annotated[
    str, typer.Argument(help="Id or name of the worker, or pod/name if several have that name.", metavar="WORKER")
]

_WAIT_SECONDS = 300.0
"""Longest time that `--wait` waits: a running task may take long."""
_POLL_SECONDS = 0.2
_DIGITS = 10
ACTIVE = WorkerFilter(statuses=[status for status in get_args(Status) if status != "stopped"])


def _heartbeat(worker: Worker) -> dict[str, Any]:
    """The last heartbeat; empty for a silent worker, whose last one is out of date."""
    return msgspec.json.decode(worker.heartbeat) if worker.alive else {}


def _resources(worker: Worker) -> dict[str, Any]:
    return _heartbeat(worker).get("resources") or {}


def _cpu(worker: Worker) -> str | None:
    """Of its process: the machine's says nothing of the worker."""
    value = _resources(worker).get("process_cpu_percent")
    return None if value is None else percent(value / 100)


def _memory(worker: Worker) -> str | None:
    value = _resources(worker).get("memory_rss_mb")
    return None if value is None else f"{value:,.0f} MiB"


def _status(worker: Worker) -> str:
    return worker.status if worker.alive or worker.status == "stopped" else f"{worker.status} (silent)"


def _tasks(worker: Worker) -> str | None:
    heartbeat = _heartbeat(worker)
    if "active_task_count" not in heartbeat:
        return None
    return f"{heartbeat['active_task_count']}/{heartbeat['max_concurrent_tasks']}"


def _reason(worker: Worker) -> str | None:
    """Why it does not claim, and the commands that it has not received yet."""
    heartbeat = _heartbeat(worker)
    reasons = [(heartbeat.get("resources") or {}).get("backoff_reason")]
    if heartbeat.get("paused_roles"):
        reasons.append(
            f"{', '.join(heartbeat['paused_roles'])}: {heartbeat.get('paused_roles_reason') or 'not claimed'}"
        )
    if worker.pending_commands:
        reasons.append(f"pending: {', '.join(worker.pending_commands)}")
    return "; ".join(reason for reason in reasons if reason) or None


COLUMNS = (
    Column("Name", "friendly_name", rank=1),
    Column("Pod", "pod", rank=5),
    Column("Status", _status, rank=0),
    Column("Tasks", _tasks, rank=3),
    Column("Memory", _memory, align="right"),
    Column("CPU", _cpu, align="right"),
    Column("Tasks/min", lambda worker: f"{worker.last_hour.tasks_per_minute:.1f}", align="right", rank=8),
    Column("Failed", lambda worker: percent(worker.last_hour.failure_rate, 1), align="right", rank=9),
    Column("Process", lambda worker: worker.host if worker.pid is None else f"{worker.host}:{worker.pid}"),
    Column("Roles", lambda worker: "any" if worker.roles is None else ", ".join(worker.roles), rank=7),
    Column("Heartbeat", "last_heartbeat_at", ago, rank=4),
    Column("Id", "worker_id", rank=2),
    Column("Reason", _reason, rank=6),
)


@app.command("scale", context_settings={"ignore_unknown_options": True})
def scale(
    number: Annotated[
        str | None,
        typer.Argument(
            metavar="[N|up|down]",
            help="Desired number of workers, or up or down by one. Default: show the current state.",
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the desired number is reached.")] = False,
    json: JsonOption = False,
) -> None:
    """Scale workers, or show how many there are. Surplus workers finish their tasks before they exit."""

    async def act(system: System) -> ReplicaCount:
        scaler = bootstrap.scaler(system.settings)
        async with system.pool.connection() as conn:
            if number is None:
                count = await scaling.replicas(conn, scaler, system.settings)
            else:
                async with conn.transaction():
                    count = await _set_number(system, conn, number)
        return await _wait_reached(system) if wait and count.why_not is None else count

    count = with_system(act, read_only=number is None)
    if json:
        print_json(count)
    else:
        echo(_describe(count))


def _describe(count: ReplicaCount) -> str:
    desired = "" if count.desired is None or count.desired == count.current else f", {count.desired:,} desired"
    progress = f"; {count.doing}" if count.doing else ""
    unavailable = "" if count.why_not is None else f" Cannot be scaled here: {count.why_not}."
    return (
        f"{pluralize(count.current, count.unit)} running{desired}{progress}. Allowed: {count.low:,} to {count.high:,}."
        f"{unavailable}"
    )


async def _set_number(system: System, conn: Connection, text: str) -> ReplicaCount:
    scaler = bootstrap.scaler(system.settings)
    if text in ("up", "down"):
        replicas = await scaler.replicas(conn, ordering=True)
        if replicas.unavailable_reason is not None:
            raise Conflict(replicas.unavailable_reason)
        current = replicas.current if replicas.desired is None else replicas.desired
        number = current + (1 if text == "up" else -1)
    elif text.removeprefix("-").isdecimal() and text.isascii() and len(text) <= _DIGITS:
        number = int(text)
    else:
        count = await scaling.replicas(conn, scaler, system.settings)
        raise Refused(
            f"{text!r} is not a valid number of {count.unit}s: allowed are {count.low:,} to {count.high:,}, or up "
            "and down"
        )
    return await scaling.scale(conn, scaler, system.settings, number)


async def _wait_reached(system: System) -> ReplicaCount:
    scaler, deadline = bootstrap.scaler(system.settings), time.monotonic() + _WAIT_SECONDS
    while True:
        async with system.pool.connection() as conn:
            count = await scaling.replicas(conn, scaler, system.settings)
        if count.why_not is not None:
            raise Conflict(count.why_not)
        if count.current == count.desired and count.doing is None:
            return count
        if time.monotonic() > deadline:
            raise Transient(f"not reached after {_WAIT_SECONDS:g} seconds: {_describe(count)}")
        await asyncio.sleep(_POLL_SECONDS)


@app.command("list")
def list_(
    out: LimitedOutput, everyone: Annotated[bool, typer.Option("--all", help="Include stopped workers.")] = False
) -> None:
    """List workers with their status, tasks and last heartbeat."""
    where = WorkerFilter() if everyone else ACTIVE
    rows = read(lambda _, conn: workers.list_workers(conn, where, limit=None))
    rows.sort(key=lambda worker: (worker.pod or "", worker.friendly_name, worker.started_at))
    empty = "No workers. Start one with `menuwatch worker`."
    out.show(rows, COLUMNS, "worker", empty=empty if everyone else "No running workers: --all includes stopped ones.")


@app.command("decommission")
def decommission(worker: WorkerArgument, json: JsonOption = False) -> None:
    """Decommission a worker: drain, then exit."""
    _send(worker, Command.DECOMMISSION, "finishes running tasks and exits", json)


@app.command("pause")
def pause(worker: WorkerArgument, json: JsonOption = False) -> None:
    """Pause a worker: it claims no more tasks until resumed; running ones continue."""
    _send(worker, Command.PAUSE, "claims nothing until `menuwatch workers resume`", json)


@app.command("resume")
def resume(worker: WorkerArgument, json: JsonOption = False) -> None:
    """Resume a paused worker."""
    _send(worker, Command.RESUME, "claims again", json)


app.command("logs")(worker_logs)


def _send(text: str, command: Command, effect: str, json: bool) -> None:
    async def act(_: System, conn: Connection) -> tuple[WorkerCommand, WorkerDetails]:
        try:
            worker_id = await workers.find_worker(conn, text)
        except NotFound:
            await _refuse_unknown(conn, text)
            raise
        sent = await workers.send_command(conn, worker_id, command)
        return sent, await workers.get_worker(conn, worker_id)

    sent, worker = in_transaction(act)
    if json:
        print_json({"command": sent, "worker": worker})
        return
    echo(f"{worker.display_name} ({worker.worker_id}): command sent; it {effect}.")
    if not worker.alive:
        notice(
            f"Its last heartbeat was {ago(worker.last_heartbeat_at)}: it may have died, and receives the command only "
            "if it comes back."
        )


async def _refuse_unknown(conn: Connection, text: str) -> None:
    """Raises Refused if the reason is known why there is no such worker."""
    known = await workers.list_workers(conn, WorkerFilter(), limit=None)
    if not known:
        raise Refused(f"worker {text!r}: no workers are registered; start one with `menuwatch worker`")
    stopped = [
        worker for worker in known if text.lower() in (worker.friendly_name.lower(), worker.display_name.lower())
    ]
    if stopped:
        last = max(stopped, key=lambda worker: worker.last_heartbeat_at)
        raise Refused(
            f"worker {text!r} ({last.worker_id}) stopped at {timestamp(last.last_heartbeat_at)} and cannot receive commands"
        )
    if all(worker.status == "stopped" for worker in known):
        raise Refused(f"worker {text!r}: no workers are running; `menuwatch workers list --all` includes stopped ones")
