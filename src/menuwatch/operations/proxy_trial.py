"""Test requests through proxies, each when the host's budget allows it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from menuwatch.core.clock import Clock
from menuwatch.core.errors import Refused
from menuwatch.core.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.fetch.errand import Errands
from menuwatch.fetch.probe import Finding, Permit, Probe, Probed, finding
from menuwatch.fetch.verdict import REFUSALS, Verdict
from menuwatch.hosts.model import host_of
from menuwatch.proxies.model import UNTESTED, Proxy, Untested

TESTS_AT_ONCE = 32
_TEST_SECONDS = 15.0
"""Longest wait for the answer to a test: one that takes longer is of no use."""
_LONGEST_TURN_SECONDS = 30.0
"""Turns within a host's budget come sooner than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """One request through one proxy. `ok`: the target answered, whatever it said, so the proxy does its part. `reason` says what
    came of it, as `reached shop.test: HTTP 404` or `the proxy does not answer`; `elapsed_ms` from the call to the end."""

    id: int
    address: str
    ok: bool
    verdict: Verdict
    status: int | None
    elapsed_ms: float
    reason: str

    @classmethod
    def of(cls, proxy: Proxy, probed: Probed) -> Tested:
        """What the request says about this proxy."""
        found, reason = probed.judgement, probed.judgement.reason
        reached = probed.answered or finding(probed) is Finding.WORKS
        return cls(
            id=proxy.id,
            address=proxy.address,
            ok=reached,
            verdict=found.verdict,
            status=probed.status,
            elapsed_ms=probed.elapsed_ms,
            reason=f"reached {probed.host}: {reason}" if reached else reason,
        )

    @property
    def refused(self) -> bool:
        """The proxy does its part, and the target does not want it."""
        return self.ok and self.verdict in REFUSALS

    @property
    def words(self) -> str:
        """Whether it works, as `works`: an answer that never came, for the target's sake or ours, says nothing about the proxy."""
        if self.ok:
            return "works, but is refused" if self.refused else "works"
        blameless = self.verdict in (Verdict.TARGET_DOWN, Verdict.RATE_LIMITED, Verdict.CLIENT_BUG)
        return "could not be tested" if blameless else "fails"


class NotNow(Refused):
    """The host is not to be asked for a while, not even for a test."""

    def __init__(self, host: str, wait: float) -> None:
        soon = f"{wait:.0f} s" if wait < 120 else f"{wait / 60:.0f} min"
        super().__init__(f"{UNTESTED}{host} is not to be asked now; look again in {soon}")


class Tester:
    """Makes test requests, each when the host's budget allows it."""

    def __init__(
        self,
        pool: Pool,
        settings: Settings,
        *,
        url: str | None = None,
        clock: Clock | None = None,
        ca_file: str | None = None,
        permit: Permit | None = None,
    ) -> None:
        """Raises Refused for a `url` that cannot be asked for."""
        self._probe = Probe(settings, clock=clock, ca_file=ca_file, timeout_seconds=_TEST_SECONDS)
        self.vault = self._probe.vault
        self._url = url or settings.dutchie_base_url
        if not self._url.startswith(("http://", "https://")) or not host_of(self._url):
            raise Refused("the address to test with starts with http:// or https://, as https://example.com/")
        errands = Errands(pool, settings, clock=clock)
        self._permit = permit or errands.permit
        self._record = errands.record

    async def __call__(self, proxy: Proxy) -> Probed:
        """Raises NotNow where the host wants to be left alone for longer than one waits for one's turn."""
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

    async def trouble(self, proxy: Proxy) -> str | None:
        """Why this proxy should not be put to work yet, None where nothing speaks against it."""
        try:
            probed = await self(proxy)
        except NotNow as error:
            return Untested(error)
        return probed.judgement.reason if finding(probed) is Finding.FAILS else None
