"""Requests of the last 24 hours by the hour: answered, refused, or come to nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.operations.reading import rows

_q = sql.load(__package__, "host_hours.sql")

HOURS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """Requests of one hour. `refused`: blocked, challenged or asked to slow down; `failed`: no answer for another reason."""

    answered: int = 0
    refused: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.answered + self.refused + self.failed


async def day(conn: Connection, host: str | None = None) -> Mapping[str, Sequence[Hour]]:
    """The last 24 hours of a host, or of each, the oldest first; hosts that were not asked are not in it."""
    found: dict[str, list[Hour]] = {}
    for row in await rows(conn, _q.hours, {"host": host}, prepare=False):
        hours = found.setdefault(row["host"], [Hour()] * HOURS)
        hour = Hour(answered=row["answered"], refused=row["refused"], failed=row["failed"])
        hours[HOURS - 1 - min(row["ago"], HOURS - 1)] = hour
    return found
