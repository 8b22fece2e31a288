"""A service that fetches pages and sends them to a webhook, with SerpWatch's API: `POST /api/v2/browser`, bearer token, results as a
list, alone or in an envelope, pages inline or behind a URL, plain, gzip or Brotli.

It makes real requests. What happens to an order (lost, doubled, failed, late, in which shape) follows from the seed and the order's
`post_id`, so runs are reproducible whatever the order of requests. Late calls overtake each other.
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
from typing import TYPE_CHECKING, Any

import msgspec

from menuwatch.sim.config import ServiceQuality
from menuwatch.sim.http import HttpServer, Request, Response

if TYPE_CHECKING:
    import httpx

PATH = "/api/v2/browser"
_AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
_SECONDS = 30.0


@dataclass(slots=True)
class Stats:
    """Counters. `orders`: accepted ones; `calls`: webhook calls sent."""

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
    """One accepted order. `at` is on the monotonic clock, in seconds."""

    at: float
    url: str
    post_id: str
    request_id: str
    iso_code: str | None


class FetchingService:
    """`start`, then `url` is its address. `close` drops what is under way."""

    def __init__(self, token: str, *, quality: ServiceQuality | None = None, seed: int = 1, held: bool = False) -> None:
        """`held`: pages are fetched, but webhooks are held back until `release`."""
        self.quality = quality if quality is not None else ServiceQuality()
        self.stats = Stats()
        self.answers: Counter[str] = Counter()
        self.taken: list[Taken] = []
        self._token = token
        self._seed = seed
        self._held: list[tuple[str, bytes]] | None = [] if held else None
        self._results: dict[str, bytes] = {}
        self._pending: set[asyncio.Task[None]] = set()
        self._server = HttpServer(self._answer)
        self._client: httpx.AsyncClient | None = None
        self._errors: type[Exception] = Exception

    @property
    def url(self) -> str:
        """Scheme, address and port."""
        return self._server.url

    async def start(self, port: int = 0) -> None:
        """Listens; 0 takes a free port."""
        import httpx  # imported only when needed

        self._errors = httpx.HTTPError
        self._client = httpx.AsyncClient(
            follow_redirects=True, trust_env=False, timeout=_SECONDS, headers={"User-Agent": _AGENT}
        )
        await self._server.start(port)

    async def close(self) -> None:
        """Stops."""
        await self._server.close()
        for task in list(self._pending):
            task.cancel()
        await asyncio.gather(*self._pending, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()

    async def settled(self) -> None:
        """Waits until nothing is in progress."""
        while self._pending:
            await asyncio.gather(*self._pending, return_exceptions=True)

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
        """Statistics."""
        return {**asdict(self.stats), "answers": dict(self.answers), "under_way": len(self._pending)}

    async def _answer(self, request: Request) -> Response:
        if request.method == "GET" and request.path.startswith("/results/"):
            body = self._results.get(request.path.rpartition("/")[2])
            return (
                _json(404, {"detail": "Not Found"}) if body is None else Response(200, body, "application/octet-stream")
            )
        if request.path != PATH:
            return _json(404, {"detail": "Not Found"})
        if request.method != "POST":
            return _json(405, {"detail": "Method Not Allowed"})
        if request.headers.get("authorization") != f"Bearer {self._token}":
            self.stats.unauthorized += 1
            return _json(401, {"detail": "Could not validate credentials"})
        return self._order(request.body)

    def _order(self, body: bytes) -> Response:
        try:
            order = msgspec.json.decode(body, type=dict[str, Any])
        except msgspec.MsgspecError:
            order = {}
        errors = [
            {"loc": ["body", name], "msg": "field required", "type": "value_error.missing"}
            for name in ("url", "device", "postback_url", "post_id")
            if not isinstance(order.get(name), str) or not order[name]
        ]
        if errors:
            self.stats.invalid += 1
            return _json(422, {"detail": errors})
        rng = self._rng(order["post_id"])
        if rng.random() < self.quality.refuse:
            self.stats.refused += 1
            headers = {"Retry-After": f"{self.quality.retry_after:g}", "X-RateLimit-Remaining": "0"}
            return _json(429, {"code": "ThrottlingException", "retry_after": self.quality.retry_after}, headers)
        self.stats.orders += 1
        request_id = f"req-{self.stats.orders}"
        self.taken.append(Taken(time.monotonic(), order["url"], order["post_id"], request_id, order.get("iso_code")))
        task = asyncio.create_task(self._serve(order, request_id, rng))
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)
        return _json(200, {"id": request_id} if rng.random() < 0.5 else {"request_id": request_id, "status": "queued"})

    async def _serve(self, order: dict[str, Any], request_id: str, rng: random.Random) -> None:
        quality = self.quality
        lost, doubled, failed = (rng.random() < share for share in (quality.lose, quality.double, quality.fail))
        waits = [rng.uniform(0, quality.slow) for _ in range(2 if doubled else 1)]
        result: dict[str, Any] = {"url": order["url"], "post_id": order["post_id"], "request_id": request_id}
        if failed:
            self.stats.failed += 1
            result |= {"success": False, "html": None, "error": "Navigation timeout of 60000 ms exceeded"}
        else:
            result |= await self._fetch(order["url"], request_id, rng)
        if lost:
            self.stats.lost += 1
            return
        self.stats.doubled += doubled
        body = msgspec.json.encode(_envelope(result, rng))
        for wait in sorted(waits):
            if wait:
                await asyncio.sleep(wait)
            if self._held is not None:
                self._held.append((order["postback_url"], body))
            else:
                await self._call(order["postback_url"], body)

    async def _fetch(self, url: str, request_id: str, rng: random.Random) -> dict[str, Any]:
        assert self._client is not None, "started"
        try:
            page = (await self._client.get(url)).content
        except self._errors as error:
            return {"success": False, "html": None, "error": f"net::ERR {type(error).__name__}"}
        packing = rng.choice(("br", "br", "gzip", "plain"))
        if rng.random() < self.quality.inline:
            text = b64encode(_compress(page, "gzip")).decode() if packing == "gzip" else page.decode("utf-8", "replace")
            return {"success": True, "html": text, "error": None}
        name = f"{request_id}.html"
        self._results[name] = (
            page[:100] + b"\xff\x00" * 50 if rng.random() < self.quality.garble else _compress(page, packing)
        )
        self.stats.stored += 1
        return {"success": True, "html": f"{self.url}/results/{name}", "error": None}

    async def _call(self, url: str, body: bytes) -> None:
        assert self._client is not None, "started"
        self.stats.calls += 1
        try:
            answer = await self._client.post(url, content=body, headers={"Content-Type": "application/json"})
            self.answers[str(answer.status_code)] += 1
        except self._errors:
            self.answers["error"] += 1

    def _rng(self, post_id: str) -> random.Random:
        digest = blake2b(f"{self._seed}:{post_id}".encode(), digest_size=8).digest()
        return random.Random(int.from_bytes(digest, "big"))


def _envelope(result: dict[str, Any], rng: random.Random) -> Any:
    shapes = ({"status": "ok", "results": [result]}, [result], result)
    return rng.choice(shapes)


def _compress(page: bytes, packing: str) -> bytes:
    if packing == "br":
        import pyarrow as pa  # imported only when needed

        packed: bytes = pa.compress(page, codec="brotli", asbytes=True)
        return packed
    return gzip.compress(page, 6) if packing == "gzip" else page


def _json(status: int, document: Any, headers: dict[str, str] | None = None) -> Response:
    return Response(status, msgspec.json.encode(document), headers=headers or {})
