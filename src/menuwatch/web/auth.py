"""Who asks, and whether they may. `Authenticate` finds out for every request; a route says what it takes by `allowed`.

    @router.post("", dependencies=[allowed(Permission.TASKS)])

A request comes with a token (`Authorization: Bearer mw_…`), or with the cookie of a login. Where there is a token the cookie is not
looked at, so a page of somebody else can never make use of both.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
from fastapi import Depends, Request
from starlette._utils import get_route_path
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send

from menuwatch.accounts import store as accounts
from menuwatch.accounts.model import Permission, Principal
from menuwatch.accounts.secrets import hashed
from menuwatch.operations import audit
from menuwatch.web import csrf
from menuwatch.web.cookie import cookie_of
from menuwatch.web.system import System

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OPEN = ("/img/", "/static/")
_LONGEST = 200
"""Characters of a token or cookie that are looked at; ours have fewer."""


class NotSignedIn(Exception):
    """Nobody is known to ask. The message says why; `shown` whether a token was shown that is no good."""

    def __init__(self, message: str, *, shown: bool = False) -> None:
        super().__init__(message)
        self.shown = shown


class NotAllowed(Exception):
    """They may not do this; `permission` is what it takes."""

    def __init__(self, permission: Permission | None, message: str | None = None) -> None:
        super().__init__(message or f"this takes the permission {permission}")
        self.permission = permission


class PasswordDue(NotAllowed):
    """Their password was given to them: until they have chosen their own they may do nothing else."""

    def __init__(self) -> None:
        super().__init__(None, "your password was given to you: choose your own first")


class Authenticate:
    """ASGI middleware of one face: sets `request.state.principal`, None where nobody is known, and says who acts (the audit).

    It refuses nobody: what a route takes it says itself. What is wrong with a token is kept for whoever asks for a principal."""

    def __init__(self, app: ASGIApp, via: audit.Via = "api") -> None:
        self._app = app
        self._via: audit.Via = via
        self._seen = _Seen()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        state["principal"], state["why_not"] = None, None
        if get_route_path(scope).startswith(_OPEN):
            # A page has dozens of these, and they are anybody's: nobody is looked up for them.
            await self._app(scope, receive, send)
            return
        token, cookie = _shown(scope)
        try:
            state["principal"] = await _principal(scope["app"].state.system, token, cookie)
            self._seen.note(token, state["principal"])
        except accounts.BadCredentials as error:
            self._seen.note(token, None)
            state["why_not"] = NotSignedIn(str(error), shown=True)
        except psycopg.Error as error:  # the database is away; open routes do without
            state["principal"], state["why_not"] = self._seen.of(token), error
        principal: Principal | None = state["principal"]
        if principal is None:
            await self._app(scope, receive, send)
            return
        with audit.acting(audit.Actor.of(principal, via=self._via, request_id=state.get("trace_id"))):
            await self._app(scope, receive, send)


class _Seen:
    """Tokens that were good a moment ago. Looked at only while the database is away: then nothing can be done with them but to
    read the metrics, which say that it is."""

    _SECONDS, _MOST = 900.0, 100

    def __init__(self) -> None:
        self._by_hash: dict[bytes, tuple[float, Principal]] = {}

    def note(self, token: str | None, principal: Principal | None) -> None:
        """What became of a token."""
        if token is None:
            return
        self._by_hash.pop(hashed(token), None)
        if principal is not None:
            while len(self._by_hash) >= self._MOST:
                del self._by_hash[next(iter(self._by_hash))]
            self._by_hash[hashed(token)] = time.monotonic(), principal

    def of(self, token: str | None) -> Principal | None:
        """Who it stood for."""
        at, principal = self._by_hash.get(hashed(token), (0.0, None)) if token is not None else (0.0, None)
        return principal if time.monotonic() - at < self._SECONDS else None


def _shown(scope: Scope) -> tuple[str | None, str | None]:
    """(token, cookie header) of a request."""
    token = cookies = None
    for name, value in scope["headers"]:
        if name == b"authorization" and token is None:
            kind, _, rest = value.decode("latin-1").partition(" ")
            token = rest.strip()[:_LONGEST] if kind.lower() == "bearer" else None
        elif name == b"cookie":
            cookies = value.decode("latin-1") if cookies is None else f"{cookies}; {value.decode('latin-1')}"
    return token, cookies


async def _principal(system: System, token: str | None, cookies: str | None) -> Principal | None:
    if token is not None:
        async with system.pool.connection(timeout=10) as conn:
            return await accounts.of_token(conn, token)
    if cookies is None:
        return None
    secret = cookie_parser(cookies).get(cookie_of(system.settings).name)
    if not secret or len(secret) > _LONGEST:
        return None
    async with system.pool.connection(timeout=10) as conn:
        return await accounts.of_session(conn, secret)


def principal_of(request: Request) -> Principal:
    """Who asks; raises NotSignedIn, and CrossSite for a change by a cookie that no page of ours asks for."""
    found: Principal | None = getattr(request.state, "principal", None)
    if found is None:
        why: Exception | None = getattr(request.state, "why_not", None)
        raise why or NotSignedIn("log in, or send a token: Authorization: Bearer mw_…")
    if found.session is not None and request.method not in _SAFE:
        csrf.check(request)
    return found


async def _signed_in(request: Request) -> Principal:
    return principal_of(request)


signed_in: Any = Depends(_signed_in)
"""Whoever is known, also who must change their password first. For a parameter: `Annotated[Principal, signed_in]`."""


def _may(found: Principal, permission: Permission) -> Principal:
    if found.must_change_password:
        raise PasswordDue
    if not found.may(permission):
        raise NotAllowed(permission)
    return found


@functools.cache
def _check(permission: Permission) -> Callable[[Request], Awaitable[Principal]]:
    async def check(request: Request) -> Principal:
        return _may(principal_of(request), permission)

    return check


@functools.cache
def _check_by_method(writing: Permission) -> Callable[[Request], Awaitable[Principal]]:
    async def check(request: Request) -> Principal:
        return _may(principal_of(request), Permission.READ if request.method in _SAFE else writing)

    return check


async def _own(request: Request) -> Principal:
    found = principal_of(request)
    if found.must_change_password:
        raise PasswordDue
    return found if found.session is not None else _may(found, Permission.ACCOUNTS)


own_account: Any = Depends(_own)
"""Whoever is logged in, for what is theirs. A token may that only with the permission for accounts: else it could outlive itself."""


def allowed(permission: Permission) -> Any:
    """The dependency of a route that takes that permission. For a parameter as well: `Annotated[Principal, allowed(…)]`."""
    return Depends(_check(permission))


def allowed_by_method(writing: Permission) -> Any:
    """The same for a router: looking takes the permission to read, everything else that one."""
    return Depends(_check_by_method(writing))


def permission_of(dependency: object, method: str) -> Permission | str | None:
    """What a route's dependency asks for: a permission, `signed in`, `own account`, or None where it is about something else."""
    if dependency in (_signed_in, _own):
        return "signed in" if dependency is _signed_in else "own account"
    for permission in Permission:
        if dependency is _check(permission):
            return permission
        if dependency is _check_by_method(permission):
            return Permission.READ if method in _SAFE else permission
    return None
