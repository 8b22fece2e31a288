"""Where the former tables lie, and which columns they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection
from psycopg import sql as compose

from menuwatch.db import sql
from menuwatch.operations.reading import rows
from menuwatch.operations.refusals import Conflict

_q = sql.load(__package__)

SCHEDULES, RUNS, JOBS = "job_schedules", "job_run_logs", "dispensary_crawl_jobs"
NAMES = (SCHEDULES, RUNS, JOBS)
"""The tables by which a database of the former system is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One former table."""

    name: str
    schema: str
    columns: frozenset[str]
    readable: bool
    writable: bool

    @property
    def sql(self) -> compose.Composed:
        """Its name, quoted, with that of its schema."""
        return compose.SQL("{}.{}").format(compose.Identifier(self.schema), compose.Identifier(self.name))

    def first_of(self, *names: str) -> str | None:
        """The first of these columns that it has."""
        return next((name for name in names if name in self.columns), None)

    def need(self, *names: str) -> str:
        """The first of these columns that it has; raises Conflict, naming the column, where it has none of them."""
        found = self.first_of(*names)
        if found is None:
            raise Conflict(f"table {self.schema}.{self.name} has no column {' or '.join(names)}")
        return found


async def find(conn: AsyncConnection[Any], names: Sequence[str] = NAMES, schema: str | None = None) -> dict[str, Table]:
    """Those of the tables that there are, by name; in that schema alone where one is named."""
    found: dict[str, Table] = {}
    for row in await rows(conn, _q.tables, {"names": list(names), "schema": schema}):
        found.setdefault(row["name"], Table(**{**row, "columns": frozenset(row["columns"])}))
    return found
