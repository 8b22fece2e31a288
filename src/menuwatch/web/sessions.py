"""Logging in and out, and changing one's password. A login always begins a session of its own: whatever cookie the browser came with
is of no use afterwards, to it or to whoever gave it to it."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from menuwatch.accounts import passwords as rules
from menuwatch.accounts import store as accounts
from menuwatch.accounts.model import Principal
from menuwatch.accounts.passwords import Passwords, TooMany
from menuwatch.core.errors import Refused
from menuwatch.core.settings import Settings
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Connection
from menuwatch.operations import audit
from menuwatch.operations.refusals import Unusable
from menuwatch.web import throttle
from menuwatch.web.auth import NotAllowed, principal_of
from menuwatch.web.client import client_address
from menuwatch.web.cookie import cookie_of
from menuwatch.web.system import System

log = get_logger(__name__)


class WrongLogin(Exception):
    """Name or password is wrong, or the user may not log in: nobody is told which."""

    def __init__(self) -> None:
        super().__init__("the name or the password is wrong")


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """A session that began. `secret` goes into the cookie and nowhere else."""

    principal: Principal
    secret: str

    def __repr__(self) -> str:
        return f"<LoggedIn {self.principal.name}>"

    def put(self, response: Response, settings: Settings) -> None:
        """Gives the browser its cookie."""
        cookie_of(settings).put(response, self.secret)


async def log_in(request: Request, name: str, password: str, *, via: audit.Via = "api") -> LoggedIn:
    """Begins a session; the answer must `put` its cookie. The caller has seen to it that the request is from a page of ours (csrf.py).
    Raises WrongLogin, TooManyTries for who must wait, and TooMany where the server has more logins in hand than it can do soon."""
    system: System = request.app.state.system
    address = client_address(request.scope, system.settings.trusted_proxies)
    await throttle.begin(system.pool, name, address)
    hashes = Passwords.of(system.settings)
    async with system.pool.connection(timeout=10) as conn:
        found = await accounts.password_of(conn, name) if accounts.NAME.fullmatch(name) else None
    # No connection is held while it is hashed; and it is hashed whether there is such a user or not.
    try:
        right = await hashes.verify(None if found is None else found[1], password)
    except TooMany:
        await throttle.undo(system.pool, name, address)
        raise
    if found is None or not right or found[2]:
        log.warning("a login failed", action="login_failed", user_id=None if found is None else found[0])
        raise WrongLogin
    async with system.pool.connection(timeout=10) as conn, conn.transaction():
        await _end_present(request, conn)
        begun = await _begin(conn, system.settings, found[0], found[1])
        if begun is None:
            raise WrongLogin
        who = audit.Actor.of(begun.principal, via=via, request_id=getattr(request.state, "trace_id", None))
        with audit.acting(who):
            await audit.record(conn, "logged_in", ("user", begun.principal.name))
    await throttle.succeeded(system.pool, name, address)
    if hashes.weak(found[1]):
        after = await hashes.hash(password)
        async with system.pool.connection(timeout=10) as conn:
            await accounts.rehash(conn, found[0], before=found[1], after=after)
    return begun


async def _begin(conn: Connection, settings: Settings, user_id: int, password_hash: str) -> LoggedIn | None:
    made = await accounts.open_session(
        conn,
        user_id,
        password_hash=password_hash,
        idle_seconds=round(settings.session_hours * 3600),
        longest_seconds=round(settings.session_days * 86_400),
    )
    if made is None:
        return None
    principal = await accounts.of_session(conn, made[1])
    return None if principal is None else LoggedIn(principal, made[1])


async def _end_present(request: Request, conn: Connection) -> None:
    """The session that the browser came with."""
    present: Principal | None = getattr(request.state, "principal", None)
    if present is not None and present.session is not None:
        await accounts.close_session(conn, present.session)


async def log_out(request: Request, response: Response) -> None:
    """Ends the session of this request, and has the browser forget its cookie. Raises NotSignedIn and CrossSite; with a token, for
    which there is no session, NotAllowed."""
    system: System = request.app.state.system
    principal = _of_browser(principal_of(request))
    async with system.pool.connection(timeout=10) as conn, conn.transaction():
        await _end_present(request, conn)
        await audit.record(conn, "logged_out", ("user", principal.name))
    cookie_of(system.settings).take(response)


def _of_browser(principal: Principal) -> Principal:
    if principal.session is None:
        raise NotAllowed(None, "this is for who is logged in: a token has no session and no password")
    return principal


async def change_password(request: Request, current: str, new: str) -> LoggedIn:
    """Another password for who is logged in. Every session of theirs ends, and this one goes on as a new one, whose cookie the answer
    must `put`. Raises Unusable, TooManyTries, NotAllowed for a token."""
    system: System = request.app.state.system
    principal = _of_browser(principal_of(request))
    assert principal.user_id is not None, "a session has a user"
    try:
        rules.check(new, name=principal.name)
    except Refused as error:
        raise Unusable("new", str(error)) from None
    address = client_address(request.scope, system.settings.trusted_proxies)
    await throttle.begin(system.pool, principal.name, address)
    hashes = Passwords.of(system.settings)
    async with system.pool.connection(timeout=10) as conn:
        before = await accounts.password_by_id(conn, principal.user_id)
    if before is None or not await hashes.verify(before, current):
        raise Unusable("current", "that is not your current password")
    await throttle.succeeded(system.pool, principal.name, address)
    if new == current:
        raise Unusable("new", "that is your current password: choose another one")
    hashed = await hashes.hash(new)
    async with system.pool.connection(timeout=10) as conn, conn.transaction():
        await accounts.lock_users(conn)
        if await accounts.password_by_id(conn, principal.user_id) != before:
            raise Unusable("current", "that is not your current password any more")
        await accounts.set_password(conn, principal.user_id, hashed, must_change=False)
        await accounts.close_sessions(conn, principal.user_id)
        begun = await _begin(conn, system.settings, principal.user_id, hashed)
        assert begun is not None, "nobody else writes users meanwhile"
        await audit.record(conn, "password_changed", ("user", principal.name))
    return begun
