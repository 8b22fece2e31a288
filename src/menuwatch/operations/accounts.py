"""Users: adding, changing and removing them. Nobody gives what they have not got themselves, and one admin always stays.

`by` is who asks; None is somebody at the terminal, who has the database anyway.
"""

from __future__ import annotations

import difflib
from typing import Any

from psycopg import AsyncConnection

from menuwatch.accounts import passwords as rules
from menuwatch.accounts import store as accounts
from menuwatch.accounts.model import ALLOWED, Permission, Principal, Role, User
from menuwatch.accounts.passwords import Passwords
from menuwatch.accounts.secrets import one_time_password
from menuwatch.core.errors import Refused
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Pool
from menuwatch.operations import audit, views
from menuwatch.operations.refusals import Conflict, NotFound, Unusable

log = get_logger(__name__)

FIRST_NAME = "admin"

Conn = AsyncConnection[Any]


class Overreach(Refused):
    """They ask for more than they may do themselves. `permission` is the first of what they lack."""

    def __init__(self, message: str, permission: Permission) -> None:
        super().__init__(message)
        self.permission = permission


def require(by: Principal | None, wanted: frozenset[Permission], what: str) -> None:
    """Raises Overreach where `what` would give, or lets them get at, something that they may not do themselves."""
    lacking = sorted(wanted - by.permissions) if by is not None else []
    if lacking:
        raise Overreach(f"{what} takes every permission that goes with it, and you lack {lacking[0]}", lacking[0])


async def first_admin(pool: Pool, passwords: Passwords | None = None) -> str | None:
    """Where there is no user yet, makes the user `admin` and returns the password for its first login, after which it must be changed.
    The password is nowhere else. None where there is a user already; of several servers that start at once one makes it."""
    async with pool.connection() as conn:
        if await accounts.any_user(conn):
            return None
    password = one_time_password()
    hashed = await (passwords or Passwords()).hash(password)
    async with pool.connection() as conn, conn.transaction():
        await accounts.lock_users(conn)
        if await accounts.any_user(conn):
            return None
        made = await accounts.insert(conn, FIRST_NAME, Role.ADMIN, hashed, must_change=True)
        assert made is not None, "there was no user"
        log.info("the first user is made", action="first_admin_made", user_id=made.id)
        await audit.record(conn, "user_added", ("user", made.name), role=made.role)
    return password


async def page(conn: Conn, *, after: int = 0, limit: int = 50) -> list[User]:
    """Users by number, those after `after`."""
    return await accounts.listed(conn, after=after, limit=limit)


async def one(conn: Conn, user_id: int) -> User:
    """One user; raises NotFound."""
    found = await accounts.by_id(conn, user_id)
    if found is None:
        raise NotFound(f"user {user_id} does not exist")
    return found


async def lock(conn: Conn, user_id: int) -> User:
    """One user; nobody else changes users until the transaction ends. Raises NotFound."""
    await accounts.lock_users(conn)
    return await one(conn, user_id)


async def find(conn: Conn, text: str) -> User:
    """The user of that name; raises NotFound with near names."""
    found = await accounts.by_name(conn, text)
    if found is None:
        names = [user.name for user in await accounts.listed(conn)]
        near = difflib.get_close_matches(text, names, n=3)
        there = f"did you mean {' or '.join(near)}?" if near else f"there is {', '.join(names) or 'none yet'}"
        raise NotFound(f"user {text!r} does not exist: {there}")
    return found


async def add(
    pool: Pool,
    name: str,
    role: Role,
    *,
    passwords: Passwords,
    password: str | None = None,
    must_change: bool = True,
    by: Principal | None,
) -> tuple[User, str]:
    """A new user with that password, or with one made for the first login; returns both. No connection is held while it is hashed,
    which takes long on purpose. Raises Unusable, Conflict, Overreach."""
    if not accounts.NAME.fullmatch(name):
        raise Unusable(
            "name", "a user's name is 1 to 64 of A-Z, a-z, 0-9 and . _ @ + -, and begins with a letter or digit"
        )
    require(by, ALLOWED[role], f"adding a user of role {role}")
    given = one_time_password() if password is None else _checked(password, name)
    hashed = await passwords.hash(given)
    async with pool.connection(timeout=10) as conn, conn.transaction():
        made = await accounts.insert(conn, name, role, hashed, must_change=must_change)
        if made is None:
            raise Conflict(f"there is a user {name!r} already")
        await audit.record(conn, "user_added", ("user", made.name), role=made.role)
    return made, given


