"""Idempotency-Key: a POST sent twice with the same key is executed once and gets the same response.

Keys are per user and token. A key is stored for a day with a hash of the request and with the response. A response that holds a
secret (`Cache-Control: no-store`) is not stored: a repeated request gets an error saying that it was done already. Server errors are
not stored either, so that the request can be retried. Login and password change ignore the key."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

import psycopg
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from menuwatch.accounts import idempotency
from menuwatch.accounts.idempotency import Key, StoredResponse
from menuwatch.accounts.model import Principal
from menuwatch.core.logging import get_logger
from menuwatch.web.dependencies import AppContext

log = get_logger(__name__)

_KEY = re.compile(r"[!-~]{1,255}")
_MOST = 2_000_000
"""Bytes of an answer that is kept."""
_LEFT_OUT = frozenset({"content-length", "date", "server", "x-request-id", "set-cookie"})


class BadKey(Exception):
    """The key cannot be one."""


class AnswerNotKept(Exception):
    """It was carried out, and its answer held a secret."""


class Idempotency:
    """ASGI middleware behind `Authenticate`. `refuse` makes the answer of BadKey, InProgress, KeyMismatch, AnswerNotKept, of a body
    that is too large, and of faults of the database."""

    def __init__(self, app: ASGIApp, refuse: Callable[[Request, Exception], Response]) -> None:
        self._app = app
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal: Principal | None = scope.get("state", {}).get("principal")
        if scope["type"] != "http" or scope["method"] != "POST" or principal is None:
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).getlist("idempotency-key")
        if not given or _holds_password(scope):
            await self._app(scope, receive, send)
            return
        try:
            if len(given) > 1 or not _KEY.fullmatch(given[0]):
                raise BadKey("Idempotency-Key must be 1 to 255 printable ASCII characters, for example a UUID")
            key = Key(_actor(principal), given[0])
            body = await _whole(receive)
            if body is None:
                return  # the client went away in the middle: half a request is none
            system: AppContext = scope["app"].state.system
            async with system.pool.connection(timeout=10) as conn:
                found = await idempotency.claim(conn, key, _fingerprint(scope, body))
            if isinstance(found, StoredResponse):
                if not found.body and found.status == 0:
                    raise AnswerNotKept
                await _again(found)(scope, receive, send)
                return
        except (
            BadKey,
            AnswerNotKept,
            idempotency.InProgress,
            idempotency.KeyMismatch,
            HTTPException,
            psycopg.Error,
        ) as error:
            await self._refuse(Request(scope), error)(scope, receive, send)
            return
        await self._first(scope, _replayed(body, receive), send, system, key, found)

    async def _first(
        self, scope: Scope, receive: Receive, send: Send, system: AppContext, key: Key, number: str
    ) -> None:
        heard = _Heard(send)
        try:
            await self._app(scope, receive, heard)
        finally:
            # Also where the client went away: what was done was done.
            await _settle(system, key, number, heard.kept())


class _Heard:
    """Sends an answer on, and remembers it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._status = 0
        self._headers: list[tuple[str, str]] = []
        self._body = bytearray()
        self._whole = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in message.get("headers", ())]
        elif message["type"] == "http.response.body":
            if len(self._body) <= _MOST:
                self._body += message.get("body", b"")
            self._whole = not message.get("more_body", False)
        await self._send(message)

    def kept(self) -> StoredResponse | None:
        """The answer as it is kept; None for one that was none, or a fault of ours."""
        if not self._status or self._status >= 500 or self._status in (401, 403, 429):
            return None
        said = dict(self._headers)
        if "no-store" in said.get("cache-control", "") or len(self._body) > _MOST or not self._whole:
            return StoredResponse(0, [], b"")
        headers = [(name, value) for name, value in self._headers if name.lower() not in _LEFT_OUT]
        return StoredResponse(self._status, headers, bytes(self._body))


async def _settle(system: AppContext, key: Key, number: str, kept: StoredResponse | None) -> None:
    try:
        async with system.pool.connection(timeout=10) as conn:
            if kept is None:
                await idempotency.give_back(conn, key, number)
            else:
                await idempotency.settle(conn, key, number, kept)
    except psycopg.Error:
        log.warning("idempotent response could not be stored", action="idempotency_lost", exc_info=True)


def _holds_password(scope: Scope) -> bool:
    """Whether the body contains a password: fingerprints are fast hashes, so a reader of the table could guess it."""
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    return path in ("/api/session", "/api/session/password")


def _actor(principal: Principal) -> str:
    return f"token {principal.token_id}" if principal.token_id is not None else f"user {principal.user_id}"


def _fingerprint(scope: Scope, body: bytes) -> bytes:
    digest = hashlib.sha256()
    for part in (scope["method"].encode(), scope["path"].encode(), scope.get("query_string", b""), body):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()


async def _whole(receive: Receive) -> bytes | None:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replayed() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


def _again(kept: StoredResponse) -> Response:
    headers: dict[str, Any] = dict(kept.headers)
    return Response(kept.body, status_code=kept.status, headers={**headers, "Idempotent-Replayed": "true"})
