"""One request through one proxy, to test it on demand or before it is reactivated."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from enum import StrEnum

from msgspec import Struct

from menuwatch.config.settings import Settings
from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.encryption import SecretBox
from menuwatch.fetch.choose_identity import choose_identity
from menuwatch.fetch.classify import Blame, Classification, Verdict
from menuwatch.fetch.profiles import load
from menuwatch.fetch.transport import Transport
from menuwatch.hosts.model import host_of
from menuwatch.proxies.model import Proxy
from menuwatch.proxies.passwords import decrypt_password

Permit = Callable[[str], Awaitable[float | None]]
"""Requests a slot from a host's budget: None means now, a number the seconds to wait."""


class ProbeResponse(Struct, frozen=True, kw_only=True):
    """Result of the request. `answered`: the target sent a complete response. `bytes`: decoded size of its body."""

    proxy_id: int
    host: str
    profile: str
    classification: Classification
    answered: bool
    status: int | None
    bytes: int
    elapsed_ms: float


class ProbeResult(StrEnum):
    """Result of a probe of a proxy that is out of use."""

    WORKS = "works"
    FAILS = "fails"
    UNKNOWN = "unknown"


def probe_result(probed: ProbeResponse) -> ProbeResult:
    """A complete response that is not a refusal means that the proxy works; a target error or a rate limit says nothing about it."""
    match probed.classification.verdict:
        case Verdict.BLOCKED | Verdict.CHALLENGE:
            return ProbeResult.FAILS
        case Verdict.RATE_LIMITED:
            return ProbeResult.UNKNOWN
        case Verdict.TOO_LARGE:
            return ProbeResult.WORKS
        case _ if probed.answered:
            return ProbeResult.WORKS
        case _ if probed.classification.blame in (Blame.TARGET, Blame.US):
            return ProbeResult.UNKNOWN
        case _:
            return ProbeResult.FAILS


class Probe:
    """Makes test requests, each as one of the configured browsers."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        ca_file: str | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        """`timeout_seconds`: longest wait for a response (FETCH_TIMEOUT_SECONDS if that is shorter)."""
        self.secret_box = SecretBox(settings.secret_key)
        self._profiles = load(settings.profiles_file).profiles
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()  # noqa: S311 - a choice of browsers, no secret
        self._ca_file = ca_file
        self._timeout = min(settings.fetch_timeout_seconds, timeout_seconds or settings.fetch_timeout_seconds)
        self._max_bytes = settings.fetch_max_bytes

    async def __call__(self, proxy: Proxy, url: str) -> ProbeResponse:
        """Request `url` once. Raises DecryptionError for the proxy's password; any other failure is in the result."""
        opened = decrypt_password(self.secret_box, proxy)
        today = self._clock.now().date()
        identity = choose_identity(opened, store_state=None, rng=self._rng, today=today, profiles=self._profiles)
        transport = Transport(identity, timeout_seconds=self._timeout, max_bytes=self._max_bytes, ca_file=self._ca_file)
        try:
            exchange = await transport.send("GET", url, expect="html")
        finally:
            await transport.close()
        answer = exchange.answer
        classification = exchange.classify("html", self._clock.now())
        return ProbeResponse(
            proxy_id=proxy.id,
            host=host_of(url),
            profile=identity.profile.name,
            classification=classification,
            answered=answer is not None,
            status=None if answer is None else answer.status,
            bytes=exchange.bytes,
            elapsed_ms=exchange.elapsed_ms,
        )
