"""`menuwatch workers`: who works, and telling them."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
import typer

from menuwatch import bootstrap
from menuwatch.cli.output import Format, ago, console, errors, print_rows
from menuwatch.cli.process import settings
from menuwatch.operations import workers as operations
from menuwatch.operations.reading import Row
from menuwatch.operations.workers import STATUSES, WorkerFilter
from menuwatch.workers.commands import Command

app = typer.Typer(help="Who works, and telling them.", no_args_is_help=True)

WorkerArgument = Annotated[
    str, typer.Argument(help="Id or name of the worker, or pod/name where several have that name.", metavar="WORKER")
]

_PAGE = 200


@app.command("list")
def list_(
    everyone: Annotated[bool, typer.Option("--all", help="Also those that have stopped.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, as --format json.")] = False,
    fmt: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TABLE,
) -> None:
    """List workers: what they do, on what, and when they last gave a sign."""
    fmt = Format.JSON if json else fmt
    rows = asyncio.run(_list(everyone))
    print_rows(
        rows if fmt is Format.JSON else [_cells(row) for row in rows],
        (
            ("name", "Name"),
            ("pod", "Pod"),
            ("status", "Status"),
            ("tasks", "Tasks"),
            ("memory", "Memory"),
            ("cpu", "CPU"),
            ("roles", "Roles"),
            ("sign", "Last sign"),
            ("worker_id", "Id"),
            ("why", "Why"),
        ),
        fmt,
        empty="No workers: `menuwatch worker` starts one."
        if everyone
        else "No workers at work: --all shows those that stopped.",
    )


def _cells(row: Row) -> dict[str, Any]:
    beat: dict[str, Any] = row["heartbeat"]
    resources = beat.get("resources") or {}
    roles = row["roles"]
    return {
        "name": row["friendly_name"],
        "pod": row["pod"],
        "status": row["status"] if row["alive"] or row["status"] == "stopped" else f"{row['status']} (silent)",
        "tasks": f"{beat['active_task_count']}/{beat['max_concurrent_tasks']}" if "active_task_count" in beat else None,
        "memory": _percent(resources.get("memory_percent")),
        "cpu": _percent(resources.get("cpu_percent")),
        "roles": "any" if roles is None else ", ".join(roles),
        "sign": ago(row["last_heartbeat_at"]),
        "worker_id": row["worker_id"],
        "why": _why(row, beat, resources),
    }


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{value:.0f} %"


def _why(row: Row, beat: dict[str, Any], resources: dict[str, Any]) -> str | None:
    """What keeps it from claiming, and what it was told and has not taken yet."""
    found = [resources.get("backoff_reason")]
    if beat.get("paused_roles"):
        found.append(f"{', '.join(beat['paused_roles'])}: {beat.get('paused_roles_reason') or 'not claimed'}")
    if row["pending_commands"]:
        found.append(f"told to {', '.join(row['pending_commands'])}")
    return "; ".join(one for one in found if one) or None


@app.command("decommission")
def decommission(worker: WorkerArgument) -> None:
    """Have a worker leave: it claims nothing more, finishes what runs, and ends."""
    _say(worker, Command.DECOMMISSION, "finishes what it runs and leaves")


@app.command("pause")
def pause(worker: WorkerArgument) -> None:
    """Have a worker claim nothing until it is resumed; what runs goes on."""
    _say(worker, Command.PAUSE, "claims nothing until `menuwatch workers resume`")


@app.command("resume")
def resume(worker: WorkerArgument) -> None:
    """Take back a pause."""
    _say(worker, Command.RESUME, "claims again")


def _say(text: str, command: Command, does: str) -> None:
    row = asyncio.run(_tell(text, command))
    name = row["friendly_name"] if row["pod"] is None else f"{row['pod']}/{row['friendly_name']}"
    console.print(f"{name} ({row['worker_id']}) was told: it {does}.", markup=False, soft_wrap=True)
    if not row["alive"]:
        errors.print(
            f"It last gave a sign {ago(row['last_heartbeat_at'])}: it may have died, and hears this only if it comes back.",
            markup=False,
            soft_wrap=True,
        )


async def _list(everyone: bool) -> list[Row]:
    where = WorkerFilter(statuses=None if everyone else [status for status in STATUSES if status != "stopped"])
    found: list[Row] = []
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        after = None
        while page := await operations.page(conn, where, after=after, limit=_PAGE):
            found += page
            after = (page[-1]["started_at"], page[-1]["worker_id"])
    for row in found:
        row["heartbeat"] = msgspec.json.decode(row["heartbeat"])
    return sorted(found, key=lambda row: (row["pod"] or "", row["friendly_name"], row["started_at"]))


async def _tell(text: str, command: Command) -> Row:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn, conn.transaction():
        worker_id = await operations.find(conn, text)
        await operations.tell(conn, worker_id, command)
        return await operations.one(conn, worker_id)
