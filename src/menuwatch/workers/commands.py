"""Commands of operators to workers: send, receive and acknowledge them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Struct
from msgspec.structs import force_setattr
from psycopg import AsyncConnection

from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql
from menuwatch.db.query import fetch_struct, fetch_structs

_SQL = sql.load(__package__)
_Conn = AsyncConnection[Any]

NOTICE = "command "
"""Prefix of a command's notification on the tasks channel; the worker's id follows."""


class Command(StrEnum):
    """Worker command."""

    DECOMMISSION = "decommission"
    """Claim nothing more, finish what runs, end."""
    PAUSE = "pause"
    """Claim nothing until `resume`; what runs goes on."""
    RESUME = "resume"


class WorkerCommand(Struct, kw_only=True, frozen=True):
    """A command to a worker."""

    id: int
    command: Command
    created_at: Instant
    created_by: Annotated[str | None, doc("Who sent the command; null if unknown.")]
    acknowledged_at: Annotated[Instant | None, doc("When the worker acknowledged it; null before.")]

    def __post_init__(self) -> None:
        force_setattr(self, "command", Command(self.command))


async def send(conn: _Conn, worker_id: str, command: Command, by: str | None = None) -> WorkerCommand:
    """Sends a command to a registered worker. While an equal one is pending, that one is returned and no other is created.

    Two concurrent callers may both create one, which is harmless.
    """
    sent = await fetch_struct(
        conn, WorkerCommand, _SQL.send_command, {"worker": worker_id, "command": str(command), "by": by}
    )
    assert sent is not None, "it is created, or was before"
    return sent


async def receive(conn: _Conn, worker_id: str) -> list[WorkerCommand]:
    """The pending commands of a worker, oldest first; from now on they count as acknowledged."""
    commands = await fetch_structs(conn, WorkerCommand, _SQL.receive_commands, {"worker": worker_id})
    return sorted(commands, key=lambda command: command.id)


async def pending(conn: _Conn, worker_id: str) -> list[WorkerCommand]:
    """The commands that the worker has not acknowledged, oldest first."""
    return await fetch_structs(conn, WorkerCommand, _SQL.pending_commands, {"worker": worker_id})
