"""Login, logout, and the current user."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from msgspec import Struct
from pydantic import Field

from menuwatch.accounts.model import Permission, Principal, Role
from menuwatch.api.inputs import Input
from menuwatch.api.responses import answer, returns
from menuwatch.core.shapes import doc
from menuwatch.web import sessions
from menuwatch.web.auth import signed_in
from menuwatch.web.csrf import same_site_or_program
from menuwatch.web.dependencies import AppDep


class LogIn(Input):
    """User name and password."""

    name: Annotated[str, Field(max_length=200)] = Field(description="User name, case-insensitive.")
    password: Annotated[str, Field(max_length=1000)] = Field(description="The password.")


class NewPassword(Input):
    """The current and the new password."""

    current: Annotated[str, Field(max_length=1000)] = Field(description="The current password.")
    new: Annotated[str, Field(max_length=1000)] = Field(
        description="The new password: 12 to 200 characters, hard to guess."
    )


class CurrentUser(Struct, kw_only=True, frozen=True):
    """The authenticated user and their permissions."""

    name: Annotated[str, doc("User name; for a token the name of its owner.")]
    role: Role
    permissions: Annotated[list[Permission], doc("Permissions of this session or token at this moment.")]
    user_id: Annotated[int | None, doc("Null if the principal has no account.")]
    token_id: Annotated[int | None, doc("Id of the token that was sent; null for a login session.")]
    must_change_password: Annotated[
        bool,
        doc(
            "True while the user has a temporary password: until they choose their own, every other request is refused."
        ),
    ]

    @classmethod
    def of(cls, principal: Principal) -> CurrentUser:
        return cls(
            name=principal.name,
            role=principal.role,
            permissions=sorted(principal.permissions),
            user_id=principal.user_id,
            token_id=principal.token_id,
            must_change_password=principal.must_change_password,
        )


router = APIRouter(prefix="/api/session", tags=["accounts"])

_NO_STORE = {"Cache-Control": "no-store"}


@router.post("", **returns(CurrentUser), summary="Log in", dependencies=[Depends(same_site_or_program)])
async def log_in(request: Request, system: AppDep, credentials: LogIn) -> Response:
    """Creates a session and sets its cookie, for browsers. Programs should use a token."""
    session = await sessions.log_in(request, credentials.name, credentials.password)
    response = answer(request, CurrentUser.of(session.principal), headers=_NO_STORE)
    session.put(response, system.settings)
    return response


@router.get("", **returns(CurrentUser), summary="Get the current user and permissions")
async def show_session(request: Request, who: Annotated[Principal, signed_in]) -> Response:
    """Returns the principal of the session or token that was sent."""
    return answer(request, CurrentUser.of(who))


@router.delete("", status_code=204, summary="Log out")
async def log_out(request: Request, who: Annotated[Principal, signed_in]) -> Response:
    """Ends the session; its cookie becomes invalid."""
    response = Response(status_code=204, headers=_NO_STORE)
    await sessions.log_out(request, response)
    return response


@router.post("/password", **returns(CurrentUser), summary="Change your password")
async def change_password(
    request: Request, system: AppDep, who: Annotated[Principal, signed_in], passwords: NewPassword
) -> Response:
    """Ends all your other sessions; this one continues with a new cookie."""
    session = await sessions.change_password(request, passwords.current, passwords.new)
    response = answer(request, CurrentUser.of(session.principal), headers=_NO_STORE)
    session.put(response, system.settings)
    return response
