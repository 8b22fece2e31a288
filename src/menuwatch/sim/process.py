"""The simulator as a child process, and a handle to steer it.

The child ends with its standard input, so it never outlives whoever started it, killed or not. The truth about the market is
worked out here, from the same seed, and not asked of the child.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import quote, urlsplit

import msgspec

from menuwatch.sim.arrivals import Arrival
from menuwatch.sim.ledger import Counts, Known, Ledger
from menuwatch.sim.market import IMAGE_BASE, Market
from menuwatch.sim.model import Rates
from menuwatch.sim.server import World

_START_SECONDS = 30.0
_STOP_SECONDS = 5.0


class SimulatorError(Exception):
    """The simulator did not start, refused a command or is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """One forward proxy of the simulator."""

    protocol: Literal["http", "https", "socks5"]
    host: str
    port: int
    username: str
    password: str = field(repr=False)
    state: str
    timezone: str

    @property
    def url(self) -> str:
        """The proxy as one address, user and password in it."""
        return (
            f"{self.protocol}://{quote(self.username, safe='')}:{quote(self.password, safe='')}@{self.host}:{self.port}"
        )


class Simulator:
    """A running simulator: `async with Simulator(stores=3, products=50) as simulator: …`."""

    def __init__(
        self,
        *,
        stores: int = 12,
        products: int = 150,
        weedmaps: int = 0,
        seed: int = 1,
        proxies: int = 0,
        port: int = 0,
        recorded: Path | None = None,
        rates: Rates | None = None,
        misbehave: Mapping[str, Any] | None = None,
        image_base: str = IMAGE_BASE,
        refuse_hashes: bool = False,
    ) -> None:
        self._world = World(
            stores=stores,
            weedmaps=weedmaps,
            products=products,
            seed=seed,
            port=port,
            proxies=proxies,
            recorded=recorded,
            rates=rates if rates is not None else Rates(),
            misbehave=dict(misbehave or {}),
            image_base=image_base,
            refuse_hashes=refuse_hashes,
        )
        self.market: Market = self._world.market()
        self.truth = Ledger(self.market)
        self.now = 0
        """The present tick."""
        self._child: asyncio.subprocess.Process | None = None
        self._control = ("127.0.0.1", 0)
        self.base_url = ""
        self.weedmaps_url = ""
        self.graphql_url = ""
        self.image_url = ""
        self.proxies: tuple[Proxy, ...] = ()

    async def __aenter__(self) -> Self:
        world = self._world
        command = [
            sys.executable, "-m", "menuwatch.sim",
            "--stores", str(world.stores), "--weedmaps", str(world.weedmaps), "--products", str(world.products),
            "--seed", str(world.seed), "--port", str(world.port), "--proxies", str(world.proxies),
            "--misbehave", msgspec.json.encode(world.misbehave).decode(),
            "--rates", msgspec.json.encode(asdict(world.rates)).decode(), "--image-base", world.image_base,
            *(["--recorded", str(world.recorded)] if world.recorded is not None else []),
            *(["--refuse-hashes"] if world.refuse_hashes else []),
        ]  # fmt: skip
        self._child = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=64 * 1024 * 1024
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
        self.weedmaps_url = hello["weedmaps_url"]
        self.graphql_url = hello["graphql_url"]
        self.image_url = hello["image_url"]
        self.proxies = tuple(Proxy(**info) for info in hello["proxies"])
        control = urlsplit(hello["control_url"])
        self._control = (str(control.hostname), int(control.port or 0))
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
        """Lets the market move on and returns the tick that it is now."""
        self.now = int((await self._call("POST", "/tick", {"by": by}))["tick"])
        return self.now

    async def misbehave(self, wanted: Mapping[str, Any] | None) -> None:
        """Replaces all misbehaviour; None ends it. Kinds: `menuwatch.sim.misbehave`."""
        await self._call("POST", "/misbehave", dict(wanted or {}))

    async def accept_hashes(self, accepted: Mapping[str, str] | None) -> None:
        """The persisted queries (hash → operation) that are known from now on; None for the usual ones."""
        await self._call("POST", "/hashes", {"accept": None if accepted is None else dict(accepted)})

    async def break_proxy(
        self, index: int, kind: str | None, *, times: int | None = None, after_bytes: int = 300
    ) -> None:
        """Breaks a proxy, or mends it (None). Kinds: `menuwatch.sim.proxies.Fault`."""
        await self._call("POST", "/proxy", {"index": index, "kind": kind, "times": times, "after_bytes": after_bytes})

    async def robots(self, body: str = "", *, status: int = 200) -> None:
        """What `/robots.txt` answers from now on; at first there is none (404)."""
        await self._call("POST", "/robots", {"status": status, "body": body})

    async def arrivals(self, since: int = 0) -> list[Arrival]:
        """Every request to the web site and the image host that came after arrival number `since`, in order. Raises
        SimulatorError where so many came that some are forgotten."""
        return [Arrival(**row) for row in await self._call("GET", f"/arrivals?since={since}")]

    async def stats(self) -> dict[str, Any]:
        """What was asked and served since the last reset; see `menuwatch.sim.stats`."""
        found: dict[str, Any] = await self._call("GET", "/stats")
        return found

    async def reset_stats(self) -> None:
        """Begins to count anew."""
        await self._call("POST", "/reset", {})

    async def crawls(self) -> dict[str, list[int]]:
        """By slug, the ticks at which the whole menu was served, page by page. Readings of one menu at one tick that follow each
        other count once: a menu is read again after a fault."""
        ticks: dict[str, list[int]] = {}
        for slug, tick in (await self.stats())["crawls"]:
            listed = ticks.setdefault(slug, [])
            if not listed or listed[-1] != tick:
                listed.append(tick)
        return ticks

    async def ledger(self) -> tuple[dict[str, dict[str, Known]], Counts]:
        """The truth about everything served whole so far: by slug how the products stand, and what it all amounts to."""
        return self.expect(await self.crawls())

    def expect(self, crawls: Mapping[str, Sequence[int]]) -> tuple[dict[str, dict[str, Known]], Counts]:
        """The same for crawls at given ticks, by slug or id."""
        known: dict[str, dict[str, Known]] = {}
        total = Counts()
        for store, ticks in crawls.items():
            known[store], counts = self.truth.follow(store, ticks)
            total += counts
        return known, total

    async def _call(self, method: str, path: str, body: Any = None) -> Any:
        try:
            reader, writer = await asyncio.open_connection(*self._control, limit=64 * 1024 * 1024)
        except OSError as error:
            raise SimulatorError(f"the simulator is gone: {error}") from error
        try:
            data = b"" if body is None else msgspec.json.encode(body)
            head = (
                f"{method} {path} HTTP/1.1\r\nHost: control\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
            )
            writer.write(head.encode() + data)
            whole = await reader.read()
        finally:
            writer.close()
        head_bytes, _, answer = whole.partition(b"\r\n\r\n")
        found = msgspec.json.decode(answer) if answer else {"error": "no answer"}
        if not head_bytes.startswith(b"HTTP/1.1 200"):
            raise SimulatorError(found["error"])
        return found
