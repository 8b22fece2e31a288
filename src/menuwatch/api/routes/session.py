"""Logging in and out, and who one is."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from menuwatch.accounts.model import Principal
from menuwatch.api.answers import answer
from menuwatch.api.schemas.accounts import LogIn, NewPassword, Who
from menuwatch.web import sessions
from menuwatch.web.auth import signed_in
from menuwatch.web.csrf import same_site_or_program
from menuwatch.web.system import Sys

router = APIRouter(prefix="/api/session", tags=["accounts"])

_UNKEPT = {"Cache-Control": "no-store"}


def _shown(who: Principal) -> dict[str, Any]:
    return {
        "name": who.name,
        "role": who.role,
        "permissions": sorted(who.permissions),
        "user_id": who.user_id,
        "token_id": who.token_id,
        "must_change_password": who.must_change_password,
    }


@router.post("", response_model=Who, summary="Log in", dependencies=[Depends(same_site_or_program)])
async def log_in(request: Request, system: Sys, given: LogIn) -> Response:
    """Begins a session and sets its cookie, for browsers. A program is better off with a token."""
    begun = await sessions.log_in(request, given.name, given.password)
    response = answer(request, _shown(begun.principal), headers=_UNKEPT)
    begun.put(response, system.settings)
    return response


@router.get("", response_model=Who, summary="Who am I, and what may I do")
async def show_session(request: Request, who: Annotated[Principal, signed_in]) -> Response:
    """Of the session or the token that the request came with."""
    return answer(request, _shown(who))


@router.delete("", status_code=204, summary="Log out")
async def log_out(request: Request, who: Annotated[Principal, signed_in]) -> Response:
    """Ends the session; its cookie is of no use afterwards."""
    response = Response(status_code=204, headers=_UNKEPT)
    await sessions.log_out(request, response)
    return response


@router.post("/password", response_model=Who, summary="Change your password")
async def change_password(
    request: Request, system: Sys, who: Annotated[Principal, signed_in], given: NewPassword
) -> Response:
    """Ends every other session of yours; this one goes on under a new cookie."""
    begun = await sessions.change_password(request, given.current, given.new)
    response = answer(request, _shown(begun.principal), headers=_UNKEPT)
    begun.put(response, system.settings)
    return response
