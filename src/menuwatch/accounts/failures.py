"""Logins that failed, counted by the name that was tried and by the address that tried; neither is stored, only keyed hashes."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from menuwatch.db import sql

_q = sql.load(__package__)

FIRST_SECONDS = 5.0
LONGEST_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    free: int
    """Failures after which the next try has to wait."""


USER = _Kind("user", 5)
ADDRESS = _Kind("address", 20)


async def _hashed(conn: AsyncConnection[Any], kind: _Kind, value: str) -> dict[str, Any]:
    row = await (await conn.execute(_q.throttle_key)).fetchone()
    while row is None:
        await conn.execute(_q.make_throttle_key, {"key": secrets.token_bytes(32)})
        row = await (await conn.execute(_q.throttle_key)).fetchone()
    key = hmac.digest(bytes(row[0]), f"{kind.name}:{value}".encode("utf-8", "replace"), "sha256")
    return {"kind": kind.name, "key": key}


def _pace(kind: _Kind) -> dict[str, float]:
    return {"free": kind.free, "first": FIRST_SECONDS, "longest": LONGEST_SECONDS}


async def begin(conn: AsyncConnection[Any], kind: _Kind, value: str) -> float | None:
    """Counts a try as failed. Where it has to wait first, it is not counted, and the seconds that are left come back."""
    key = await _hashed(conn, kind, value)
    if await (await conn.execute(_q.note_failure, key | _pace(kind))).fetchone() is not None:
        return None
    row = await (await conn.execute(_q.wait_left, key | _pace(kind))).fetchone()
    return max(1.0, row[0]) if row is not None else 1.0


async def take_back(conn: AsyncConnection[Any], kind: _Kind, value: str) -> None:
    """One try less: it was no failure, or it was never made."""
    await conn.execute(_q.take_back_failure, await _hashed(conn, kind, value))


async def forget(conn: AsyncConnection[Any], kind: _Kind, value: str) -> None:
    """All of them."""
    await conn.execute(_q.forget_failures, await _hashed(conn, kind, value))
