"""Matched rows on a fresh database, and a person who acts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

from menuwatch.accounts.audit import Actor, actor_context
from menuwatch.db.pool import Connection, Pool
from tests.matching.match_rows import MatchRows


@pytest.fixture
def rows(database_url: str) -> Iterator[MatchRows]:
    """Writes and reads rows, each statement committed."""
    with psycopg.connect(database_url, autocommit=True) as conn:

        def run(statement: str, values: Any = None) -> list[tuple[Any, ...]]:
            cursor = conn.execute(statement, values)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

        yield MatchRows(run)


@pytest.fixture
async def conn(pool: Pool) -> AsyncIterator[Connection]:
    """A connection of Ann, an operator."""
    with actor_context(Actor(name="ann", kind="user", via="api")):
        async with pool.connection() as opened:
            await opened.set_autocommit(True)
            yield opened
            await opened.set_autocommit(False)
