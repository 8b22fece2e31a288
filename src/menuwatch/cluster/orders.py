"""`pod_order` from Python: how many pods people ordered, until that many there are, and whose workers leave for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg.rows import class_row

from menuwatch.db import sql
from menuwatch.db.pool import Connection

_q = sql.load(__package__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The row. `wanted` None: nothing is under way. `late`: no server has looked at it lately."""

    wanted: int | None
    trouble: str | None
    late: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaver:
    """A living worker in a pod that is to go."""

    worker_id: str
    host: str
    told: bool
    tasks: int


async def look(conn: Connection) -> Order:
    """What is ordered."""
    async with conn.cursor(row_factory=class_row(Order)) as cursor:
        await cursor.execute(_q.pod_order)
        found = await cursor.fetchone()
    assert found is not None, "the migration made the row, and nobody removes it"
    return found


async def take(conn: Connection) -> int | None:
    """How many are ordered, for the one who carries it out: nobody else gets it until the transaction ends. None: nothing to do."""
    row = await (await conn.execute(_q.take_pod_order)).fetchone()
    return None if row is None else int(row[0])


async def place(conn: Connection, wanted: int) -> None:
    """Orders that many, whatever was ordered before."""
    await conn.execute(_q.place_pod_order, {"wanted": wanted})


async def hindered(conn: Connection, trouble: str | None) -> None:
    """What is in the way of the order; None: nothing."""
    await conn.execute(_q.hinder_pod_order, {"trouble": trouble})


async def done(conn: Connection) -> None:
    """That many there are."""
    await conn.execute(_q.end_pod_order)


async def living(conn: Connection, hosts: Sequence[str]) -> list[Leaver]:
    """Workers on these hosts that gave a sign lately; the host of a pod is called as the pod."""
    async with conn.cursor(row_factory=class_row(Leaver)) as cursor:
        await cursor.execute(_q.living_in_pods, {"hosts": list(hosts)})
        return await cursor.fetchall()
