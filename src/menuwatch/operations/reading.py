"""How read models are fetched: rows as dictionaries, JSON columns as the bytes that the database sent.

JSON is passed through undecoded: prices in it keep every digit, and nothing is parsed only to be written again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from psycopg import AsyncConnection
from psycopg.adapt import Buffer, Loader
from psycopg.rows import dict_row

Row = dict[str, Any]


class _VerbatimJson(Loader):
    def load(self, data: Buffer) -> msgspec.Raw:
        return msgspec.Raw(bytes(data))


async def rows(
    conn: AsyncConnection[Any], query: Any, values: Mapping[str, Any], *, prepare: bool | None = None
) -> list[Row]:
    """Every row; values of json and jsonb columns are `msgspec.Raw`. With `prepare` False it is planned for these very values."""
    async with conn.cursor(row_factory=dict_row) as cur:
        cur.adapters.register_loader("json", _VerbatimJson)
        cur.adapters.register_loader("jsonb", _VerbatimJson)
        await cur.execute(query, values, prepare=prepare)
        return await cur.fetchall()


async def row(conn: AsyncConnection[Any], query: Any, values: Mapping[str, Any]) -> Row | None:
    """The first row, None where there is none."""
    found = await rows(conn, query, values)
    return found[0] if found else None


def pattern(text: str) -> str:
    """What LIKE takes for "contains this text", whatever characters it holds."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
