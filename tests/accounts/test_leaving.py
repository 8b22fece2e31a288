"""Whoever is removed leaves nothing to whoever gets the name later."""

from __future__ import annotations

from menuwatch.accounts import store
from menuwatch.accounts.model import Role
from menuwatch.db.pool import Pool
from menuwatch.operations import accounts, views
from tests.people import NO_PASSWORD


async def test_saved_views_go_with_their_owner_and_those_of_others_stay(pool: Pool) -> None:
    async with pool.connection() as conn, conn.transaction():
        marta = await store.insert(conn, "marta", Role.VIEWER, NO_PASSWORD, must_change=False)
        assert marta is not None
        for owner in ("marta", "jonas"):
            await conn.execute(
                "INSERT INTO saved_views (owner, screen, name, query) VALUES (%s, '/tasks', 'mine', 'q=a')", [owner]
            )
        await accounts.remove(conn, marta.id, by=None)
        assert await views.listed(conn, "marta", "/tasks") == []
        assert [one.name for one in await views.listed(conn, "jonas", "/tasks")] == ["mine"]
