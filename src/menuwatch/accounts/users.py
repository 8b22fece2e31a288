"""Users: add, change, remove. A principal cannot grant a permission that it lacks, and the last admin cannot be removed.

`by` is the principal of the request; None for the command line, which has database access anyway.
"""

from __future__ import annotations

import difflib
import re
from typing import Any

from msgspec import convert
from psycopg import AsyncConnection

from menuwatch.accounts import audit, credentials, saved_views
from menuwatch.accounts.model import ALLOWED, Permission, Principal, Role, User
from menuwatch.accounts.passwords import Passwords
from menuwatch.accounts.secrets import one_time_password
from menuwatch.core.errors import Conflict, InvalidField, NotFound, Refused
from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.db.pool import Pool
from menuwatch.db.query import fetch_all, fetch_one

log = get_logger(__name__)
_q = sql.load(__package__)

FIRST_NAME = "admin"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
"""What a user may be called: nothing that could end a header, and no letters that look like others."""
_ALL = 2**31 - 1

Conn = AsyncConnection[Any]


class Overreach(Refused):
    """The request would grant more than the principal may do. `permission` is the first that it lacks."""

    def __init__(self, message: str, permission: Permission) -> None:
        super().__init__(message)
        self.permission = permission


def require_permissions(by: Principal | None, required: frozenset[Permission], action: str) -> None:
    """Raises Overreach unless `by` has all permissions that the action grants or gives access to."""
    lacking = sorted(required - by.permissions) if by is not None else []
    if lacking:
        raise Overreach(f"{action} requires all permissions of that role; you lack {lacking[0]}", lacking[0])


async def _any_user(conn: Conn) -> bool:
    row = await (await conn.execute(_q.any_user)).fetchone()
    return row is not None and bool(row[0])


async def insert(conn: Conn, name: str, role: Role, password_hash: str, *, must_change: bool = True) -> User | None:
    """A new user; None if the name is taken."""
    values = {"name": name, "role": role, "password_hash": password_hash, "must_change": must_change}
    user = await fetch_one(conn, _q.insert_user, values)
    if user is None:
        return None
    await audit.record(conn, "user_added", ("user", user["name"]), role=role)
    return convert(user, User)


async def first_admin(pool: Pool, passwords: Passwords | None = None, *, must_change: bool = True) -> str | None:
    """If there is no user yet, creates the user `admin` and returns the password for its first login, after which it must be changed
    (not in a demo). The password is nowhere else. None if there is a user already; of several servers that start at once one creates
    it."""
    async with pool.connection() as conn:
        if await _any_user(conn):
            return None
    password = one_time_password()
    password_hash = await (passwords or Passwords()).hash(password)
    async with pool.connection() as conn, conn.transaction():
        await credentials.lock_users(conn)
        if await _any_user(conn):
            return None
        user = await insert(conn, FIRST_NAME, Role.ADMIN, password_hash, must_change=must_change)
        assert user is not None, "there was no user"
        log.info("first user created", action="first_admin_made", user_id=user.id)
    return password


async def list_users(
    conn: Conn, *, after: int = 0, limit: int = _ALL, user_id: int | None = None, name: str | None = None
) -> list[User]:
    """Users by id, after the one with the id `after`; `name` is case-insensitive."""
    values = {"after": after, "limit": limit, "id": user_id, "name": name}
    return convert(await fetch_all(conn, _q.users, values), list[User])


async def get_user(conn: Conn, user_id: int) -> User:
    """Raises NotFound."""
    users = await list_users(conn, user_id=user_id)
    if not users:
        raise NotFound(f"user {user_id} does not exist")
    return users[0]


async def lock_user(conn: Conn, user_id: int) -> User:
    """The user; locks all users until the transaction ends. Raises NotFound."""
    await credentials.lock_users(conn)
    return await get_user(conn, user_id)


