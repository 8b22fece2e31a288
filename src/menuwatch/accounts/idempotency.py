"""Keys of requests that may be sent twice, and the answers that the first of them got."""

from __future__ import annotations

import hmac
import uuid
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from menuwatch.db import sql

_q = sql.load(__package__, "idempotency.sql")

Headers = Sequence[tuple[str, str]]


class Key(Struct, frozen=True):
    """One key of one actor; others' are others."""

    actor: str
    key: str

    def values(self) -> dict[str, str]:
        """As parameters."""
        return {"actor": self.actor, "key": self.key}


class StoredResponse(Struct, frozen=True):
    """The answer that was given."""

    status: int
    headers: Headers
    body: bytes


class InProgress(Exception):
    """The request with that key is being carried out."""


class KeyMismatch(Exception):
    """That key was used for another request."""


async def claim(conn: AsyncConnection[Any], key: Key, fingerprint: bytes) -> str | StoredResponse:
    """The number of the claim, for who is to carry the request out; or the answer that it got. Raises InProgress and KeyMismatch."""
    for _ in range(3):
        number = str(uuid.uuid4())
        values = key.values() | {"fingerprint": fingerprint, "claim": number}
        if await (await conn.execute(_q.claim, values)).fetchone() is not None:
            return number
        row = await (await conn.execute(_q.claimed, key.values())).fetchone()
        if row is None:
            continue  # it was given back between the two
        if not hmac.compare_digest(bytes(row[0]), fingerprint):
            raise KeyMismatch
        if row[1] is None:
            raise InProgress
        return StoredResponse(row[1], [(name, value) for name, value in row[2]], bytes(row[3]))
    raise InProgress


async def settle(conn: AsyncConnection[Any], key: Key, number: str, kept: StoredResponse) -> None:
    """Keeps the answer."""
    values = {"claim": number, "status": kept.status, "headers": Jsonb(list(kept.headers)), "body": kept.body}
    await conn.execute(_q.settle, key.values() | values)


async def give_back(conn: AsyncConnection[Any], key: Key, number: str) -> None:
    """The request failed on our side: it may be sent again."""
    await conn.execute(_q.give_back, key.values() | {"claim": number})


async def prune(conn: AsyncConnection[Any]) -> int:
    """Removes keys that are a day old; returns how many."""
    return (await conn.execute(_q.prune)).rowcount
