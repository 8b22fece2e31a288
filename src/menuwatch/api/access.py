"""Who is let in, in the words of the API: the problems of those who are not, and the gate that everything below `/api` stands behind.

Routes name the permission that they take (web/auth.py). The gate is before that, and before a body is read: nobody unknown comes
further, also where a route were to forget it.
"""

from __future__ import annotations

import psycopg
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from menuwatch.accounts.repeats import OtherRequest, UnderWay
from menuwatch.api.problems import BodyTooLarge, Problem, fault, of_database, respond
from menuwatch.operations.accounts import Overreach
from menuwatch.web.auth import NotAllowed, NotSignedIn, PasswordDue, principal_of
from menuwatch.web.csrf import CrossSite
from menuwatch.web.idempotency import AnswerNotKept, BadKey
from menuwatch.web.sessions import WrongLogin
from menuwatch.web.throttle import TooManyTries


class LoginNeeded(Problem):
    """Nobody is known to ask, or the token that was sent is no good any more. Send `Authorization: Bearer mw_…` with a token of yours
    (`menuwatch tokens create`), or log in (`POST /api/session`)."""

    status = 401
    title = "Not signed in"


class WrongPassword(Problem):
    """The name or the password is wrong, or that user may not log in; which of them is not said."""

    status = 401
    title = "Wrong name or password"


class Forbidden(Problem):
    """You are known, but may not do this. `permission` names what it takes: your role must have it, and your token its scope."""

    status = 403
    title = "Not allowed"


class PasswordChangeDue(Problem):
    """Your password was given to you by somebody else. Choose your own (`POST /api/session/password`); until then you may do
    nothing else."""

    status = 403
    title = "Choose a password first"


class OtherSite(Problem):
    """The request came with the cookie of a login, and from a page that is not ours, or without saying from which. Browsers say it by
    themselves; programs send a token instead of the cookie. Behind a proxy, `PUBLIC_URL` must name our address."""

    status = 403
    title = "From another site"


class TooManyLogins(Problem):
    """Too many logins failed, of this user or from this address. Try again after the time in `Retry-After` (seconds)."""

    status = 429
    title = "Too many failed logins"


class BadIdempotencyKey(Problem):
    """`Idempotency-Key` is one text of 1 to 255 printable ASCII characters; a UUID is a good one."""

    status = 400
    title = "Bad idempotency key"


class StillUnderWay(Problem):
    """The request with this `Idempotency-Key` is being carried out now. Ask again in a moment: then its answer is there."""

    status = 409
    title = "The same request is under way"


class AlreadyDone(Problem):
    """The request with this `Idempotency-Key` was carried out, and is not carried out again. Its answer held a secret, or was too
    large, and was not kept: look what came of it, or ask anew with another key."""

    status = 409
    title = "It was done already"


class KeyOfAnother(Problem):
    """This `Idempotency-Key` was sent with another request: another address or another body. Each request has a key of its own."""

    status = 422
    title = "The idempotency key belongs to another request"


KINDS: tuple[type[Problem], ...] = (
    LoginNeeded,
    WrongPassword,
    Forbidden,
    PasswordChangeDue,
    OtherSite,
    TooManyLogins,
    BadIdempotencyKey,
    StillUnderWay,
    AlreadyDone,
    KeyOfAnother,
)

OPEN = ("/healthz", "/readyz", "/docs", "/openapi.json", "/problems", "/img", "/api/crawl/webhook")
"""What is for everybody, with all below it; what a webhook brings is taken from whoever knows the secret in its address."""

_CHALLENGE = 'Bearer realm="menuwatch"'


def problem_of(error: Exception) -> Problem | None:
    """The problem that is, None where it is about something else."""
    match error:
        case NotSignedIn():
            challenge = _CHALLENGE + (', error="invalid_token"' if error.shown else "")
            return LoginNeeded(str(error), headers={"WWW-Authenticate": challenge})
        case WrongLogin():
            return WrongPassword(str(error), headers={"WWW-Authenticate": _CHALLENGE})
        case PasswordDue():
            return PasswordChangeDue(str(error))
        case NotAllowed() | Overreach():
            more = {} if error.permission is None else {"permission": str(error.permission)}
            return Forbidden(str(error), more=more)
        case CrossSite():
            return OtherSite(str(error))
        case TooManyTries():
            return TooManyLogins(str(error), headers={"Retry-After": str(error.seconds)})
        case BadKey():
            return BadIdempotencyKey(str(error))
        case UnderWay():
            return StillUnderWay(
                "the request with this Idempotency-Key is being carried out: ask again in a moment",
                headers={"Retry-After": "2"},
            )
        case AnswerNotKept():
            return AlreadyDone(
                "this was carried out already, and its answer was not kept: look what came of it, or use another key"
            )
        case OtherRequest():
            return KeyOfAnother("this Idempotency-Key was sent with another request: make another one for this")
        case HTTPException(status_code=413):
            return BodyTooLarge(str(error.detail))
        case psycopg.Error():
            return of_database(error)
        case _:
            return None


def refuse(request: Request, error: Exception) -> Response:
    """The answer to a request that a middleware refuses."""
    problem = problem_of(error)
    return fault(request) if problem is None else respond(request, problem)


class Closed:
    """ASGI middleware behind `Authenticate`: nobody unknown gets past it, but to what is `OPEN` and to the login."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not _is_open(_route(scope), scope["method"]):
            request = Request(scope)
            try:
                principal_of(request)
            except Exception as error:
                problem = problem_of(error)
                if problem is None:
                    raise
                await respond(request, problem)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _route(scope: Scope) -> str:
    """The path as routes have it, without the prefix below which the server may lie."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def _is_open(path: str, method: str) -> bool:
    if path == "/api/session" and method == "POST":
        return True
    return any(path == own or path.startswith(own + "/") for own in OPEN)


def install(app: FastAPI) -> None:
    """Has the app answer with these problems."""

    async def answered(request: Request, error: Exception) -> Response:
        problem = problem_of(error)
        assert problem is not None, "registered for it"
        return respond(request, problem)

    for kind in (NotSignedIn, WrongLogin, NotAllowed, Overreach, CrossSite, TooManyTries):
        app.add_exception_handler(kind, answered)
