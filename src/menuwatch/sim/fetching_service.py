"""A service that fetches pages and calls a webhook with them, of SerpWatch's shape: `POST /api/v2/browser`, bearer token, results as a
list, by themselves or in an envelope, pages inline or behind an address, plain, gzip or Brotli.

It really fetches, and it really calls. What becomes of an order (lost, doubled, failed, late, in which shape) follows from the seed
and the order's `post_id`, so a run can be had again whatever the order of its requests. Late calls overtake each other.
"""

from __future__ import annotations

import asyncio
import gzip
import random
import time
from base64 import b64encode
from collections import Counter
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

import httpx
import msgspec

from menuwatch.sim.http import Answer, HttpServer, Request
from menuwatch.sim.manners import Manners

PATH = "/api/v2/browser"
_AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
_SECONDS = 30.0


@dataclass(slots=True)
class Stats:
    """What has happened so far. `orders` are taken ones; `calls` went out, `answers` counts their statuses ("error": none came)."""

    orders: int = 0
    refused: int = 0
    unauthorized: int = 0
    invalid: int = 0
    lost: int = 0
    doubled: int = 0
    failed: int = 0
    calls: int = 0
    stored: int = 0


@dataclass(frozen=True, slots=True)
class Taken:
    """One order. `at` is a time of the machine's own clock, in seconds."""

    at: float
    url: str
    post_id: str
    request_id: str
    iso_code: str | None


