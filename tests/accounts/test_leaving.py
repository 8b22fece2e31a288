"""Whoever is removed leaves nothing to whoever gets the name later."""

from __future__ import annotations

from menuwatch.accounts import saved_views as views
from menuwatch.accounts import users
from menuwatch.accounts.model import Role
from menuwatch.db.pool import Pool
from tests.users_fixture import NO_PASSWORD


async def test_saved_views_go_with_their_owner_and_those_of_others_stay(pool: Pool) -> None:
    async with pool.connection() as conn, conn.transaction():
        marta = await users.insert(conn, "marta", Role.VIEWER, NO_PASSWORD, must_change=False)
        assert marta is not None
        for owner in ("marta", "jonas"):
            await conn.execute(
                "INSERT INTO saved_views (owner, screen, name, query) VALUES (%s, '/tasks', 'mine', 'q=a')", [owner]
            )
        await users.remove_user(conn, marta.id, by=None)
        assert await views.list_views(conn, "marta", "/tasks") == []
        assert [one.name for one in await views.list_views(conn, "jonas", "/tasks")] == ["mine"]
