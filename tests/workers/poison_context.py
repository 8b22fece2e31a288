"""What the cases of poisoned items are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from menuwatch.db.pool import Pool

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class World:
    """What a case is made of. `make` makes a worker."""

    pool: Pool
    folder: Path
    make: Callable[..., Any]

    async def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        async with self.pool.connection() as conn:
            cursor = await conn.execute(query.encode(), values or None)
            return await cursor.fetchall() if cursor.description else []

    async def refuse(self, table: str, event: str, when: str) -> None:
        """The database raises for rows of that kind from now on."""
        await self.rows(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'poisoned'; END $$"
        )
        await self.rows(
            f"CREATE TRIGGER refuse BEFORE {event} ON {table} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION refuse()"
        )


Found = Sequence[tuple[str, Any]]
"""(kind, id) of the items that the log is to name."""