def _checked(password: str, name: str) -> str:
    try:
        rules.check(password, name=name)
    except Refused as error:
        raise Unusable("password", str(error)) from None
    return password


async def _guarded(conn: Conn, user_id: int, by: Principal | None, what: str, *, leaves: bool) -> User:
    """The user; nobody else changes users until the transaction ends. `leaves`: it would be no admin
    afterwards that can log in; raises Conflict for the last one."""
    await accounts.lock_users(conn)
    admins = await accounts.admins(conn)
    user = await one(conn, user_id)
    require(by, ALLOWED[user.role], f"{what} a user of role {user.role}")
    if leaves and admins == {user_id}:
        raise Conflict(f"{user.name} is the last admin that can log in: make another one first")
    return user


async def set_role(conn: Conn, user_id: int, role: Role, *, by: Principal | None) -> User:
    """Gives another role, at once in force for its sessions and tokens. Raises NotFound, Conflict, Overreach."""
    require(by, ALLOWED[role], f"giving the role {role}")
    user = await _guarded(conn, user_id, by, "changing", leaves=role is not Role.ADMIN)
    if user.role is not role:
        await accounts.set_role(conn, user_id, role)
        await audit.record(conn, "user_role_changed", ("user", user.name), before=user.role, after=role)
    return await one(conn, user_id)


async def disable(conn: Conn, user_id: int, *, by: Principal | None) -> User:
    """Ends its sessions, and lets neither it nor its tokens in. Raises NotFound, Conflict, Overreach."""
    user = await _guarded(conn, user_id, by, "disabling", leaves=True)
    await accounts.set_disabled(conn, user_id, True)
    await accounts.close_sessions(conn, user_id)
    await audit.record(conn, "user_disabled", ("user", user.name))
    return await one(conn, user_id)


async def enable(conn: Conn, user_id: int, *, by: Principal | None) -> User:
    """Lets it in again, and its tokens. Raises NotFound, Overreach."""
    user = await _guarded(conn, user_id, by, "enabling", leaves=False)
    await accounts.set_disabled(conn, user_id, False)
    await audit.record(conn, "user_enabled", ("user", user.name))
    return await one(conn, user_id)


async def remove(conn: Conn, user_id: int, *, by: Principal | None) -> User:
    """Removes it with its sessions, tokens and saved views; returns it as it was. Raises NotFound, Conflict, Overreach."""
    user = await _guarded(conn, user_id, by, "removing", leaves=True)
    await accounts.delete(conn, user_id)
    await views.remove_all(conn, user.name)
    await audit.record(conn, "user_removed", ("user", user.name), role=user.role)
    return user


async def reset_password(
    pool: Pool, user_id: int, *, passwords: Passwords, password: str | None = None, by: Principal | None
) -> tuple[User, str]:
    """Another password, which must be changed at the next login: that one, or one that is made. Its sessions end. No
    connection is held while it is hashed. Raises NotFound, Unusable, Overreach."""
    if by is not None and by.user_id == user_id:
        # Who finds a browser that is logged in does not come to have the account with it.
        raise Conflict("change your own password with the current one: POST /api/session/password")
    async with pool.connection(timeout=10) as conn:
        name = (await one(conn, user_id)).name
    given = one_time_password() if password is None else _checked(password, name)
    hashed = await passwords.hash(given)
    async with pool.connection(timeout=10) as conn, conn.transaction():
        user = await _guarded(conn, user_id, by, "giving another password to", leaves=False)
        await accounts.set_password(conn, user_id, hashed, must_change=True)
        await accounts.close_sessions(conn, user_id)
        await audit.record(conn, "user_password_reset", ("user", user.name))
        return await one(conn, user_id), given
