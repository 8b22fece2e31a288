"""Passwords, sessions and tokens as credentials: who a request is from, and what they may do now."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from menuwatch.accounts.model import ALLOWED, Permission, Principal, Role
from menuwatch.accounts.secrets import hashed, new_secret, parse_token, same
from menuwatch.core.errors import Refused
from menuwatch.db import sql
from menuwatch.db.query import fetch_all, fetch_one

_q = sql.load(__package__)
_KNOWN = frozenset(Permission)

Conn = AsyncConnection[Any]


class BadCredentials(Refused):
    """An invalid token or cookie; the message says why, as far as the holder may know."""


async def lock_users(conn: Conn) -> None:
    """Locks out other changes of users until the transaction ends. Every function that changes users takes this lock first."""
    await conn.execute(_q.lock_users)


async def password_of(conn: Conn, name: str) -> tuple[int, str, bool] | None:
    """(id, hash, whether disabled) of the user of that name."""
    row = await (await conn.execute(_q.password_of, {"name": name})).fetchone()
    return None if row is None else (row[0], row[1], row[2])


async def password_by_id(conn: Conn, user_id: int) -> str | None:
    """The hash of a user who may log in."""
    row = await (await conn.execute(_q.password_by_id, {"id": user_id})).fetchone()
    return None if row is None else str(row[0])


async def set_password(conn: Conn, user_id: int, password_hash: str, *, must_change: bool) -> None:
    values = {"id": user_id, "password_hash": password_hash, "must_change": must_change}
    await conn.execute(_q.set_password, values)


async def rehash(conn: Conn, user_id: int, *, before: str, after: str) -> None:
    """The same password under another hash."""
    await conn.execute(_q.rehash, {"id": user_id, "password_hash": after, "before": before})


async def open_session(
    conn: Conn, user_id: int, *, password_hash: str, idle_seconds: int, longest_seconds: int
) -> tuple[str, str] | None:
    """(id, secret) of a new session; None where the user was disabled, removed or given another password since it was checked."""
    secret = new_secret()
    values = {
        "user_id": user_id,
        "password_hash": password_hash,
        "secret_hash": hashed(secret),
        "idle_seconds": idle_seconds,
        "longest_seconds": longest_seconds,
    }
    row = await (await conn.execute(_q.insert_session, values)).fetchone()
    return None if row is None else (row[0], secret)


async def of_session(conn: Conn, secret: str) -> Principal | None:
    """Who that session is, None where it is over. It counts as used."""
    row = await fetch_one(conn, _q.session_user, {"secret_hash": hashed(secret)})
    if row is None:
        return None
    if row["is_stale"]:
        await conn.execute(_q.touch_session, {"id": row["session"]})
    role = Role(row["role"])
    return Principal(
        name=row["name"],
        role=role,
        permissions=_of_session(row),
        user_id=row["user_id"],
        session=row["session"],
        must_change_password=row["must_change_password"],
    )


def _of_session(row: dict[str, Any]) -> frozenset[Permission]:
    return frozenset() if row["must_change_password"] else ALLOWED[Role(row["role"])]


def _of_token(row: dict[str, Any]) -> frozenset[Permission]:
    return frozenset(Permission(scope) for scope in row["scopes"] if scope in _KNOWN) & ALLOWED[Role(row["role"])]


async def permissions_now(conn: Conn, principals: Collection[Principal]) -> dict[Principal, frozenset[Permission]]:
    """What these principals may do now, by their session or token; none where it has ended. Two queries for all of them, or fewer;
    no session counts as used."""
    held: dict[str | int, frozenset[Permission]] = {}
    for ids, query, permissions in (
        ([who.session for who in principals if who.session is not None], _q.session_permissions, _of_session),
        ([who.token_id for who in principals if who.token_id is not None], _q.token_permissions, _of_token),
    ):
        if ids:
            held |= {row["id"]: permissions(row) for row in await fetch_all(conn, query, {"ids": ids})}
    return {who: held.get(who.session or who.token_id or 0, frozenset()) for who in principals}


async def close_session(conn: Conn, session: str) -> None:
    await conn.execute(_q.delete_session, {"id": session})


async def close_sessions(conn: Conn, user_id: int, *, keep: str | None = None) -> None:
    """Ends all of a user, but the one to keep."""
    await conn.execute(_q.delete_sessions, {"user_id": user_id, "keep": keep})


async def of_token(conn: Conn, text: str) -> Principal:
    """Who that token stands for: what its scopes and its owner's role of now both allow. It counts as used. Raises BadCredentials."""
    parsed = parse_token(text)
    if parsed is None:
        raise BadCredentials("malformed token: expected mw_<number>_<64 hexadecimal digits>")
    row = await fetch_one(conn, _q.token_user, {"id": parsed[0]})
    if row is None or not same(bytes(row["secret_hash"]), parsed[1]):
        raise BadCredentials("unknown token")
    # The state of a token is revealed only to the holder of its secret.
    if row["is_revoked"]:
        raise BadCredentials("the token was revoked")
    if row["is_expired"]:
        raise BadCredentials("the token has expired")
    if row["is_disabled"]:
        raise BadCredentials("the token's owner is disabled")
    if row["is_stale"]:
        await conn.execute(_q.touch_token, {"id": row["token_id"]})
    return Principal(
        name=row["name"],
        role=Role(row["role"]),
        permissions=_of_token(row),
        user_id=row["user_id"],
        token_id=row["token_id"],
    )


async def prune(conn: Conn) -> int:
    """Removes sessions that are over, and failures that count no more, with their key; returns how many sessions."""
    gone = (await conn.execute(_q.prune_sessions)).rowcount
    await conn.execute(_q.prune_failures)
    await conn.execute(_q.prune_throttle_key)
    return gone


async def prune_audit(conn: Conn, before: datetime) -> int:
    """Removes what people did before that time; returns how much."""
    return (await conn.execute(_q.prune_audit, {"before": before})).rowcount
