"""Retries one request within a task.

A truncated answer, a web page or a server error is requested again, at most twice, with doubling waits. Identities are the
session's business: it rotates on refusals.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from menuwatch.core.errors import BadPayload, Transient
from menuwatch.core.http import Response
from menuwatch.core.logging import get_logger

log = get_logger(__name__)

ATTEMPTS = 3
"""Attempts per request."""

_LARGE_BYTES = 1_000_000
"""Minimum bytes of an answer to be parsed in a thread, so that the event loop is free for heartbeats."""
_WORTH_ASKING_AGAIN = frozenset({"html", "truncated"})

Answer = TypeVar("Answer")


def _never(_: BadPayload) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class RequestRetry:
    """Delays between retries of a request. `base_seconds` is the first delay."""

    base_seconds: float = 1.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def pause(self) -> None:
        """The shortest delay."""
        await self.sleep(self.base_seconds)

    async def answer(
        self,
        send: Callable[[], Awaitable[Response]],
        read: Callable[[Response], Answer],
        *,
        what: str,
        otherwise: Callable[[BadPayload], bool] = _never,
    ) -> tuple[bytes, Answer]:
        """The body of an answer and the result of `read`. If `otherwise` finds that `send` will now send a different request, that is
        sent at once without counting an attempt. `what` names the request in messages.

        Raises BadPayload with the body if no attempt gave a usable answer; Transient after server faults; and the errors of
        `send`.
        """
        attempt = 1
        while True:
            response = await send()
            problem: Transient
            if response.status >= 500:
                problem = Transient(f"{what}: the server failed with HTTP {response.status}")
            else:
                try:
                    if len(response.body) >= _LARGE_BYTES:
                        return response.body, await asyncio.to_thread(read, response)
                    return response.body, read(response)
                except BadPayload as error:
                    if otherwise(error):
                        continue
                    if error.kind not in _WORTH_ASKING_AGAIN:
                        raise
                    problem = error
            if attempt >= ATTEMPTS:
                raise problem
            wait = self.base_seconds * 2 ** (attempt - 1)
            log.info("request retried", action="page_retried", asked=what, tries=attempt, wait=wait, why=str(problem))
            await self.sleep(wait)
            attempt += 1
