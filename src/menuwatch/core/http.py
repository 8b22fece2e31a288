"""What a platform needs to know of HTTP: an answer, and someone who can ask.

The types live here so that `platforms` (which ask) and `fetch` (which answers) need not know each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Expect = Literal["json", "html", "image", "any"]


@dataclass(frozen=True, slots=True)
class Response:
    """One answer of a server, its body decoded (content-encoding removed) and whole.

    `headers` has lower-case names. `elapsed_ms` counts from the first byte sent to the last received.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    elapsed_ms: float


class Session(Protocol):
    """An identity at work: every request goes through its proxy, with its browser profile and cookies."""

    async def request(
        self,
        method: Literal["GET", "POST"],
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Any | None = None,
        headers: Mapping[str, str] | None = None,
        expect: Expect = "json",
    ) -> Response:
        """Asks, rotating the identity when it is refused.

        Returns answers of any status that is not a refusal of the identity (2xx, and 4xx that mean the request itself
        was wrong). Raises Blocked when several identities were refused, Throttled on 429 or 503 with a wait, Transient
        on proxy, network and server faults that outlast the retries.
        """
        ...
