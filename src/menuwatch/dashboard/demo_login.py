"""The login link of a demo: its output makes you its admin. Installed in a demo only, for requests from this machine."""

from __future__ import annotations

import hmac
import ipaddress

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from menuwatch.accounts import users
from menuwatch.core.errors import NotFound
from menuwatch.web import sessions
from menuwatch.web.dependencies import AppContext

PATH = "/login/demo"

router = APIRouter()


@router.get(PATH)
async def demo_login(request: Request, token: str = "") -> Response:
    """Begins a session and redirects at once, so that the token stays in no address bar and no Referer. It is valid as long as the
    demo runs; another site cannot log a browser in without it."""
    system: AppContext = request.app.state.system
    here = request.client is not None and ipaddress.ip_address(request.client.host).is_loopback
    if system.demo_token is None or not here or not hmac.compare_digest(token.encode(), system.demo_token.encode()):
        raise NotFound("this login link belongs to another demo, or is incomplete")
    begun = await sessions.log_in_without_password(request, users.FIRST_NAME)
    answer = RedirectResponse(f"{request.scope.get('root_path', '')}/", status_code=303)
    answer.headers.update({"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"})
    begun.put(answer, system.settings)
    return answer
