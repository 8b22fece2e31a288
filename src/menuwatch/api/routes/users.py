"""Users: list, add, change, remove."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from menuwatch.accounts.model import Permission, Principal
from menuwatch.accounts.passwords import Passwords
from menuwatch.api import paging, versions
from menuwatch.api.answers import answer, page, tag_of
from menuwatch.api.schemas.accounts import NewUser, User, UserChange, UserPage, UserPath, WithPassword
from menuwatch.api.schemas.common import PageQuery
from menuwatch.api.versions import IfMatch
from menuwatch.operations import accounts
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading, Sys, Writing

router = APIRouter(prefix="/api/users", tags=["accounts"], dependencies=[allowed(Permission.ACCOUNTS)])

Who = Annotated[Principal, allowed(Permission.ACCOUNTS)]
_UNKEPT = {"Cache-Control": "no-store"}


@router.get("", response_model=UserPage, summary="List users")
async def list_users(request: Request, conn: Reading, query: Annotated[PageQuery, Query()]) -> Response:
    """Everybody who may log in, by number."""
    mark = paging.mark("users")
    after = paging.decode(query.cursor, mark, tuple[int])[0] if query.cursor is not None else 0
    found = await accounts.page(conn, after=after, limit=query.limit + 1)
    shown = found[: query.limit]
    return page(request, shown, paging.encode(mark, shown[-1].id) if len(found) > query.limit else None)


@router.post("", response_model=WithPassword, status_code=201, summary="Add a user")
async def add_user(request: Request, system: Sys, who: Who, new: NewUser) -> Response:
    """With a password for the first login, which must be changed then. Nobody can give a role that may do more than they."""
    passwords = Passwords.of(system.settings)
    user, password = await accounts.add(system.pool, new.name, new.role, passwords=passwords, by=who)
    body = {"user": user, "one_time_password": password}
    return answer(request, body, status=201, headers={**_UNKEPT, "Location": f"/api/users/{user.id}"})


@router.get("/{user_id}", response_model=User, summary="One user")
async def get_user(request: Request, conn: Reading, user_id: UserPath) -> Response:
    """One user."""
    return answer(request, await accounts.one(conn, user_id))


@router.patch("/{user_id}", response_model=User, summary="Change a user")
async def change_user(
    request: Request, conn: Writing, who: Who, user_id: UserPath, change: UserChange, if_match: IfMatch = None
) -> Response:
    """Another role, or no login any more; in force at once, also for sessions and tokens. One admin always stays."""
    user = await accounts.lock(conn, user_id)
    versions.check(if_match, user, f"user {user.name}")
    if change.role is not None:
        user = await accounts.set_role(conn, user_id, change.role, by=who)
    if change.disabled is not None:
        switch = accounts.disable if change.disabled else accounts.enable
        user = await switch(conn, user_id, by=who)
    return answer(request, user, headers={"ETag": tag_of(user)})


@router.delete("/{user_id}", response_model=User, summary="Remove a user")
async def remove_user(request: Request, conn: Writing, who: Who, user_id: UserPath) -> Response:
    """With sessions and tokens; answers with the user as it was. What they did stays on record."""
    return answer(request, await accounts.remove(conn, user_id, by=who))


@router.post("/{user_id}/password", response_model=WithPassword, summary="Give a user another password")
async def reset_user_password(request: Request, system: Sys, who: Who, user_id: UserPath) -> Response:
    """For who has lost theirs: one for the next login. Their sessions end; their tokens go on until they are revoked."""
    passwords = Passwords.of(system.settings)
    user, password = await accounts.reset_password(system.pool, user_id, passwords=passwords, by=who)
    return answer(request, {"user": user, "one_time_password": password}, headers=_UNKEPT)
