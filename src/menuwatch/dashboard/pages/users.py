"""Users and their roles. Passwords are shown once, to the admin who generated them, and never again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Path, Request
from starlette.responses import Response

from menuwatch.accounts import users
from menuwatch.accounts.model import ALLOWED, Permission, Principal, Role, User
from menuwatch.accounts.passwords import Passwords
from menuwatch.core.errors import Conflict, InvalidField
from menuwatch.dashboard import screen
from menuwatch.dashboard.pages.tokens import paged
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/users", dependencies=[require(Permission.ACCOUNTS)])

SHOWN = 50
Who = Annotated[Principal, require(Permission.ACCOUNTS)]
UserPath = Annotated[int, Path(ge=1, le=2_147_483_647)]
ROLES = {
    Role.VIEWER: ("Viewer", "read-only, without accounts"),
    Role.OPERATOR: ("Operator", "plus all changes, except accounts"),
    Role.ADMIN: ("Admin", "plus users, all tokens, audit log"),
}
"""Label and permissions of each role."""


@router.get("")
async def listed(request: Request, conn: ReadConn, cursor: str = "") -> Response:
    """All users."""
    after = screen.parse_number_cursor(request, cursor)
    found = await users.list_users(conn, after=after or 0, limit=SHOWN + 1)
    shown, links = screen.paginate(request, found, SHOWN, "id")
    context = {
        "shown": shown,
        "roles": ROLES,
        **links,
    }
    return screen.render(request, "users/list.html", context, live="accounts")


@router.get("/add")
async def adding(request: Request) -> Response:
    """The form for one."""
    return _adding(request, FormInput({"role": "viewer"}))


def _adding(request: Request, form: FormInput, *, status: int = 200) -> Response:
    return screen.render(request, "users/add.html", {"form": form, "roles": ROLES}, status=status)


@router.post("/add")
async def add(
    request: Request, form: Annotated[FormInput, fields("name", "role", longest=200)], system: AppDep, who: Who
) -> Response:
    """With a password for the first login, which is shown once."""
    chosen = form.parse_choice("role", [str(one) for one in Role])
    if chosen is None:
        form.add_error("role", "choose a role")
    elif form.ok:
        try:
            passwords = Passwords.of(system.settings)
            made, password = await users.add_user(
                system.pool, form.value("name").strip(), Role(chosen), passwords=passwords, by=who
            )
        except InvalidField as error:
            form.add_error(error.field, str(error))
        except Conflict as error:
            form.add_error("name", str(error))
        else:
            return _once(request, made, password, "is added")
    return _adding(request, form, status=422)


def _once(request: Request, user: User, password: str, what: str) -> Response:
    context = {"user": user, "password": password, "what": what}
    return screen.render(request, "users/once.html", context)


@router.get("/{user_id}")
async def one(request: Request, conn: ReadConn, who: Who, user_id: UserPath, cursor: str = "") -> Response:
    """One user, with their tokens."""
    user = await users.get_user(conn, user_id)
    context = {
        "user": user,
        "roles": ROLES,
        "permissions": sorted(ALLOWED[user.role]),
        **await paged(request, conn, cursor, user_id=user_id),
        "own": user.id == who.user_id,
    }
    return screen.render(request, "users/one.html", context, live="accounts")


@router.post("/{user_id}/role")
async def set_role(
    request: Request, conn: WriteConn, who: Who, user_id: UserPath, role: Annotated[str, Form(max_length=20)] = ""
) -> Response:
    """Changes the role of a user, effective immediately."""
    if role not in list(Role):
        raise InvalidField("role", f"{role[:20]!r} is not a role: use viewer, operator or admin")
    user = await users.set_role(conn, user_id, Role(role), by=who)
    return screen.flash_to(request, f"/users/{user_id}", f"{user.name} now has the role {user.role}.")


@router.post("/{user_id}/disable")
async def disable(request: Request, conn: WriteConn, who: Who, user_id: UserPath) -> Response:
    """Lets them in no more."""
    user = await users.disable(conn, user_id, by=who)
    said = f"{user.name} is disabled: all sessions have ended and all tokens stopped working."
    return screen.flash_to(request, f"/users/{user_id}", said, undo=screen.Undo(f"/users/{user_id}/enable"))


@router.post("/{user_id}/enable")
async def enable(request: Request, conn: WriteConn, who: Who, user_id: UserPath) -> Response:
    """Lets them in again."""
    user = await users.enable(conn, user_id, by=who)
    return screen.flash_to(request, f"/users/{user_id}", f"{user.name} is enabled.")


@router.post("/{user_id}/password")
async def reset_password(request: Request, system: AppDep, who: Who, user_id: UserPath) -> Response:
    """A password for the next login, which is shown once."""
    passwords = Passwords.of(system.settings)
    user, password = await users.reset_password(system.pool, user_id, passwords=passwords, by=who)
    return _once(request, user, password, "has a new password; all sessions have ended")


@router.get("/{user_id}/password")
async def after_reset(request: Request, user_id: UserPath) -> Response:
    """Where a page that is shown once was: back to the user."""
    return screen.redirect(request, f"/users/{user_id}")


@router.post("/{user_id}/remove")
async def remove(request: Request, conn: WriteConn, who: Who, user_id: UserPath) -> Response:
    """With sessions and tokens."""
    user = await users.remove_user(conn, user_id, by=who)
    said = f"{user.name} was removed with all sessions and tokens. The audit log is kept."
    return screen.flash_to(request, "/users", said)
