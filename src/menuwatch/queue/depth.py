"""How many tasks waited in the queue, over time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all

_q = sql.load(__package__, "depth.sql")

READ = 40_000
"""Most tasks ended since the beginning for which the depth is computed."""
_STEPS = 120


class Depth(Struct, frozen=True):
    """`most[n]`: tasks that were due and not claimed, at most at once in the n-th `step` from `since` on; `last`: at the end."""

    since: datetime
    step: timedelta
    most: Sequence[int]
    last: int

    @property
    def peak(self) -> int:
        return max(self.most)

    @property
    def peak_at(self) -> datetime:
        """The beginning of the step in which the most tasks waited, for the first time."""
        return self.since + self.most.index(self.peak) * self.step


async def queue_depth(conn: Connection, since: datetime, until: datetime) -> Depth | None:
    """The depth between two times; None if too many tasks ended since then. Tasks that ended after `until` may have waited before
    it, so they are read as well."""
    step = (until - since) / _STEPS
    values = {"since": since, "until": until, "step": step, "steps": _STEPS, "read": READ + 1}
    rows = {row["step"]: row for row in await fetch_all(conn, _q.waits, values, prepare=False)}
    if rows.pop(None)["most"] > READ:
        return None
    waiting = rows[-1]["change"] if -1 in rows else 0
    most = []
    for n in range(_STEPS):
        row = rows.get(n)
        most.append(max(waiting, row["most"]) if row else waiting)
        waiting += row["change"] if row else 0
    return Depth(since, step, most, waiting)
