"""Fetches rows as Structs or dictionaries, with JSON columns as the bytes that the database sent.

JSON is passed through undecoded: prices in it keep every digit, and nothing is parsed only to be encoded again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from psycopg import AsyncConnection
from psycopg.adapt import Buffer, Loader
from psycopg.rows import class_row, dict_row

Row = dict[str, Any]
T = TypeVar("T")


class _VerbatimJson(Loader):
    def load(self, data: Buffer) -> msgspec.Raw:
        return msgspec.Raw(bytes(data))


async def fetch_all(
    conn: AsyncConnection[Any], query: Any, values: Mapping[str, Any], *, prepare: bool | None = None
) -> list[Row]:
    """Every row; values of json and jsonb columns are `msgspec.Raw`. With `prepare` False it is planned for these very values."""
    async with conn.cursor(row_factory=dict_row) as cur:
        cur.adapters.register_loader("json", _VerbatimJson)
        cur.adapters.register_loader("jsonb", _VerbatimJson)
        await cur.execute(query, values, prepare=prepare)
        return await cur.fetchall()


async def fetch_one(conn: AsyncConnection[Any], query: Any, values: Mapping[str, Any]) -> Row | None:
    """The first row, None where there is none."""
    rows = await fetch_all(conn, query, values)
    return rows[0] if rows else None


def like_pattern(text: str) -> str:
    """The LIKE pattern for "contains this text", with its special characters escaped."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


async def fetch_structs(
    conn: AsyncConnection[Any], shape: type[T], query: Any, values: Mapping[str, Any], *, prepare: bool | None = None
) -> list[T]:
    """Every row as a `shape`, whose fields are the columns of the query."""
    async with conn.cursor(row_factory=class_row(shape)) as cur:
        cur.adapters.register_loader("json", _VerbatimJson)
        cur.adapters.register_loader("jsonb", _VerbatimJson)
        await cur.execute(query, values, prepare=prepare)
        return await cur.fetchall()


async def fetch_struct(conn: AsyncConnection[Any], shape: type[T], query: Any, values: Mapping[str, Any]) -> T | None:
    """The first row as a `shape`; None if there is none."""
    rows = await fetch_structs(conn, shape, query, values)
    return rows[0] if rows else None