class FetchingService:
    """`start`, then `url` is its address. `close` drops what is under way."""

    def __init__(self, token: str, *, manners: Manners | None = None, seed: int = 1, held: bool = False) -> None:
        """`held`: pages are fetched, and nobody is called until `release`."""
        self.manners = manners if manners is not None else Manners()
        self.stats = Stats()
        self.answers: Counter[str] = Counter()
        self.taken: list[Taken] = []
        self._token = token
        self._seed = seed
        self._held: list[tuple[str, bytes]] | None = [] if held else None
        self._results: dict[str, bytes] = {}
        self._under_way: set[asyncio.Task[None]] = set()
        self._server = HttpServer(self._answer)
        self._client: httpx.AsyncClient | None = None

    @property
    def url(self) -> str:
        """Scheme, address and port."""
        return self._server.url

    async def start(self, port: int = 0) -> None:
        """Listens; 0 takes a free port."""
        self._client = httpx.AsyncClient(
            follow_redirects=True, trust_env=False, timeout=_SECONDS, headers={"User-Agent": _AGENT}
        )
        await self._server.start(port)

    async def close(self) -> None:
        """Stops."""
        await self._server.close()
        for task in list(self._under_way):
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()

    async def settled(self) -> None:
        """Waits until nothing is under way any more."""
        while self._under_way:
            await asyncio.gather(*self._under_way, return_exceptions=True)

    async def release(self, *, shuffled: bool = False) -> int:
        """Makes the calls that are held, one after the other, in a fixed order or in another; returns how many."""
        await self.settled()
        calls, self._held = self._held or [], []
        calls.sort()
        if shuffled:
            random.Random(f"{self._seed}:{self.stats.calls}").shuffle(calls)
        for url, body in calls:
            await self._call(url, body)
        return len(calls)

    def document(self) -> dict[str, Any]:
        """Figures for whoever runs it."""
        return {**asdict(self.stats), "answers": dict(self.answers), "under_way": len(self._under_way)}

    async def _answer(self, request: Request) -> Answer:
        if request.method == "GET" and request.path.startswith("/results/"):
            body = self._results.get(request.path.rpartition("/")[2])
            return (
                _said(404, {"detail": "Not Found"}) if body is None else Answer(200, body, "application/octet-stream")
            )
        if request.path != PATH:
            return _said(404, {"detail": "Not Found"})
        if request.method != "POST":
            return _said(405, {"detail": "Method Not Allowed"})
        if request.headers.get("authorization") != f"Bearer {self._token}":
            self.stats.unauthorized += 1
            return _said(401, {"detail": "Could not validate credentials"})
        return self._order(request.body)

    def _order(self, body: bytes) -> Answer:
        try:
            wanted = msgspec.json.decode(body, type=dict[str, Any])
        except msgspec.MsgspecError:
            wanted = {}
        wrong = [
            {"loc": ["body", name], "msg": "field required", "type": "value_error.missing"}
            for name in ("url", "device", "postback_url", "post_id")
            if not isinstance(wanted.get(name), str) or not wanted[name]
        ]
        if wrong:
            self.stats.invalid += 1
            return _said(422, {"detail": wrong})
        rng = self._rng(wanted["post_id"])
        if rng.random() < self.manners.refuse:
            self.stats.refused += 1
            more = {"Retry-After": f"{self.manners.retry_after:g}", "X-RateLimit-Remaining": "0"}
            said = {"code": "ThrottlingException", "retry_after": self.manners.retry_after}
            return _said(429, said, more)
        self.stats.orders += 1
        request_id = f"req-{self.stats.orders}"
        self.taken.append(Taken(time.monotonic(), wanted["url"], wanted["post_id"], request_id, wanted.get("iso_code")))
        task = asyncio.create_task(self._serve(wanted, request_id, rng))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return _said(200, {"id": request_id} if rng.random() < 0.5 else {"request_id": request_id, "status": "queued"})

    async def _serve(self, wanted: dict[str, Any], request_id: str, rng: random.Random) -> None:
        lost, doubled, failed = (rng.random() < share for share in self._shares())
        waits = [rng.uniform(0, self.manners.slow) for _ in range(2 if doubled else 1)]
        result: dict[str, Any] = {"url": wanted["url"], "post_id": wanted["post_id"], "request_id": request_id}
        if failed:
            self.stats.failed += 1
            result |= {"success": False, "html": None, "error": "Navigation timeout of 60000 ms exceeded"}
        else:
            result |= await self._fetched(wanted["url"], request_id, rng)
        if lost:
            self.stats.lost += 1
            return
        self.stats.doubled += doubled
        body = msgspec.json.encode(_shaped(result, rng))
        for wait in sorted(waits):
            if wait:
                await asyncio.sleep(wait)
            if self._held is not None:
                self._held.append((wanted["postback_url"], body))
            else:
                await self._call(wanted["postback_url"], body)

    def _shares(self) -> tuple[float, float, float]:
        return self.manners.lose, self.manners.double, self.manners.fail

    async def _fetched(self, url: str, request_id: str, rng: random.Random) -> dict[str, Any]:
        assert self._client is not None, "started"
        try:
            page = (await self._client.get(url)).content
        except httpx.HTTPError as error:
            return {"success": False, "html": None, "error": f"net::ERR {type(error).__name__}"}
        packing = rng.choice(("br", "br", "gzip", "plain"))
        if rng.random() < self.manners.inline:
            text = b64encode(_packed(page, "gzip")).decode() if packing == "gzip" else page.decode("utf-8", "replace")
            return {"success": True, "html": text, "error": None}
        name = f"{request_id}.html"
        self._results[name] = (
            page[:100] + b"\xff\x00" * 50 if rng.random() < self.manners.garble else _packed(page, packing)
        )
        self.stats.stored += 1
        return {"success": True, "html": f"{self.url}/results/{name}", "error": None}

    async def _call(self, url: str, body: bytes) -> None:
        assert self._client is not None, "started"
        self.stats.calls += 1
        try:
            answer = await self._client.post(url, content=body, headers={"Content-Type": "application/json"})
            self.answers[str(answer.status_code)] += 1
        except httpx.HTTPError:
            self.answers["error"] += 1

    def _rng(self, post_id: str) -> random.Random:
        digest = blake2b(f"{self._seed}:{post_id}".encode(), digest_size=8).digest()
        return random.Random(int.from_bytes(digest, "big"))


def _shaped(result: dict[str, Any], rng: random.Random) -> Any:
    shapes = ({"status": "ok", "results": [result]}, [result], result)
    return rng.choice(shapes)


def _packed(page: bytes, packing: str) -> bytes:
    if packing == "br":
        import pyarrow as pa  # whoever wants none of it does not load the library

        packed: bytes = pa.compress(page, codec="brotli", asbytes=True)
        return packed
    return gzip.compress(page, 6) if packing == "gzip" else page


def _said(status: int, document: Any, headers: dict[str, str] | None = None) -> Answer:
    return Answer(status, msgspec.json.encode(document), headers=headers or {})
