"""Test requests through proxies, each when the host's budget allows it."""

from __future__ import annotations

import asyncio
from typing import Annotated, TypedDict, Unpack

from msgspec import Struct

from menuwatch.config.settings import Settings
from menuwatch.core.clock import Clock
from menuwatch.core.errors import Refused
from menuwatch.core.shapes import doc
from menuwatch.db.pool import Pool
from menuwatch.fetch.adhoc import AdhocRequests
from menuwatch.fetch.classify import REFUSALS, Verdict
from menuwatch.fetch.probe import Permit, Probe, ProbeResponse, ProbeResult, probe_result
from menuwatch.hosts.model import host_of
from menuwatch.proxies.model import ProbeState, Proxy, TestFailure

CONCURRENT_TESTS = 32
_TEST_SECONDS = 15.0
"""Response timeout in seconds: a slower proxy is not useful."""
_LONGEST_TURN_SECONDS = 30.0
"""Longest wait in seconds for a slot of the host's budget."""


class ProxyTest(Struct, frozen=True, kw_only=True):
    """Result of a test request through a proxy."""

    id: Annotated[int, doc("Id of the proxy.")]
    address: Annotated[str, doc("Address without the password.")]
    ok: Annotated[bool, doc("Whether the platform responded, with any status: the proxy works.")]
    verdict: Verdict
    status: Annotated[int | None, doc("HTTP status of the response; null if there was none.")]
    elapsed_ms: float
    reason: Annotated[str, doc("Result as a sentence.")]

    @classmethod
    def of(cls, proxy: Proxy, probed: ProbeResponse) -> ProxyTest:
        reason = probed.classification.reason
        ok = probed.answered or probe_result(probed) is ProbeResult.WORKS
        return cls(
            id=proxy.id,
            address=proxy.address,
            ok=ok,
            verdict=probed.classification.verdict,
            status=probed.status,
            elapsed_ms=probed.elapsed_ms,
            reason=f"reached {probed.host}: {reason}" if ok else reason,
        )

    @property
    def refused(self) -> bool:
        """Whether the proxy works, but the target refuses it."""
        return self.ok and self.verdict in REFUSALS

    @property
    def label(self) -> str:
        """Label of the result, such as `works`: a missing response caused by the target or by us says nothing about the proxy."""
        if self.ok:
            return "works, but is refused" if self.refused else "works"
        blameless = self.verdict in (Verdict.TARGET_DOWN, Verdict.RATE_LIMITED, Verdict.CLIENT_BUG)
        return "could not be tested" if blameless else "fails"


class TesterOptions(TypedDict, total=False):
    """Options of a Tester."""

    url: str | None
    """URL to request; default: the platform's base URL."""
    clock: Clock | None
    ca_file: str | None
    permit: Permit | None
    """The host's budget; default: the one in the database."""


class NotNow(Refused):
    """The host takes no requests for a while, not even tests."""

    def __init__(self, host: str, wait: float) -> None:
        soon = f"{wait:.0f} s" if wait < 120 else f"{wait / 60:.0f} min"
        self.failure = TestFailure.untested(f"requests to {host} are blocked for {soon}")
        super().__init__(self.failure.reason)


class Tester:
    """Makes test requests within the host's budget."""

    def __init__(self, pool: Pool, settings: Settings, **options: Unpack[TesterOptions]) -> None:
        """Raises Refused for an invalid `url`."""
        clock = options.get("clock")
        self._probe = Probe(settings, clock=clock, ca_file=options.get("ca_file"), timeout_seconds=_TEST_SECONDS)
        self.secret_box = self._probe.secret_box
        self._url = options.get("url") or settings.dutchie_base_url
        if not self._url.startswith(("http://", "https://")) or not host_of(self._url):
            raise Refused("the test URL must start with http:// or https://, for example https://example.com/")
        requests = AdhocRequests(pool, settings, clock=clock)
        self._permit = options.get("permit") or requests.acquire
        self._record = requests.record

    async def __call__(self, proxy: Proxy) -> ProbeResponse:
        """Raises NotNow if no request slot is available soon."""
        host = host_of(self._url)
        wait = await self._permit(host)
        while wait is not None:
            if wait > _LONGEST_TURN_SECONDS:
                raise NotNow(host, wait)
            await asyncio.sleep(wait)
            wait = await self._permit(host)
        probed = await self._probe(proxy, self._url)
        await self._record(probed)
        return probed

    async def find_failure(self, proxy: Proxy) -> TestFailure | None:
        """Why the proxy should not be activated; None if nothing is known against it."""
        try:
            probed = await self(proxy)
        except NotNow as error:
            return error.failure
        if probe_result(probed) is not ProbeResult.FAILS:
            return None
        return TestFailure(ProbeState.FAILED, probed.classification.reason)
