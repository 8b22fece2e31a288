"""`menuwatch workers`: who works, and telling them."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from datetime import UTC
from typing import Annotated, Any

import msgspec
import typer

from menuwatch import bootstrap
from menuwatch.cli.output import Format, ago, chosen_format, console, errors, print_json, print_rows
from menuwatch.cli.process import settings
from menuwatch.cli.scale import scale
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Connection
from menuwatch.operations import workers as operations
from menuwatch.operations.reading import Row
from menuwatch.operations.refusals import NotFound
from menuwatch.operations.workers import STATUSES, WorkerFilter
from menuwatch.workers.commands import Command, Given

app = typer.Typer(help="Who works, and telling them.", no_args_is_help=True)

WorkerArgument = Annotated[
    str, typer.Argument(help="Id or name of the worker, or pod/name where several have that name.", metavar="WORKER")
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_PAGE = 200
_PRESENT = [status for status in STATUSES if status != "stopped"]


@app.command("list")
def list_(
    everyone: Annotated[bool, typer.Option("--all", help="Also those that have stopped.")] = False,
    json: JsonOption = False,
    fmt: Annotated[Format | None, typer.Option("--format", help="How to print.", show_default="table")] = None,
) -> None:
    """List workers: what they do, on what, and when they last gave a sign."""
    fmt = chosen_format(json, fmt)
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
        keep=("name", "worker_id", "tasks", "sign", "pod", "why", "roles"),
    )


def _cells(row: Row) -> dict[str, Any]:
    beat: dict[str, Any] = row["heartbeat"]
    # The last beat of one that is gone says what it did then, not what it does.
    beat = beat if row["alive"] else {}
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
def decommission(worker: WorkerArgument, json: JsonOption = False) -> None:
    """Have a worker leave: it claims nothing more, finishes what runs, and ends."""
    _say(worker, Command.DECOMMISSION, "finishes what it runs and leaves", json)


@app.command("pause")
def pause(worker: WorkerArgument, json: JsonOption = False) -> None:
    """Have a worker claim nothing until it is resumed; what runs goes on."""
    _say(worker, Command.PAUSE, "claims nothing until `menuwatch workers resume`", json)


@app.command("resume")
def resume(worker: WorkerArgument, json: JsonOption = False) -> None:
    """Take back a pause."""
    _say(worker, Command.RESUME, "claims again", json)


app.command("scale", context_settings={"ignore_unknown_options": True})(scale)


def _say(text: str, command: Command, does: str, json: bool) -> None:
    given, row = asyncio.run(_tell(text, command))
    if json:
        print_json({"command": dataclasses.asdict(given), "worker": row})
        return
    console.print(f"{_called(row)} ({row['worker_id']}) was told: it {does}.", markup=False, soft_wrap=True)
    if not row["alive"]:
        errors.print(
            f"It last gave a sign {ago(row['last_heartbeat_at'])}: it may have died, and hears this only if it comes back.",
            markup=False,
            soft_wrap=True,
        )


async def _list(everyone: bool) -> list[Row]:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn:
        found = await _all(conn, None if everyone else _PRESENT)
    for row in found:
        row["heartbeat"] = msgspec.json.decode(row["heartbeat"])
    return sorted(found, key=lambda row: (row["pod"] or "", row["friendly_name"], row["started_at"]))


async def _all(conn: Connection, statuses: Sequence[str] | None) -> list[Row]:
    """Newest start first."""
    found: list[Row] = []
    after = None
    while page := await operations.page(conn, WorkerFilter(statuses=statuses), after=after, limit=_PAGE):
        found += page
        after = (page[-1]["started_at"], page[-1]["worker_id"])
    return found


async def _tell(text: str, command: Command) -> tuple[Given, Row]:
    async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn, conn.transaction():
        try:
            worker_id = await operations.find(conn, text)
        except NotFound:
            await _explain(conn, text)
            raise
        given = await operations.tell(conn, worker_id, command)
        return given, await operations.one(conn, worker_id)


async def _explain(conn: Connection, text: str) -> None:
    """Raises Refused where there is more to say of a worker than that nobody is called so."""
    there = await _all(conn, None)
    if not there:
        raise Refused(f"worker {text!r}: no worker is registered; `menuwatch worker` starts one")
    called = [row for row in there if text.lower() in (row["friendly_name"].lower(), _called(row).lower())]
    if called:
        last = max(called, key=lambda row: row["last_heartbeat_at"])
        raise Refused(
            f"worker {text!r} ({last['worker_id']}) stopped at {last['last_heartbeat_at'].astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC: "
            "nobody would hear it"
        )
    if all(row["status"] == "stopped" for row in there):
        raise Refused(f"worker {text!r}: no worker is at work; `menuwatch workers list --all` shows those that stopped")


def _called(row: Row) -> str:
    return str(row["friendly_name"] if row["pod"] is None else f"{row['pod']}/{row['friendly_name']}")
