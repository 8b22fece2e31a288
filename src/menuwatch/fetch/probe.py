"""One request through one proxy, to see how the proxy is: for people who test it, and before it returns to work."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.settings import Settings
from menuwatch.fetch.identity import assume
from menuwatch.fetch.profiles import load
from menuwatch.fetch.transport import Transport
from menuwatch.fetch.verdict import Blame, Judgement, Verdict, judge_answer, judge_fault
from menuwatch.hosts.model import host_of
from menuwatch.proxies.model import Proxy
from menuwatch.proxies.vault import Vault

Permit = Callable[[str], Awaitable[float | None]]
"""Asks a host's budget for one request: None means now, a number that it would be too soon for so many seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What came of the request. `answered`: the target gave a whole answer. `bytes` of its body, decoded."""

    proxy_id: int
    host: str
    profile: str
    judgement: Judgement
    answered: bool
    status: int | None
    bytes: int
    elapsed_ms: float


class Finding(StrEnum):
    """What a probe says about a proxy that is out of work."""

    WORKS = "works"
    FAILS = "fails"
    UNKNOWN = "unknown"


def finding(probed: Probed) -> Finding:
    """A whole answer that is no refusal means that the proxy works; a fault of the target's, or its wish for a pause, says nothing."""
    match probed.judgement.verdict:
        case Verdict.BLOCKED | Verdict.CHALLENGE:
            return Finding.FAILS
        case Verdict.RATE_LIMITED:
            return Finding.UNKNOWN
        case Verdict.TOO_LARGE:
            return Finding.WORKS
        case _ if probed.answered:
            return Finding.WORKS
        case _ if probed.judgement.blame in (Blame.TARGET, Blame.US):
            return Finding.UNKNOWN
        case _:
            return Finding.FAILS


class Probe:
    """Makes such requests, each as one of the browsers that the settings name."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        ca_file: str | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        """`timeout_seconds`: the longest wait for one answer, FETCH_TIMEOUT_SECONDS where it is shorter."""
        self.vault = Vault.from_settings(settings)
        self._profiles = load(settings.profiles_file).profiles
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()  # noqa: S311 - a choice of browsers, no secret
        self._ca_file = ca_file
        self._timeout = min(settings.fetch_timeout_seconds, timeout_seconds or settings.fetch_timeout_seconds)
        self._max_bytes = settings.fetch_max_bytes

    async def __call__(self, proxy: Proxy, url: str) -> Probed:
        """Asks for `url` once. Raises Locked where the proxy's password cannot be opened; what else goes wrong is in the answer."""
        opened = self.vault.opened(proxy)
        today = self._clock.now().date()
        identity = assume(opened, store_state=None, rng=self._rng, today=today, profiles=self._profiles)
        transport = Transport(identity, timeout_seconds=self._timeout, max_bytes=self._max_bytes, ca_file=self._ca_file)
        try:
            exchange = await transport.send("GET", url, expect="html")
        finally:
            await transport.close()
        answer = exchange.answer
        judgement: Judgement
        if answer is not None:
            now = self._clock.now()
            judgement = judge_answer(answer.status, answer.headers, answer.body, expect="html", now=now)
        else:
            assert exchange.fault is not None, "an exchange holds an answer or a fault"
            judgement = judge_fault(exchange.fault)
        return Probed(
            proxy_id=proxy.id,
            host=host_of(url),
            profile=identity.profile.name,
            judgement=judgement,
            answered=answer is not None,
            status=None if answer is None else answer.status,
            bytes=exchange.bytes,
            elapsed_ms=exchange.elapsed_ms,
        )
