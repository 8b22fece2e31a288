"""Somebody who is logged in, as a browser is: a session's cookie, and requests that come from our own pages."""

from __future__ import annotations

import httpx

from menuwatch.accounts import store
from menuwatch.accounts.model import Role
from menuwatch.db.pool import Pool
from menuwatch.web.faces import Faces
from tests.dashboard.conftest import ORIGIN
from tests.people import NO_PASSWORD


async def logged_in(faces: Faces, pool: Pool, name: str, role: Role) -> httpx.AsyncClient:
    """A browser of that user, who is made where there is none. The caller closes it."""
    async with pool.connection() as conn, conn.transaction():
        user = await store.by_name(conn, name) or await store.insert(conn, name, role, NO_PASSWORD, must_change=False)
        assert user is not None
        opened = await store.open_session(
            conn, user.id, password_hash=NO_PASSWORD, idle_seconds=3600, longest_seconds=3600
        )
    assert opened is not None
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(faces),
        base_url=ORIGIN,
        headers={"Sec-Fetch-Site": "same-origin"},
        cookies={"menuwatch": opened[1]},
    )
