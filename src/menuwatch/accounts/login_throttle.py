"""Login throttling: after 5 failures of a user, or 20 from a network, each further attempt has to wait, twice as long as the one
before and up to 15 minutes. Unknown names are treated alike. Neither name nor network is stored, only keyed hashes."""

from __future__ import annotations

import hmac
import secrets
from typing import Any

from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.db.pool import Pool

_q = sql.load(__package__)

_FREE = {"user": 5, "address": 20}
"""Failures after which the next attempt has to wait."""
_WAIT = {"first": 5.0, "longest": 900.0}
_LONGEST_NAME = 200


class TooManyTries(Exception):
    """The client must wait for that many `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = int(seconds) + 1
        super().__init__(f"too many failed logins: try again in {self.seconds} seconds")


async def _keys(conn: AsyncConnection[Any], name: str, network: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of the rows of the user and of the network."""
    while (row := await (await conn.execute(_q.throttle_key)).fetchone()) is None:
        await conn.execute(_q.make_throttle_key, {"key": secrets.token_bytes(32)})
    secret = bytes(row[0])

    def key(kind: str, value: str) -> dict[str, Any]:
        return {"kind": kind, "key": hmac.digest(secret, f"{kind}:{value}".encode("utf-8", "replace"), "sha256")}

    return key("user", name[:_LONGEST_NAME].casefold()), key("address", network)


async def _register(conn: AsyncConnection[Any], key: dict[str, Any]) -> None:
    """Counts an attempt as failed; raises TooManyTries, without counting it, if it has to wait."""
    values = key | _WAIT | {"free": _FREE[key["kind"]]}
    if await (await conn.execute(_q.note_failure, values)).fetchone() is None:
        row = await (await conn.execute(_q.wait_left, values)).fetchone()
        raise TooManyTries(max(1.0, row[0]) if row is not None else 1.0)


async def begin(pool: Pool, name: str, network: str) -> None:
    """Counts an attempt as failed, before it is made; raises TooManyTries if it has to wait."""
    async with pool.connection(timeout=10) as conn:
        user, address = await _keys(conn, name, network)
        await _register(conn, address)
        try:
            await _register(conn, user)
        except TooManyTries:
            await conn.execute(_q.take_back_failure, address)
            raise


async def undo(pool: Pool, name: str, network: str) -> None:
    """Uncounts an attempt that was never made."""
    async with pool.connection(timeout=10) as conn:
        for key in await _keys(conn, name, network):
            await conn.execute(_q.take_back_failure, key)


async def succeeded(pool: Pool, name: str, network: str) -> None:
    """Resets the user's failures after a login. For the network only this attempt is undone, so that one valid login does not
    clear the failures of others."""
    async with pool.connection(timeout=10) as conn:
        user, address = await _keys(conn, name, network)
        await conn.execute(_q.forget_failures, user)
        await conn.execute(_q.take_back_failure, address)
