"""Users: list, add, change, remove."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from msgspec import Struct
from pydantic import Field

from menuwatch.accounts import users
from menuwatch.accounts.model import Permission, Principal, Role, User
from menuwatch.accounts.passwords import Passwords
from menuwatch.api.inputs import INTEGER_MAX, Input, PageQuery, Text
from menuwatch.api.paging import Keyset
from menuwatch.api.responses import IfMatch, answer, check_if_match, returns, returns_page, tag_of
from menuwatch.core.shapes import doc
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn, WriteConn

UserPath = Annotated[int, Path(ge=1, le=INTEGER_MAX, description="Id of the user.")]


class NewUser(Input):
    """A user to create."""

    name: Annotated[Text, Field(min_length=1, max_length=64)] = Field(
        description="User name: 1 to 64 of A-Z, a-z, 0-9 and `. _ @ + -`; unique, case-insensitive."
    )
    role: Role = Field(description="Role of the user; it cannot have more permissions than your own.")


class UserChange(Input):
    """Changes to a user; omitted fields keep their value."""

    role: Role | None = Field(None, description="New role, effective immediately.")
    disabled: bool | None = Field(None, description="Whether to disable the user and their tokens.")


class UserWithPassword(Struct, kw_only=True, frozen=True):
    """A user with a one-time password for the next login."""

    user: User
    one_time_password: Annotated[str, doc("Returned only once; it must be changed at the first login.")]


router = APIRouter(prefix="/api/users", tags=["accounts"], dependencies=[require(Permission.ACCOUNTS)])

Who = Annotated[Principal, require(Permission.ACCOUNTS)]
_NO_STORE = {"Cache-Control": "no-store"}


@router.get("", **returns_page(User), summary="List users")
async def list_users(request: Request, conn: ReadConn, query: Annotated[PageQuery, Query()]) -> Response:
    """Lists all users by id."""
    keys = Keyset(query, int, "users")
    rows = await users.list_users(conn, after=keys.after or 0, limit=keys.limit)
    return keys.page(request, rows, lambda user: user.id)


@router.post("", **returns(UserWithPassword, 201), summary="Create a user")
async def add_user(request: Request, system: AppDep, who: Who, new: NewUser) -> Response:
    """Returns a one-time password, which must be changed at the first login. The new role cannot have more permissions than your
    own."""
    passwords = Passwords.of(system.settings)
    user, password = await users.add_user(system.pool, new.name, new.role, passwords=passwords, by=who)
    body = UserWithPassword(user=user, one_time_password=password)
    return answer(request, body, status=201, headers={**_NO_STORE, "Location": f"/api/users/{user.id}"})


@router.get("/{user_id}", **returns(User), summary="Get a user")
async def get_user(request: Request, conn: ReadConn, user_id: UserPath) -> Response:
    """Returns one user."""
    return answer(request, await users.get_user(conn, user_id))


@router.patch("/{user_id}", **returns(User), summary="Change a user")
async def change_user(
    request: Request, conn: WriteConn, who: Who, user_id: UserPath, change: UserChange, if_match: IfMatch = None
) -> Response:
    """Changes role or state, effective immediately for sessions and tokens too. The last enabled admin cannot be disabled or
    demoted."""
    user = await users.lock_user(conn, user_id)
    check_if_match(if_match, user, f"user {user.name}")
    if change.role is not None:
        user = await users.set_role(conn, user_id, change.role, by=who)
    if change.disabled is not None:
        switch = users.disable if change.disabled else users.enable
        user = await switch(conn, user_id, by=who)
    return answer(request, user, headers={"ETag": tag_of(user)})


@router.delete("/{user_id}", **returns(User), summary="Delete a user")
async def remove_user(request: Request, conn: WriteConn, who: Who, user_id: UserPath) -> Response:
    """Deletes the user with their sessions and tokens; returns the deleted user. Their audit entries stay."""
    return answer(request, await users.remove_user(conn, user_id, by=who))


@router.post("/{user_id}/password", **returns(UserWithPassword), summary="Reset a user's password")
async def reset_user_password(request: Request, system: AppDep, who: Who, user_id: UserPath) -> Response:
    """Returns a one-time password for the next login. The user's sessions end; their tokens stay valid until they are revoked."""
    passwords = Passwords.of(system.settings)
    user, password = await users.reset_password(system.pool, user_id, passwords=passwords, by=who)
    return answer(request, UserWithPassword(user=user, one_time_password=password), headers=_NO_STORE)