async def find_user(conn: Conn, name: str) -> User:
    """The user of that name; raises NotFound with near names."""
    users = await list_users(conn, name=name)
    if not users:
        names = [user.name for user in await list_users(conn)]
        near = difflib.get_close_matches(name, names, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"existing users: {', '.join(names) or 'none'}"
        raise NotFound(f"user {name!r} does not exist: {hint}")
    return users[0]


async def add_user(
    pool: Pool, name: str, role: Role, *, passwords: Passwords, by: Principal | None
) -> tuple[User, str]:
    """Creates a user with a one-time password; returns both. No connection is held while it is hashed, which takes long on
    purpose. Raises InvalidField, Conflict, Overreach."""
    if not NAME.fullmatch(name):
        raise InvalidField(
            "name",
            "a user name must be 1 to 64 characters from A-Z, a-z, 0-9 and . _ @ + -, and begin with a letter or digit",
        )
    require_permissions(by, ALLOWED[role], f"adding a user of role {role}")
    password = one_time_password()
    password_hash = await passwords.hash(password)
    async with pool.connection(timeout=10) as conn, conn.transaction():
        user = await insert(conn, name, role, password_hash)
    if user is None:
        raise Conflict(f"user {name!r} already exists")
    return user, password


async def _guarded(conn: Conn, user_id: int, by: Principal | None, action: str, *, leaves: bool) -> User:
    """The user, with all users locked until the transaction ends. `leaves`: the change removes an admin that can log in; raises
    Conflict for the last one."""
    user = await lock_user(conn, user_id)
    require_permissions(by, ALLOWED[user.role], f"{action} a user of role {user.role}")
    admins = {row[0] for row in await (await conn.execute(_q.admins)).fetchall()}
    if leaves and admins == {user_id}:
        raise Conflict(f"{user.name} is the last admin who can log in: create another one first")
    return user


async def set_role(conn: Conn, user_id: int, role: Role, *, by: Principal | None) -> User:
    """Changes the role, effective immediately for sessions and tokens. Raises NotFound, Conflict, Overreach."""
    require_permissions(by, ALLOWED[role], f"granting the role {role}")
    user = await _guarded(conn, user_id, by, "changing", leaves=role is not Role.ADMIN)
    if user.role is not role:
        await conn.execute(_q.set_role, {"id": user_id, "role": role})
        await audit.record(conn, "user_role_changed", ("user", user.name), before=user.role, after=role)
    return await get_user(conn, user_id)


async def disable(conn: Conn, user_id: int, *, by: Principal | None) -> User:
    """Disables the user and their tokens, and ends their sessions. Raises NotFound, Conflict, Overreach."""
    user = await _guarded(conn, user_id, by, "disabling", leaves=True)
    await conn.execute(_q.set_disabled, {"id": user_id, "disabled": True})
    await credentials.close_sessions(conn, user_id)
    await audit.record(conn, "user_disabled", ("user", user.name))
    return await get_user(conn, user_id)


async def enable(conn: Conn, user_id: int, *, by: Principal | None) -> User:
    """Enables the user and their tokens. Raises NotFound, Overreach."""
    user = await _guarded(conn, user_id, by, "enabling", leaves=False)
    await conn.execute(_q.set_disabled, {"id": user_id, "disabled": False})
    await audit.record(conn, "user_enabled", ("user", user.name))
    return await get_user(conn, user_id)


async def remove_user(conn: Conn, user_id: int, *, by: Principal | None) -> User:
    """Removes the user with sessions, tokens and saved views; returns the user as before. Raises NotFound, Conflict, Overreach."""
    user = await _guarded(conn, user_id, by, "removing", leaves=True)
    await conn.execute(_q.delete_user, {"id": user_id})
    await saved_views.delete_views_of(conn, user.name)
    await audit.record(conn, "user_removed", ("user", user.name), role=user.role)
    return user


async def reset_password(pool: Pool, user_id: int, *, passwords: Passwords, by: Principal | None) -> tuple[User, str]:
    """Sets a one-time password and ends the user's sessions; returns both. No connection is held while it is hashed. Raises NotFound,
    Conflict, Overreach."""
    if by is not None and by.user_id == user_id:
        # Access to a browser that is logged in must not give access to the account.
        raise Conflict("change your own password with the current one: POST /api/session/password")
    async with pool.connection(timeout=10) as conn:
        await get_user(conn, user_id)
    password = one_time_password()
    password_hash = await passwords.hash(password)
    async with pool.connection(timeout=10) as conn, conn.transaction():
        user = await _guarded(conn, user_id, by, "resetting the password of", leaves=False)
        await credentials.set_password(conn, user_id, password_hash, must_change=True)
        await credentials.close_sessions(conn, user_id)
        await audit.record(conn, "user_password_reset", ("user", user.name))
        return await get_user(conn, user_id), password
