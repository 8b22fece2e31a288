"""The simulator as the bench needs it, a process of its own: menus behind TLS and gzip-compressed, as a real platform serves them,
and HTTP proxies with a login in front of them.

    python world.py OPTIONS    a JSON object: stores, products, pages, seed, proxies, clamp

Prints one line of JSON with its addresses and proxies, and ends when standard input is closed. Every page is rendered and compressed
before that, so that what it costs to serve one is the same for whoever comes first.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from dataclasses import replace
from typing import Any

import msgspec
import trustme
from zlib_ng import gzip_ng

from menuwatch.platforms.dutchie.queries import DEFAULT_HASHES, FILTERED_PRODUCTS, menu_variables
from menuwatch.sim.config import SimConfig
from menuwatch.sim.http import HttpServer, Request, Response
from menuwatch.sim.proxies import start_proxies
from menuwatch.sim.server import GRAPHQL_PATH, SimServer

_WORTH_COMPRESSING = 1000


class SecureSimulator(SimServer):
    """The simulator, its menus behind TLS; answers are compressed once and kept, since the market stands still."""

    def __init__(self, config: SimConfig, context: ssl.SSLContext, *, proxies: int) -> None:
        super().__init__(config)
        self._data = HttpServer(self._compressed, tls=context)
        self._proxy_count = proxies
        self._packed: dict[tuple[str, bytes], bytes] = {}

    async def start(self) -> None:
        await super().start()
        self._farm = await start_proxies(self._proxy_count, seed=self._config.seed, protocols=("http",))

    async def prepare(self, pages: int) -> None:
        """Renders and compresses every page that will be asked for."""
        for store in self._market.stores:
            for number in range(pages):
                variables = msgspec.json.encode(menu_variables(store.id, number)).decode()
                persisted = {"persistedQuery": {"version": 1, "sha256Hash": DEFAULT_HASHES[FILTERED_PRODUCTS.name]}}
                query = {"variables": variables, "extensions": json.dumps(persisted)}
                headers = {"accept-encoding": "gzip", "apollo-require-preflight": "true"}
                await self._compressed(Request("GET", GRAPHQL_PATH, query, headers, b"", 0))
        self._stats.reset()

    async def _compressed(self, request: Request) -> Response:
        answer = await self._answer(request)
        if len(answer.body) < _WORTH_COMPRESSING or "gzip" not in request.headers.get("accept-encoding", ""):
            return answer
        key = (request.query.get("variables", ""), request.body)
        packed = self._packed.get(key)
        if packed is None:
            packed = self._packed[key] = gzip_ng.compress(answer.body, compresslevel=6)
        return replace(answer, body=packed, headers={**answer.headers, "Content-Encoding": "gzip"})


async def run(options: dict[str, Any]) -> None:
    """Serves until standard input ends."""
    clamp = options["clamp"]
    config = SimConfig(
        stores=options["stores"],
        products=options["products"],
        seed=options["seed"],
        faults={"clamp": {"rate": 1, "per_page": clamp}} if clamp < 100 else {},
    )
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    context.set_alpn_protocols(["http/1.1"])
    server = SecureSimulator(config, context, proxies=options["proxies"])
    await server.start()
    try:
        await server.prepare(options["pages"])
        sys.stdout.write(json.dumps({**server.hello(), "ca": authority.cert_pem.bytes().decode()}) + "\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)
    finally:
        await server.close()


if __name__ == "__main__":
    asyncio.run(run(json.loads(sys.argv[1])))
