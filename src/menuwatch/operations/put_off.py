"""Tasks that a host put off: how many wait because of it, and having them due now, once it is asked again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations import task_control
from menuwatch.operations.reading import rows
from menuwatch.operations.tasks import TaskFilter
from menuwatch.schedules.model import PRIORITIES

_q = sql.load(__package__, "put_off.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class PutOff:
    """`waiting` tasks were put off by a host and are not due, the last until `until`; `made_due` are due since this call."""

    waiting: int
    until: datetime | None
    made_due: int = 0


async def by(conn: Connection, host: str) -> PutOff:
    """The tasks that this host put off."""
    found = await rows(conn, _q.put_off_by, {"host": host})
    return PutOff(waiting=len(found), until=max((one["scheduled_for"] for one in found), default=None))


async def make_due(conn: Connection, host: str) -> PutOff:
    """Has them due now, each with its own priority, in the caller's transaction. The host's budget spreads them out."""
    done = 0
    while ids := [one["id"] for one in await rows(conn, _q.put_off_by, {"host": host})]:
        some = ids[: task_control.RETRIED_AT_ONCE]
        made = await task_control.bulk_retry(conn, TaskFilter(), ids=some, priority=PRIORITIES[0])
        done += made.done
        if not made.done:
            break
    left = await by(conn, host)
    return PutOff(waiting=left.waiting, until=left.until, made_due=done)
