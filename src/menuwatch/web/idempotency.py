"""Idempotency-Key: a POST that is sent twice with one key is carried out once, and gets one answer.

A key belongs to who sends it: the same one from another user, or from another token, is another key. It is kept for a day with a hash
of the request and with the answer. An answer that holds a secret (`Cache-Control: no-store`) is not kept: who sends that again is told
that it was done, and must look what came of it. Faults of ours are not kept either, so that the same may be tried again. Logging in
and changing one's password take no notice of a key.
"""

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

from menuwatch.accounts import repeats
from menuwatch.accounts.model import Principal
from menuwatch.accounts.repeats import Kept, Key
from menuwatch.core.telemetry import get_logger
from menuwatch.web.system import System

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
    """ASGI middleware behind `Authenticate`. `refuse` makes the answer of BadKey, UnderWay, OtherRequest, AnswerNotKept, of a body
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
                raise BadKey("Idempotency-Key is one text of 1 to 255 printable ASCII characters, as a UUID")
            key = Key(_actor(principal), given[0])
            body = await _whole(receive)
            if body is None:
                return  # the client went away in the middle: half a request is none
            system: System = scope["app"].state.system
            async with system.pool.connection(timeout=10) as conn:
                found = await repeats.claim(conn, key, _fingerprint(scope, body))
            if isinstance(found, Kept):
                if not found.body and found.status == 0:
                    raise AnswerNotKept
                await _again(found)(scope, receive, send)
                return
        except (BadKey, AnswerNotKept, repeats.UnderWay, repeats.OtherRequest, HTTPException, psycopg.Error) as error:
            await self._refuse(Request(scope), error)(scope, receive, send)
            return
        await self._first(scope, _replayed(body, receive), send, system, key, found)

    async def _first(self, scope: Scope, receive: Receive, send: Send, system: System, key: Key, number: str) -> None:
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

    def kept(self) -> Kept | None:
        """The answer as it is kept; None for one that was none, or a fault of ours."""
        if not self._status or self._status >= 500 or self._status in (401, 403, 429):
            return None
        said = dict(self._headers)
        if "no-store" in said.get("cache-control", "") or len(self._body) > _MOST or not self._whole:
            return Kept(0, [], b"")
        headers = [(name, value) for name, value in self._headers if name.lower() not in _LEFT_OUT]
        return Kept(self._status, headers, bytes(self._body))


async def _settle(system: System, key: Key, number: str, kept: Kept | None) -> None:
    try:
        async with system.pool.connection(timeout=10) as conn:
            if kept is None:
                await repeats.give_back(conn, key, number)
            else:
                await repeats.settle(conn, key, number, kept)
    except psycopg.Error:
        log.warning("the answer to a key could not be kept", action="idempotency_lost", exc_info=True)


def _holds_password(scope: Scope) -> bool:
    """Whether the body has a password in it: fingerprints are quickly made, so whoever reads the table could guess it."""
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    return path in ("/api/session", "/api/session/password")


def _actor(principal: Principal) -> str:
    return f"token {principal.token_id}" if principal.token_id is not None else f"user {principal.user_id}"


def _fingerprint(scope: Scope, body: bytes) -> bytes:
    told = hashlib.sha256()
    for part in (scope["method"].encode(), scope["path"].encode(), scope.get("query_string", b""), body):
        told.update(len(part).to_bytes(8, "big") + part)
    return told.digest()


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


def _again(kept: Kept) -> Response:
    headers: dict[str, Any] = dict(kept.headers)
    return Response(kept.body, status_code=kept.status, headers={**headers, "Idempotent-Replayed": "true"})
