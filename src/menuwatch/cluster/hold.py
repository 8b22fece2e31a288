"""`worker_supervision` from Python: the number that people order, and which supervisor obeys it.

A supervisor holds the row for some seconds at a time and says so again before they are over. Whoever dies without a word is followed
by another one when its time is over, or at once by one that can see that the process is gone.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import psutil
from psycopg.rows import class_row

from menuwatch.cluster.base import Limits
from menuwatch.core.machine import here
from menuwatch.db import sql
from menuwatch.db.pool import Connection

_q = sql.load(__package__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """One supervisor, from its start to its end."""

    name: str = field(default_factory=lambda: secrets.token_hex(8))
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    place: str = field(default_factory=here)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The row. `held` says whether anybody holds it now; what is said of its workers means something only then."""

    wanted: int | None
    holder: str | None
    host: str | None
    pid: int | None
    place: str | None
    low: int | None
    high: int | None
    running: int
    starting: int
    leaving: int
    trouble: str | None
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How a supervisor's workers stand; those that leave run as well, but are not among `running`."""

    running: int = 0
    starting: int = 0
    leaving: int = 0
    trouble: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """What the registry has of one process: whether anybody told it to leave, and how many tasks it has."""

    pid: int
    worker_id: str
    name: str
    told: bool
    tasks: int


async def look(conn: Connection, *, lock: bool = False) -> Held:
    """The row; with `lock` nobody else changes it until the transaction ends."""
    async with conn.cursor(row_factory=class_row(Held)) as cursor:
        await cursor.execute(_q.lock_standing if lock else _q.standing)
        found = await cursor.fetchone()
    assert found is not None, "the migration made the row, and nobody removes it"
    return found


async def order(conn: Connection, wanted: int) -> None:
    """Writes down how many are wanted; whoever holds the row sees it at its next look."""
    await conn.execute(_q.order_workers, {"wanted": wanted})


async def take(
    conn: Connection, who: Holder, limits: Limits, *, lasting: float, asked: int | None, first: int
) -> int | None:
    """Takes the row for `lasting` seconds, if nobody else has it; returns how many are wanted, None when somebody has it.

    That is `asked` where it is given, else what was ordered last, else `first`.
    """
    dead = await look(conn)
    cursor = await conn.execute(
        _q.take_hold,
        {
            "holder": who.name,
            "host": who.host,
            "pid": who.pid,
            "place": who.place,
            "low": limits.low,
            "high": limits.high,
            "lasting": lasting,
            "asked": asked,
            "first": first,
            "dead": dead.holder if dead.place == who.place and not _lives(dead.pid, who.pid) else None,
        },
    )
    row = await cursor.fetchone()
    return None if row is None else int(row[0])


def _lives(pid: int | None, own: int) -> bool:
    """Whether another process of this machine has that number. One that has our own was here before us: numbers are used again."""
    return pid is not None and pid != own and psutil.pid_exists(pid)


async def keep(conn: Connection, who: Holder, count: Count, *, lasting: float, obeyed: int, left: int) -> int | None:
    """Keeps the row for another `lasting` seconds and says how it stands; returns how many are wanted, None when somebody else has it.

    `left` workers were told to leave by somebody else: so many fewer are wanted than the number that was `obeyed`.
    """
    cursor = await conn.execute(
        _q.keep_hold,
        {
            "holder": who.name,
            "lasting": lasting,
            "obeyed": obeyed,
            "left": left,
            "running": count.running,
            "starting": count.starting,
            "leaving": count.leaving,
            "trouble": count.trouble,
        },
    )
    row = await cursor.fetchone()
    return None if row is None else int(row[0])


async def let_go(conn: Connection, who: Holder) -> None:
    """Gives the row up; what was ordered stays."""
    await conn.execute(_q.let_go, {"holder": who.name})


async def crew(conn: Connection, host: str, processes: Sequence[tuple[int, datetime]]) -> dict[int, Member]:
    """What the registry has of these processes (number, start), by number; one that has not registered yet is not there."""
    values = {"host": host, "pids": [pid for pid, _ in processes], "since": [since for _, since in processes]}
    async with conn.cursor(row_factory=class_row(Member)) as cursor:
        await cursor.execute(_q.crew, values)
        return {member.pid: member for member in await cursor.fetchall()}
