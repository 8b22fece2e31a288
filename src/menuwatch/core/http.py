"""HTTP types shared by platforms and the fetch layer: a response, and a session that sends requests.

They are defined here so that `platforms` (the caller) and `fetch` (the implementation) do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Expect = Literal["json", "html", "image", "any"]


@dataclass(frozen=True, slots=True)
class Response:
    """A complete response, its body decoded (content-encoding removed).

    `headers` has lower-case names. `elapsed_ms` counts from the first byte sent to the last received.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    elapsed_ms: float


class Session(Protocol):
    """A leased identity: every request goes through its proxy, with its browser profile and cookies."""

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
        """Sends a request, rotating the identity when it is refused.

        Returns responses of any status that is not a refusal of the identity (2xx, and 4xx for a wrong request). Raises Blocked
        when several identities were refused, Throttled on 429 or 503 with a wait, Transient on proxy, network and server faults
        that outlast the retries.
        """
        ...


def proxy_address(protocol: str, host: str, port: int, username: str | None) -> str:
    """A proxy's address for display, without the password."""
    name = f"[{host}]" if ":" in host else host
    login = f"{username}@" if username else ""
    return f"{protocol}://{login}{name}:{port}"
