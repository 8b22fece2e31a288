"""Login, logout and password change. A login always begins a new session: the cookie that the browser came with becomes useless,
which prevents session fixation."""

from __future__ import annotations

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from menuwatch.accounts import audit, credentials
from menuwatch.accounts import first_password as first_login
from menuwatch.accounts import login_throttle as throttle
from menuwatch.accounts.model import Principal
from menuwatch.accounts.passwords import Passwords, TooMany
from menuwatch.accounts.users import NAME
from menuwatch.config.settings import Settings
from menuwatch.core.errors import InvalidField, Refused
from menuwatch.core.logging import get_logger
from menuwatch.db.pool import Connection
from menuwatch.web.auth import NotAllowed, principal_of
from menuwatch.web.client import client_address, network_of
from menuwatch.web.cookie import cookie_of
from menuwatch.web.dependencies import AppContext

log = get_logger(__name__)


class WrongLogin(Exception):
    """Name or password is wrong, or the user may not log in; the error does not reveal which."""

    def __init__(self) -> None:
        super().__init__("incorrect user name or password")


class LoggedIn(Struct, frozen=True):
    """A session that began. `secret` goes into the cookie and nowhere else."""

    principal: Principal
    secret: str

    def __repr__(self) -> str:
        return f"<LoggedIn {self.principal.name}>"

    def put(self, response: Response, settings: Settings) -> None:
        """Gives the browser its cookie."""
        cookie_of(settings).put(response, self.secret)


async def log_in(request: Request, name: str, password: str, *, via: audit.Via = "api") -> LoggedIn:
    """Begins a session; the response must `put` its cookie. The caller has checked that the request is from one of our pages
    (csrf.py). Raises WrongLogin, TooManyTries when the client must wait, and TooMany when too many logins are queued."""
    system: AppContext = request.app.state.system
    network = network_of(client_address(request.scope, system.settings.trusted_proxies))
    await throttle.begin(system.pool, name, network)
    hashes = Passwords.of(system.settings)
    async with system.pool.connection(timeout=10) as conn:
        found = await credentials.password_of(conn, name) if NAME.fullmatch(name) else None
    # No connection is held while it is hashed; and it is hashed whether there is such a user or not.
    try:
        right = await hashes.verify(None if found is None else found[1], password)
    except TooMany:
        await throttle.undo(system.pool, name, network)
        raise
    if found is None or not right or found[2]:
        log.warning("login failed", action="login_failed", user_id=None if found is None else found[0])
        raise WrongLogin
    begun = await _open(request, found[0], found[1], via)
    await throttle.succeeded(system.pool, name, network)
    if hashes.weak(found[1]):
        after = await hashes.hash(password)
        async with system.pool.connection(timeout=10) as conn:
            await credentials.rehash(conn, found[0], before=found[1], after=after)
    return begun


async def log_in_without_password(request: Request, name: str) -> LoggedIn:
    """Begins a session of a user; the caller has checked the secret of a login link. Raises WrongLogin."""
    system: AppContext = request.app.state.system
    async with system.pool.connection(timeout=10) as conn:
        found = await credentials.password_of(conn, name)
    if found is None or found[2]:
        raise WrongLogin
    return await _open(request, found[0], found[1], "dashboard")


async def _open(request: Request, user_id: int, password_hash: str, via: audit.Via) -> LoggedIn:
    system: AppContext = request.app.state.system
    async with system.pool.connection(timeout=10) as conn, conn.transaction():
        await _end_present(request, conn)
        begun = await _begin(conn, system.settings, user_id, password_hash)
        if begun is None:
            raise WrongLogin
        who = audit.Actor.of(begun.principal, via=via, request_id=getattr(request.state, "trace_id", None))
        with audit.actor_context(who):
            await audit.record(conn, "logged_in", ("user", begun.principal.name))
    return begun


async def _begin(conn: Connection, settings: Settings, user_id: int, password_hash: str) -> LoggedIn | None:
    made = await credentials.open_session(
        conn,
        user_id,
        password_hash=password_hash,
        idle_seconds=round(settings.session_hours * 3600),
        longest_seconds=round(settings.session_days * 86_400),
    )
    if made is None:
        return None
    principal = await credentials.of_session(conn, made[1])
    return None if principal is None else LoggedIn(principal, made[1])


async def _end_present(request: Request, conn: Connection) -> None:
    """The session that the browser came with."""
    present: Principal | None = getattr(request.state, "principal", None)
    if present is not None and present.session is not None:
        await credentials.close_session(conn, present.session)


async def log_out(request: Request, response: Response) -> None:
    """Ends the session of this request, and has the browser forget its cookie. Raises NotSignedIn and CrossSite; with a token, for
    which there is no session, NotAllowed."""
    system: AppContext = request.app.state.system
    principal = _of_browser(principal_of(request))
    async with system.pool.connection(timeout=10) as conn, conn.transaction():
        await _end_present(request, conn)
        await audit.record(conn, "logged_out", ("user", principal.name))
    cookie_of(system.settings).take(response)


def _of_browser(principal: Principal) -> Principal:
    if principal.session is None:
        raise NotAllowed(None, "this requires a login session, not a token")
    return principal


async def change_password(request: Request, current: str, new: str) -> LoggedIn:
    """Another password for who is logged in. Every session of theirs ends, and this one goes on as a new one, whose cookie the answer
    must `put`. Raises InvalidField, TooManyTries, NotAllowed for a token."""
    system: AppContext = request.app.state.system
    principal = _of_browser(principal_of(request))
    assert principal.user_id is not None, "a session has a user"
    network = network_of(client_address(request.scope, system.settings.trusted_proxies))
    await throttle.begin(system.pool, principal.name, network)
    hashes = Passwords.of(system.settings)
    async with system.pool.connection(timeout=10) as conn:
        before = await credentials.password_by_id(conn, principal.user_id)
    if before is None or not await hashes.verify(before, current):
        raise InvalidField("current", "that is not your current password")
    await throttle.succeeded(system.pool, principal.name, network)
    if new == current:
        raise InvalidField("new", "that is your current password: choose another one")
    try:
        hashed = await hashes.hash_new(new, name=principal.name)
    except Refused as error:
        raise InvalidField("new", str(error)) from None
    async with system.pool.connection(timeout=10) as conn, conn.transaction():
        await credentials.lock_users(conn)
        if await credentials.password_by_id(conn, principal.user_id) != before:
            raise InvalidField("current", "your password was changed in the meantime")
        await credentials.set_password(conn, principal.user_id, hashed, must_change=False)
        await credentials.close_sessions(conn, principal.user_id)
        begun = await _begin(conn, system.settings, principal.user_id, hashed)
        assert begun is not None, "no other statement writes users meanwhile"
        await audit.record(conn, "password_changed", ("user", principal.name))
    first_login.discard(system.settings.home, principal.name)
    return begun
