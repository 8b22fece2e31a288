"""Tokens: programs that act for a user. A token never may more than who made it, nor at any time more than its owner may then."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from psycopg import AsyncConnection

from menuwatch.accounts import store as accounts
from menuwatch.accounts.model import ALLOWED, Permission, Principal, Token, User
from menuwatch.operations import audit
from menuwatch.operations.accounts import Overreach, require
from menuwatch.operations.refusals import Conflict, NotFound, Unusable

LONGEST = timedelta(days=3660)

Conn = AsyncConnection[Any]


async def page(conn: Conn, *, user_id: int | None = None, after: int = 0, limit: int = 50) -> list[Token]:
    """Tokens by number, those after `after`: of one user, or all."""
    return await accounts.tokens(conn, user_id=user_id, after=after, limit=limit)


async def one(conn: Conn, token_id: int) -> Token:
    """One token; raises NotFound."""
    found = await accounts.token(conn, token_id)
    if found is None:
        raise NotFound(f"token {token_id} does not exist")
    return found


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
    """A new token of that owner, and its text, which is shown once and is nowhere else. Raises Unusable, Conflict, Overreach."""
    name = name.strip()
    if not 0 < len(name) <= 100 or not name.isprintable():
        raise Unusable("name", "a token's name says what it is for, in 1 to 100 characters that can be printed")
    wanted = frozenset(scopes)
    if not wanted:
        raise Unusable("scopes", f"a token needs at least one scope: {', '.join(Permission)}")
    require(by, wanted, "making this token")
    if beyond := sorted(wanted - ALLOWED[owner.role]):
        raise Overreach(f"{owner.name} is {owner.role}, and may do no {beyond[0]}: its tokens cannot either", beyond[0])
    if expires_at is not None and not now < expires_at <= now + LONGEST:
        raise Unusable("expires_at", f"a token ends after now, and within {LONGEST.days} days; or never (null)")
    if owner.disabled_at is not None:
        raise Conflict(f"{owner.name} is disabled, and so would be its tokens")
    token_id, text = await accounts.insert_token(conn, owner.id, name, wanted, expires_at)
    made = await one(conn, token_id)
    # The name is free text; somebody may have put anything there, so the trail has the number alone.
    await audit.record(
        conn, "token_created", ("token", token_id), owner=owner.name, scopes=sorted(wanted), expires_at=expires_at
    )
    return made, text


async def revoke(conn: Conn, token_id: int) -> Token:
    """Lets it in no more; returns it. Doing so again changes nothing. Raises NotFound."""
    found = await one(conn, token_id)
    if await accounts.revoke_token(conn, token_id):
        await audit.record(conn, "token_revoked", ("token", token_id), owner=found.owner)
    return await one(conn, token_id)


_SPAN = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def parse_span(text: str) -> timedelta:
    """`90d`, `12h`, `4w`. Raises Unusable."""
    found = _SPAN.fullmatch(text.strip().lower())
    if found is None:
        raise Unusable("expires", f"{text!r} is no span of time: write 12h, 90d or 4w")
    return int(found[1]) * _UNITS[found[2]]
