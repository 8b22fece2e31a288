"""The simulator as a child process, and a handle that controls it.

The child ends with its standard input, so it never outlives its parent, even a killed one. The expected state of the market is
computed here, from the same seed, not requested from the child.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx
import msgspec

from menuwatch.sim.config import SimConfig
from menuwatch.sim.expected import Counts, ExpectedState, Known
from menuwatch.sim.market import Market
from menuwatch.sim.proxies import ProxyInfo
from menuwatch.sim.stats import Arrival

_START_SECONDS = 30.0
_STOP_SECONDS = 5.0


class SimulatorError(Exception):
    """The simulator did not start, refused a command or is gone."""


class Simulator:
    """A running simulator: `async with Simulator(stores=3, products=50) as simulator: …`."""

    def __init__(self, **config: Any) -> None:
        """`config`: fields of `SimConfig`."""
        self._config = SimConfig(**config)
        self.market = Market.of(self._config)
        self.expected = ExpectedState(self.market)
        self.now = 0
        """The present tick."""
        self._child: asyncio.subprocess.Process | None = None
        self._control = ""
        self.base_url = ""
        self.platforms: dict[str, dict[str, str]] = {}
        """Settings of Menuwatch for each platform besides Dutchie."""
        self.graphql_url = ""
        self.image_url = ""
        self.proxies: tuple[ProxyInfo, ...] = ()

    async def __aenter__(self) -> Self:
        config = msgspec.json.encode(self._config).decode()
        self._child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "menuwatch.sim",
            "--config",
            config,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=64 * 1024 * 1024,
        )
        assert self._child.stdout is not None, "asked for a pipe"
        try:
            line = await asyncio.wait_for(self._child.stdout.readline(), _START_SECONDS)
            if not line:
                raise SimulatorError(f"the simulator did not start (exit code {await self._child.wait()})")
            hello = msgspec.json.decode(line)
        except BaseException:
            await self._stop()
            raise
        self.base_url = hello["base_url"]
        self.platforms = hello["platforms"]
        self.graphql_url = hello["graphql_url"]
        self.image_url = hello["image_url"]
        self.proxies = tuple(ProxyInfo(**info) for info in hello["proxies"])
        self._control = hello["control_url"]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    @property
    def pid(self) -> int:
        """The child's process id."""
        assert self._child is not None, "started"
        return self._child.pid

    async def _stop(self) -> None:
        child = self._child
        if child is None or child.stdin is None:
            return
        child.stdin.close()
        try:
            await asyncio.wait_for(child.wait(), _STOP_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()

    async def tick(self, by: int = 1) -> int:
        """Advances the market and returns the present tick."""
        self.now = int((await self._call("POST", "/tick", {"by": by}))["tick"])
        return self.now

    async def inject_faults(self, faults: Mapping[str, Any] | None) -> None:
        """Replaces all faults; None ends them. Kinds: `menuwatch.sim.fault_injection`."""
        await self._call("POST", "/faults", dict(faults or {}))

    async def accept_hashes(self, accepted: Mapping[str, str] | None) -> None:
        """The persisted queries (hash → operation) that are known from now on; None for the usual ones."""
        await self._call("POST", "/hashes", {"accept": None if accepted is None else dict(accepted)})

    async def break_proxy(
        self, index: int, kind: str | None, *, times: int | None = None, after_bytes: int = 300
    ) -> None:
        """Breaks a proxy, or repairs it (None). Kinds: `menuwatch.sim.proxies.Fault`."""
        await self._call("POST", "/proxy", {"index": index, "kind": kind, "times": times, "after_bytes": after_bytes})

    async def robots(self, body: str = "", *, status: int = 200) -> None:
        """What `/robots.txt` answers from now on; at first there is none (404)."""
        await self._call("POST", "/robots", {"status": status, "body": body})

    async def arrivals(self, since: int = 0) -> list[Arrival]:
        """Every request to the web site and the image host that came after arrival number `since`, in order. Raises
        SimulatorError where so many came that some are forgotten."""
        return [Arrival(**row) for row in await self._call("GET", f"/arrivals?since={since}")]

    async def stats(self) -> dict[str, Any]:
        """Requests and responses since the last reset; see `menuwatch.sim.stats`."""
        document: dict[str, Any] = await self._call("GET", "/stats")
        return document

    async def reset_stats(self) -> None:
        """Resets the statistics."""
        await self._call("POST", "/reset", {})

    async def crawls(self) -> dict[str, list[int]]:
        """By slug, the ticks at which the whole menu was served, page by page. Consecutive readings of one menu at one tick
        count once: a menu is read again after a fault."""
        ticks: dict[str, list[int]] = {}
        for slug, tick in (await self.stats())["crawls"]:
            listed = ticks.setdefault(slug, [])
            if not listed or listed[-1] != tick:
                listed.append(tick)
        return ticks

    async def expected_state(self) -> tuple[dict[str, dict[str, Known]], Counts]:
        """The expected state of everything served completely so far: products by slug, and the totals."""
        return self.expect(await self.crawls())

    def expect(self, crawls: Mapping[str, Sequence[int]]) -> tuple[dict[str, dict[str, Known]], Counts]:
        """The same for crawls at given ticks, by slug or id."""
        known: dict[str, dict[str, Known]] = {}
        total = Counts()
        for store, ticks in crawls.items():
            known[store], counts = self.expected.follow(store, ticks)
            total += counts
        return known, total

    async def _call(self, method: str, path: str, body: Any = None) -> Any:
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=600) as client:
                response = await client.request(method, self._control + path, json=body)
        except httpx.TransportError as error:
            raise SimulatorError(f"the simulator is gone: {error}") from error
        document = msgspec.json.decode(response.content)
        if response.status_code != 200:
            raise SimulatorError(document["error"])
        return document
