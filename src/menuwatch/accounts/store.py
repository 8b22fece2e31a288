"""The rows of users, sessions and tokens."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from menuwatch.accounts.model import ALLOWED, Permission, Principal, Role, Token, User
from menuwatch.accounts.secrets import hashed, new_secret, parse_token, same, token_text
from menuwatch.core.errors import Refused
from menuwatch.db import sql

_q = sql.load(__package__)
_ALL = 2**31 - 1

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
"""What a user may be called: nothing that could end a header, and no letters that look like others."""

Conn = AsyncConnection[Any]


class BadCredentials(Refused):
    """A token or cookie that lets nobody in; the message says why, as far as whoever holds it may know."""


async def _rows(conn: Conn, query: Any, values: dict[str, Any]) -> list[dict[str, Any]]:
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(query, values)
        return await cur.fetchall()


def _user(row: dict[str, Any]) -> User:
    return User(**row | {"role": Role(row["role"])})


async def lock_users(conn: Conn) -> None:
    """Nobody else makes or changes a user until the transaction ends. Whoever does so takes this first."""
    await conn.execute(_q.lock_users)


async def any_user(conn: Conn) -> bool:
    """Whether there is one."""
    row = await (await conn.execute(_q.any_user)).fetchone()
    return row is not None and bool(row[0])


async def admins(conn: Conn) -> set[int]:
    """Ids of the admins that may log in."""
    return {row[0] for row in await (await conn.execute(_q.admins)).fetchall()}


async def insert(conn: Conn, name: str, role: Role, password_hash: str, *, must_change: bool) -> User | None:
    """A new user, None where the name is taken."""
    values = {"name": name, "role": role, "password_hash": password_hash, "must_change": must_change}
    found = await _rows(conn, _q.insert_user, values)
    return _user(found[0]) if found else None


async def listed(conn: Conn, *, after: int = 0, limit: int = _ALL) -> list[User]:
    """Users by number."""
    return [_user(row) for row in await _rows(conn, _q.users, _page(after, limit) | {"name": None})]


async def by_id(conn: Conn, user_id: int) -> User | None:
    """The user of that number."""
    found = await _rows(conn, _q.users, _page(0, 1) | {"id": user_id, "name": None})
    return _user(found[0]) if found else None


async def by_name(conn: Conn, name: str) -> User | None:
    """The user of that name, in whatever case."""
    found = await _rows(conn, _q.users, _page(0, 1) | {"name": name})
    return _user(found[0]) if found else None


def _page(after: int, limit: int) -> dict[str, Any]:
    return {"after": after, "limit": limit, "id": None}


async def password_of(conn: Conn, name: str) -> tuple[int, str, bool] | None:
    """(id, hash, whether disabled) of the user of that name."""
    row = await (await conn.execute(_q.password_of, {"name": name})).fetchone()
    return None if row is None else (row[0], row[1], row[2])


async def password_by_id(conn: Conn, user_id: int) -> str | None:
    """The hash of a user who may log in."""
    row = await (await conn.execute(_q.password_by_id, {"id": user_id})).fetchone()
    return None if row is None else str(row[0])


async def set_role(conn: Conn, user_id: int, role: Role) -> None:
    """Gives another role."""
    await conn.execute(_q.set_role, {"id": user_id, "role": role})


async def set_disabled(conn: Conn, user_id: int, disabled: bool) -> None:
    """Whether they may log in."""
    await conn.execute(_q.set_disabled, {"id": user_id, "disabled": disabled})


async def set_password(conn: Conn, user_id: int, password_hash: str, *, must_change: bool) -> None:
    """Another password."""
    values = {"id": user_id, "password_hash": password_hash, "must_change": must_change}
    await conn.execute(_q.set_password, values)


async def rehash(conn: Conn, user_id: int, *, before: str, after: str) -> None:
    """The same password under another hash."""
    await conn.execute(_q.rehash, {"id": user_id, "password_hash": after, "before": before})


async def delete(conn: Conn, user_id: int) -> None:
    """Removes a user with sessions and tokens."""
    await conn.execute(_q.delete_user, {"id": user_id})


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
    found = await _rows(conn, _q.session_user, {"secret_hash": hashed(secret)})
    if not found:
        return None
    row = found[0]
    if row["is_stale"]:
        await conn.execute(_q.touch_session, {"id": row["session"]})
    role = Role(row["role"])
    return Principal(
        name=row["name"],
        role=role,
        permissions=frozenset() if row["must_change_password"] else ALLOWED[role],
        user_id=row["user_id"],
        session=row["session"],
        must_change_password=row["must_change_password"],
    )


async def close_session(conn: Conn, session: str) -> None:
    """Ends one."""
    await conn.execute(_q.delete_session, {"id": session})


async def close_sessions(conn: Conn, user_id: int, *, keep: str | None = None) -> None:
    """Ends all of a user, but the one to keep."""
    await conn.execute(_q.delete_sessions, {"user_id": user_id, "keep": keep})


async def insert_token(
    conn: Conn, user_id: int, name: str, scopes: frozenset[Permission], expires_at: datetime | None
) -> tuple[int, str]:
    """(id, text) of a new token. The text is nowhere else."""
    secret = new_secret()
    values = {
        "user_id": user_id,
        "name": name,
        "secret_hash": hashed(secret),
        "scopes": sorted(scopes),
        "expires_at": expires_at,
    }
    row = await (await conn.execute(_q.insert_token, values)).fetchone()
    assert row is not None, "an INSERT gives its row"
    return row[0], token_text(row[0], secret)


async def tokens(conn: Conn, *, user_id: int | None = None, after: int = 0, limit: int = _ALL) -> list[Token]:
    """Tokens by number, of one user or of all."""
    return [_token(row) for row in await _rows(conn, _q.tokens, _page(after, limit) | {"user_id": user_id})]


async def token(conn: Conn, token_id: int) -> Token | None:
    """The token of that number."""
    found = await _rows(conn, _q.tokens, _page(0, 1) | {"id": token_id, "user_id": None})
    return _token(found[0]) if found else None


def _token(row: dict[str, Any]) -> Token:
    return Token(**row | {"scopes": tuple(Permission(scope) for scope in row["scopes"])})


async def of_token(conn: Conn, text: str) -> Principal:
    """Who that token stands for: what its scopes and its owner's role of now both allow. It counts as used. Raises BadCredentials."""
    parsed = parse_token(text)
    if parsed is None:
        raise BadCredentials("that is no token: one looks like mw_<number>_<64 hexadecimal digits>")
    found = await _rows(conn, _q.token_user, {"id": parsed[0]})
    if not found or not same(bytes(found[0]["secret_hash"]), parsed[1]):
        raise BadCredentials("the token is not known")
    row = found[0]
    # Only who holds the secret is told what became of it.
    if row["is_revoked"]:
        raise BadCredentials("the token was revoked")
    if row["is_expired"]:
        raise BadCredentials("the token has expired")
    if row["is_disabled"]:
        raise BadCredentials("the token's owner is disabled")
    if row["is_stale"]:
        await conn.execute(_q.touch_token, {"id": row["token_id"]})
    role = Role(row["role"])
    scopes = frozenset(Permission(scope) for scope in row["scopes"] if scope in _KNOWN)
    return Principal(
        name=row["name"],
        role=role,
        permissions=scopes & ALLOWED[role],
        user_id=row["user_id"],
        token_id=row["token_id"],
    )


_KNOWN = frozenset(Permission)


async def revoke_token(conn: Conn, token_id: int) -> bool:
    """Whether it was in use."""
    return (await conn.execute(_q.revoke_token, {"id": token_id})).rowcount == 1


async def prune(conn: Conn) -> int:
    """Removes sessions that are over, and failures that count no more, with their key; returns how many sessions."""
    gone = (await conn.execute(_q.prune_sessions)).rowcount
    await conn.execute(_q.prune_failures)
    await conn.execute(_q.prune_throttle_key)
    return gone


async def prune_audit(conn: Conn, before: datetime) -> int:
    """Removes what people did before that time; returns how much."""
    return (await conn.execute(_q.prune_audit, {"before": before})).rowcount
