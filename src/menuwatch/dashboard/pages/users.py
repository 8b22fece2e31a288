"""Users: who may log in, and as what. Passwords are shown once, to whoever made them, and are nowhere else."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Path, Request
from starlette.responses import Response

from menuwatch.accounts.model import ALLOWED, Permission, Principal, Role, User
from menuwatch.accounts.passwords import Passwords
from menuwatch.dashboard import screen
from menuwatch.dashboard.pages.tokens import paged
from menuwatch.operations import accounts
from menuwatch.operations.refusals import Conflict, Unusable
from menuwatch.web import paging
from menuwatch.web.auth import allowed
from menuwatch.web.forms import Form as Filled
from menuwatch.web.system import Reading, Sys, Writing

router = APIRouter(prefix="/users", dependencies=[allowed(Permission.ACCOUNTS)])

SHOWN = 50
Who = Annotated[Principal, allowed(Permission.ACCOUNTS)]
UserPath = Annotated[int, Path(ge=1, le=2_147_483_647)]
ROLES = {
    Role.VIEWER: ("Viewer", "looks at everything but accounts"),
    Role.OPERATOR: ("Operator", "also changes everything but accounts"),
    Role.ADMIN: ("Admin", "also users, tokens of others and the audit"),
}
"""What each role is called, and what it may do."""


@router.get("")
async def listed(request: Request, conn: Reading, cursor: str = "") -> Response:
    """Everybody who may log in."""
    after = screen.place(request, cursor, tuple[int])
    found = await accounts.page(conn, after=after[0] if after else 0, limit=SHOWN + 1)
    shown = found[:SHOWN]
    more = paging.encode(shown[-1].id) if len(found) > SHOWN else None
    context = {
        "shown": shown,
        "roles": ROLES,
        "next_href": screen.query(request, cursor=more) if more else None,
        "first_href": screen.query(request) if after else None,
    }
    return screen.show(request, "users/list.html", context, live="accounts")


@router.get("/add")
async def adding(request: Request) -> Response:
    """The form for one."""
    return _adding(request, Filled({"role": "viewer"}))


def _adding(request: Request, form: Filled, *, status: int = 200) -> Response:
    return screen.show(request, "users/add.html", {"form": form, "roles": ROLES}, status=status)


@router.post("/add")
async def add(
    request: Request,
    system: Sys,
    who: Who,
    name: Annotated[str, Form(max_length=200)] = "",
    role: Annotated[str, Form(max_length=20)] = "",
) -> Response:
    """With a password for the first login, which is shown once."""
    form = Filled({"name": name, "role": role})
    chosen = form.one_of("role", [str(one) for one in Role])
    if chosen is None:
        form.refuse("role", "choose what they may do")
    elif form.ok:
        try:
            passwords = Passwords.of(system.settings)
            made, password = await accounts.add(system.pool, name.strip(), Role(chosen), passwords=passwords, by=who)
        except Unusable as error:
            form.refuse(error.field, str(error))
        except Conflict as error:
            form.refuse("name", str(error))
        else:
            return _once(request, made, password, "is added")
    return _adding(request, form, status=422)


def _once(request: Request, user: User, password: str, what: str) -> Response:
    context = {"user": user, "password": password, "what": what}
    return screen.show(request, "users/once.html", context)


@router.get("/{user_id}")
async def one(request: Request, conn: Reading, who: Who, user_id: UserPath, cursor: str = "") -> Response:
    """One user, with their tokens."""
    user = await accounts.one(conn, user_id)
    context = {
        "user": user,
        "roles": ROLES,
        "permissions": sorted(ALLOWED[user.role]),
        **await paged(request, conn, cursor, user_id=user_id),
        "own": user.id == who.user_id,
    }
    return screen.show(request, "users/one.html", context, live="accounts")


@router.post("/{user_id}/role")
async def set_role(
    request: Request, conn: Writing, who: Who, user_id: UserPath, role: Annotated[str, Form(max_length=20)] = ""
) -> Response:
    """Another role, in force at once."""
    if role not in list(Role):
        raise Unusable("role", f"{role[:20]!r} is no role: viewer, operator or admin")
    user = await accounts.set_role(conn, user_id, Role(role), by=who)
    return screen.back(request, f"/users/{user_id}", f"{user.name} is now {user.role}, at once.")


@router.post("/{user_id}/disable")
async def disable(request: Request, conn: Writing, who: Who, user_id: UserPath) -> Response:
    """Lets them in no more."""
    user = await accounts.disable(conn, user_id, by=who)
    said = f"{user.name} is disabled: sessions have ended, and tokens let nobody in."
    return screen.back(request, f"/users/{user_id}", said)


@router.post("/{user_id}/enable")
async def enable(request: Request, conn: Writing, who: Who, user_id: UserPath) -> Response:
    """Lets them in again."""
    user = await accounts.enable(conn, user_id, by=who)
    return screen.back(request, f"/users/{user_id}", f"{user.name} may log in again.")


@router.post("/{user_id}/password")
async def reset_password(request: Request, system: Sys, who: Who, user_id: UserPath) -> Response:
    """A password for the next login, which is shown once."""
    passwords = Passwords.of(system.settings)
    user, password = await accounts.reset_password(system.pool, user_id, passwords=passwords, by=who)
    return _once(request, user, password, "has another password, and their sessions have ended")


@router.get("/{user_id}/password")
async def after_reset(request: Request, user_id: UserPath) -> Response:
    """Where a page that is shown once was: back to the user."""
    return screen.elsewhere(request, f"/users/{user_id}")


@router.post("/{user_id}/remove")
async def remove(request: Request, conn: Writing, who: Who, user_id: UserPath) -> Response:
    """With sessions and tokens."""
    user = await accounts.remove(conn, user_id, by=who)
    said = f"{user.name} is removed, with sessions and tokens. What they did stays on record."
    return screen.back(request, "/users", said)
