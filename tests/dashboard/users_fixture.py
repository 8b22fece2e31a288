"""Somebody who is logged in, as a browser is: a session's cookie, and requests that come from our own pages."""

from __future__ import annotations

import httpx

from menuwatch.accounts import credentials, users
from menuwatch.accounts.model import Role
from menuwatch.db.pool import Pool
from menuwatch.web.routing import Apps
from tests.dashboard.conftest import ORIGIN
from tests.users_fixture import NO_PASSWORD


async def logged_in(apps: Apps, pool: Pool, name: str, role: Role) -> httpx.AsyncClient:
    """A browser of that user, who is made where there is none. The caller closes it."""
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(apps),
        base_url=ORIGIN,
        headers={"Sec-Fetch-Site": "same-origin"},
        cookies={"menuwatch": await session_of(pool, name, role)},
    )


async def session_of(pool: Pool, name: str, role: Role) -> str:
    """What the cookie of that user's session holds; the user is made where there is none."""
    async with pool.connection() as conn, conn.transaction():
        known = await users.list_users(conn, name=name)
        user = known[0] if known else await users.insert(conn, name, role, NO_PASSWORD, must_change=False)
        assert user is not None
        opened = await credentials.open_session(
            conn, user.id, password_hash=NO_PASSWORD, idle_seconds=3600, longest_seconds=3600
        )
    assert opened is not None
    return opened[1]
