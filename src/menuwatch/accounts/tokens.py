"""API tokens. A token never has more permissions than its creator, nor at any time more than its owner has then."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from msgspec import convert
from psycopg import AsyncConnection

from menuwatch.accounts import audit
from menuwatch.accounts.model import ALLOWED, Permission, Principal, Token, User
from menuwatch.accounts.secrets import hashed, new_secret, token_text
from menuwatch.accounts.users import Overreach, require_permissions
from menuwatch.core.errors import Conflict, InvalidField, NotFound
from menuwatch.db import sql
from menuwatch.db.query import fetch_all, fetch_one

_q = sql.load(__package__)
LONGEST = timedelta(days=3660)

Conn = AsyncConnection[Any]


async def list_tokens(
    conn: Conn, *, user_id: int | None = None, after: int = 0, limit: int = 50, token_id: int | None = None
) -> list[Token]:
    """Tokens by id, after the one with the id `after`: of one user, or of all."""
    values = {"after": after, "limit": limit, "id": token_id, "user_id": user_id}
    return convert(await fetch_all(conn, _q.tokens, values), list[Token])


async def get_token(conn: Conn, token_id: int, *, by: Principal | None) -> Token:
    """Raises NotFound, also for the token of another user if `by` may not manage accounts."""
    tokens = await list_tokens(conn, token_id=token_id)
    if not tokens or (by is not None and tokens[0].user_id != by.user_id and not by.may(Permission.ACCOUNTS)):
        raise NotFound(f"token {token_id} does not exist")
    return tokens[0]


async def create(
    conn: Conn,
    owner: User,
    name: str,
    scopes: Iterable[Permission],
    *,
    expires_at: datetime | None,
    now: datetime,
    by: Principal | None,
) -> tuple[Token, str]:
    """Creates a token; returns it and its text, which is not stored. Raises InvalidField, Conflict, Overreach."""
    name = name.strip()
    if not 0 < len(name) <= 100 or not name.isprintable():
        raise InvalidField("name", "a token needs a name of 1 to 100 printable characters")
    granted = frozenset(scopes)
    if not granted:
        raise InvalidField("scopes", f"a token needs at least one scope: {', '.join(Permission)}")
    require_permissions(by, granted, "creating this token")
    if beyond := sorted(granted - ALLOWED[owner.role]):
        raise Overreach(
            f"{owner.name} has role {owner.role} and lacks {beyond[0]}: a token cannot have more permissions than its owner",
            beyond[0],
        )
    if expires_at is not None and not now < expires_at <= now + LONGEST:
        raise InvalidField(
            "expires_at", f"expires_at must be in the future, at most {LONGEST.days} days from now, or null for never"
        )
    if owner.disabled_at is not None:
        raise Conflict(f"user {owner.name} is disabled")
    secret = new_secret()
    values = {
        "user_id": owner.id,
        "name": name,
        "secret_hash": hashed(secret),
        "scopes": sorted(granted),
        "expires_at": expires_at,
    }
    row = await fetch_one(conn, _q.insert_token, values)
    assert row is not None, "an INSERT returns its row"
    token_id: int = row["id"]
    # The name is free text and may hold a secret: the audit log has the id alone.
    await audit.record(
        conn, "token_created", ("token", token_id), owner=owner.name, scopes=sorted(granted), expires_at=expires_at
    )
    return await get_token(conn, token_id, by=by), token_text(token_id, secret)


async def revoke(conn: Conn, token_id: int, *, by: Principal | None) -> Token:
    """Revokes a token; doing so again changes nothing. Raises NotFound as `get_token` does."""
    token = await get_token(conn, token_id, by=by)
    if (await conn.execute(_q.revoke_token, {"id": token_id})).rowcount:
        await audit.record(conn, "token_revoked", ("token", token_id), owner=token.owner)
    return await get_token(conn, token_id, by=by)


_SPAN = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def parse_span(text: str) -> timedelta:
    """`90d`, `12h`, `4w`. Raises InvalidField."""
    match = _SPAN.fullmatch(text.strip().lower())
    if match is None:
        raise InvalidField("expires", f"{text!r} is not a duration: use 12h, 90d or 4w")
    return int(match[1]) * _UNITS[match[2]]
