"""`worker_commands` from Python: what an operator tells a worker, and that the worker took it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import class_row

from menuwatch.db import sql

_SQL = sql.load(__package__)
_Conn = AsyncConnection[Any]

NOTICE = "command "
"""How the notice of a command begins, on the channel of tasks; the worker's id follows."""


class Command(StrEnum):
    """What a worker can be told."""

    DECOMMISSION = "decommission"
    """Claim nothing more, finish what runs, end."""
    PAUSE = "pause"
    """Claim nothing until `resume`; what runs goes on."""
    RESUME = "resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One row of `worker_commands`."""

    id: int
    worker_id: str
    command: Command
    created_at: datetime
    created_by: str | None
    acknowledged_at: datetime | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "command", Command(self.command))


async def give(conn: _Conn, worker_id: str, command: Command, by: str | None = None) -> Given:
    """Tells a worker. One that was told the same and has not taken it yet is not told twice.

    Two callers at once may both tell it, which does no harm. The worker must be in the registry.
    """
    return await _one(conn, _SQL.give_command, {"worker": worker_id, "command": str(command), "by": by})


async def take(conn: _Conn, worker_id: str) -> list[Given]:
    """What the worker was told since it last asked, in that order; from now on it counts as acknowledged."""
    async with conn.cursor(row_factory=class_row(Given)) as cursor:
        await cursor.execute(_SQL.take_commands, {"worker": worker_id})
        return sorted(await cursor.fetchall(), key=lambda given: given.id)


async def untaken(conn: _Conn, worker_id: str) -> list[Given]:
    """What the worker was told and has not taken yet, in that order."""
    async with conn.cursor(row_factory=class_row(Given)) as cursor:
        await cursor.execute(_SQL.untaken_commands, {"worker": worker_id})
        return await cursor.fetchall()


async def acknowledge(conn: _Conn, worker_id: str, ids: list[int]) -> int:
    """The worker says that it took these; returns how many of them were its own and open."""
    cursor = await conn.execute(_SQL.acknowledge_commands, {"worker": worker_id, "ids": ids})
    return cursor.rowcount


async def _one(conn: _Conn, statement: Any, values: dict[str, Any]) -> Given:
    async with conn.cursor(row_factory=class_row(Given)) as cursor:
        await cursor.execute(statement, values)
        found = await cursor.fetchone()
    assert found is not None, "it is told, or was told already"
    return found
