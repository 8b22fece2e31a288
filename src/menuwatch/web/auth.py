"""Authentication and authorization. `Authenticate` finds the principal of every request; a route declares its permission by
`require`.

    @router.post("", dependencies=[require(Permission.TASKS)])

A request has a token (`Authorization: Bearer mw_…`) or a session cookie. If it has a token the cookie is ignored, so a page of
another site can never make use of both.
"""

from __future__ import annotations

import time
from typing import Any

import psycopg
from fastapi import Depends, Request
from msgspec import Struct
from starlette._utils import get_route_path
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send

from menuwatch.accounts import audit, credentials
from menuwatch.accounts.model import Permission, Principal
from menuwatch.accounts.secrets import hashed
from menuwatch.web import csrf
from menuwatch.web.cookie import cookie_of
from menuwatch.web.dependencies import AppContext

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OPEN = ("/img/", "/static/", "/healthz", "/readyz")
_LONGEST = 200
"""Longest token or cookie that is checked, in characters; ours are shorter."""


class NotSignedIn(Exception):
    """The request is not authenticated. The message says why; `shown`: it had an invalid token."""

    def __init__(self, message: str, *, shown: bool = False) -> None:
        super().__init__(message)
        self.shown = shown


class NotAllowed(Exception):
    """The principal lacks `permission`."""

    def __init__(self, permission: Permission | None, message: str | None = None) -> None:
        super().__init__(message or f"this requires the permission {permission}")
        self.permission = permission


class PasswordChangeRequired(NotAllowed):
    """The user has an initial password and must change it before doing anything else."""

    def __init__(self) -> None:
        super().__init__(None, "you have a temporary password: change it first")


class Authenticate:
    """ASGI middleware of one app: sets `request.state.principal` (None if unauthenticated) and the actor of audit entries.

    Refuses no request: routes declare what they require. An error in a token is raised when a route asks for the principal.
    """

    def __init__(self, app: ASGIApp, via: audit.Via = "api") -> None:
        self._app = app
        self._via: audit.Via = via
        self._recent = RecentTokens()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        state["principal"], state["auth_error"] = None, None
        if get_route_path(scope).startswith(_OPEN):
            # Pictures and styles, dozens a page, and probes, which must answer while the database does not: all of them are public.
            await self._app(scope, receive, send)
            return
        token, cookie = _shown(scope)
        try:
            state["principal"] = await _principal(scope["app"].state.system, token, cookie)
            self._recent.note(token, state["principal"])
        except credentials.BadCredentials as error:
            self._recent.note(token, None)
            state["auth_error"] = NotSignedIn(str(error), shown=True)
        except psycopg.Error as error:  # the database is unreachable; open routes do without it
            state["principal"], state["auth_error"] = self._recent.of(token), error
        principal: Principal | None = state["principal"]
        if principal is None:
            await self._app(scope, receive, send)
            return
        with audit.actor_context(audit.Actor.of(principal, via=self._via, request_id=state.get("trace_id"))):
            await self._app(scope, receive, send)


class RecentTokens:
    """Recently valid tokens. Used only while the database is down, when they allow nothing but reading the metrics, which report
    the outage."""

    _SECONDS, _MOST = 900.0, 100

    def __init__(self) -> None:
        self._by_hash: dict[bytes, tuple[float, Principal]] = {}

    def note(self, token: str | None, principal: Principal | None) -> None:
        """Records the principal of a token, or that it is invalid."""
        if token is None:
            return
        self._by_hash.pop(hashed(token), None)
        if principal is not None:
            while len(self._by_hash) >= self._MOST:
                del self._by_hash[next(iter(self._by_hash))]
            self._by_hash[hashed(token)] = time.monotonic(), principal

    def of(self, token: str | None) -> Principal | None:
        """The principal of a recently valid token."""
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


async def _principal(system: AppContext, token: str | None, cookies: str | None) -> Principal | None:
    if token is not None:
        async with system.pool.connection(timeout=10) as conn:
            return await credentials.of_token(conn, token)
    if cookies is None:
        return None
    secret = cookie_parser(cookies).get(cookie_of(system.settings).name)
    if not secret or len(secret) > _LONGEST:
        return None
    async with system.pool.connection(timeout=10) as conn:
        return await credentials.of_session(conn, secret)


def principal_of(request: Request) -> Principal:
    """The principal; raises NotSignedIn, and CrossSite for a cookie-authenticated change from another site."""
    found: Principal | None = getattr(request.state, "principal", None)
    if found is None:
        error: Exception | None = getattr(request.state, "auth_error", None)
        raise error or NotSignedIn("log in, or send a token: Authorization: Bearer mw_…")
    if found.session is not None and request.method not in _SAFE:
        csrf.check(request)
    return found


async def _signed_in(request: Request) -> Principal:
    return principal_of(request)


signed_in: Any = Depends(_signed_in)
"""Any authenticated principal, including one that must change its password first. For a parameter: `Annotated[Principal,
signed_in]`."""


def _may(found: Principal, permission: Permission) -> Principal:
    if found.must_change_password:
        raise PasswordChangeRequired
    if not found.may(permission):
        raise NotAllowed(permission)
    return found


class _Requires(Struct, frozen=True):
    """Dependency: the principal must have `reading` for safe methods, `writing` for others."""

    reading: Permission
    writing: Permission

    def permission(self, method: str) -> Permission:
        return self.reading if method in _SAFE else self.writing

    async def __call__(self, request: Request) -> Principal:
        return _may(principal_of(request), self.permission(request.method))


async def _own(request: Request) -> Principal:
    found = principal_of(request)
    if found.must_change_password:
        raise PasswordChangeRequired
    return found if found.session is not None else _may(found, Permission.ACCOUNTS)


own_account: Any = Depends(_own)
"""The principal, for its own account. A token needs the accounts permission: otherwise it could outlive itself."""


def require(permission: Permission) -> Any:
    """The dependency of a route that takes that permission. For a parameter as well: `Annotated[Principal, require(…)]`."""
    return Depends(_Requires(permission, permission))


def require_by_method(writing: Permission) -> Any:
    """The same for a router: GET takes the permission to read, every other method `writing`."""
    return Depends(_Requires(Permission.READ, writing))


def permission_of(dependency: object, method: str) -> Permission | str | None:
    """The permission that a route's dependency requires, `signed in`, `own account`, or None if it is not about authorization."""
    if dependency in (_signed_in, _own):
        return "signed in" if dependency is _signed_in else "own account"
    return dependency.permission(method) if isinstance(dependency, _Requires) else None
