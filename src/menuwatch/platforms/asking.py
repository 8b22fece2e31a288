"""Asking for one answer: once more in place where what came is none, before the task hears of it.

An answer that is cut off, a web page or a server fault is asked for again, 2 times at most with doubling waits. Identities are
the session's business: it rotates on refusals by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from menuwatch.core.errors import BadPayload, Transient
from menuwatch.core.http import Response
from menuwatch.core.telemetry import get_logger

log = get_logger(__name__)

ATTEMPTS = 3
"""Times that one thing is asked for before its answer is given up."""

_WORTH_ASKING_AGAIN = frozenset({"html", "truncated"})

Answer = TypeVar("Answer")


def _never(_: BadPayload) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Asking:
    """How long is waited before something is asked for again. `base_seconds` is the first wait."""

    base_seconds: float = 1.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def pause(self) -> None:
        """The shortest wait."""
        await self.sleep(self.base_seconds)

    async def answer(
        self,
        send: Callable[[], Awaitable[Response]],
        read: Callable[[Response], Answer],
        *,
        what: str,
        otherwise: Callable[[BadPayload], bool] = _never,
    ) -> tuple[bytes, Answer]:
        """The body of an answer and what `read` makes of it. Where `otherwise` finds that `send` will now ask in another way, that is
        done at once and counts as no further attempt. `what` names the thing in messages.

        Raises BadPayload, which carries the body, where no attempt gave a usable answer; Transient after server faults; what
        `send` raises.
        """
        attempt = 1
        while True:
            response = await send()
            problem: Transient
            if response.status >= 500:
                problem = Transient(f"{what}: the server failed with HTTP {response.status}")
            else:
                try:
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
            log.info("asked again", action="page_retried", asked=what, attempt=attempt, wait=wait, why=str(problem))
            await self.sleep(wait)
            attempt += 1
