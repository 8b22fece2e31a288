"""The simulated outside world in one process: Dutchie's GraphQL, the APIs of further platforms, images, forward proxies, and a
control port.

Control: `GET /stats`, `/expected?store&tick`, `/arrivals?since`, `POST /tick`, `/faults`, `/reset`, `/hashes`, `/proxy`, `/robots`;
bodies and responses JSON. All web sites also have `/health` and `/robots.txt` (none unless configured).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from menuwatch.sim.config import SimConfig
from menuwatch.sim.expected import ExpectedState
from menuwatch.sim.fault_injection import Faults, Identity
from menuwatch.sim.fetching_service import FetchingService
from menuwatch.sim.graphql import HASHES, GraphQLEndpoint
from menuwatch.sim.http import HttpServer, Request, Response
from menuwatch.sim.images import image_response
from menuwatch.sim.market import Market
from menuwatch.sim.platform import sim_platform
from menuwatch.sim.proxies import ProxyFarm, start_proxies
from menuwatch.sim.recorded import Recorded
from menuwatch.sim.shop import KEYWORDS, Refusals, Shop
from menuwatch.sim.shop_catalog import ShopCatalog
from menuwatch.sim.stats import Arrivals, Stats

GRAPHQL_PATH = "/api-3/graphql"
_GRAPHQL = re.compile(r"(/api-\d+)?/graphql/?")
TOKEN = "simulated-serpwatch-token"  # noqa: S105 - the service is a simulated one
_NO_PAGE = Response(404, b"<html><body>Not found</body></html>", "text/html")


class SimServer:
    """The servers of one simulation. `start`, then `hello` returns their addresses."""

    def __init__(self, config: SimConfig) -> None:
        self._config = config
        self._market = Market.of(config)
        self._faults = Faults(config.seed)
        self._faults.set(config.faults)
        self._stats = Stats()
        recorded = Recorded(Path(config.recorded)) if config.recorded is not None else None
        self._graphql = GraphQLEndpoint(self._market, self._faults, self._stats, recorded)
        self._endpoints = {
            name: sim_platform(name).endpoint(self._market, self._faults, self._stats) for name in config.platforms
        }
        if config.refuse_hashes:
            self._graphql.hashes.clear()
        self._expected = ExpectedState(self._market)
        self._data = HttpServer(self._answer)
        self._sites = {name: HttpServer(self._site(name)) for name in self._endpoints}
        self._images = HttpServer(self._image)
        self._control = HttpServer(self._steer)
        self._farm = ProxyFarm()
        self._arrivals = Arrivals()
        self._robots = _NO_PAGE
        self._shop: Shop | None = None
        self._service: FetchingService | None = None
        if config.shop:
            catalog = ShopCatalog(KEYWORDS, products=config.shop, seed=config.seed)
            self._shop = Shop(catalog, refusals=Refusals(rate=config.refusals), seed=config.seed)
            self._service = FetchingService(TOKEN, quality=config.service, seed=config.seed)

    async def start(self) -> None:
        """Starts to listen. Raises OSError where the port is taken."""
        await self._data.start(self._config.port)
        for site in self._sites.values():
            await site.start()
        await self._images.start()
        await self._control.start()
        if self._shop is not None and self._service is not None:
            await self._shop.start()
            await self._service.start()
        # The host name of images does not exist: only the proxies know its address.
        names = {urlsplit(self._config.image_base).hostname or "": f"127.0.0.1:{self._images.port}"}
        self._farm = await start_proxies(self._config.proxies, seed=self._config.seed, names=names)

    async def close(self) -> None:
        """Stops everything."""
        await self._farm.close()
        for server in (self._data, *self._sites.values(), self._images, self._control):
            await server.close()
        if self._shop is not None and self._service is not None:
            await self._service.close()
            await self._shop.close()

    def hello(self) -> dict[str, Any]:
        """Addresses and proxies."""
        return {
            "base_url": self._data.url,
            "platforms": {
                name: {"base_url": site.url, **sim_platform(name).settings} for name, site in self._sites.items()
            },
            "graphql_url": self._data.url + GRAPHQL_PATH,
            "image_url": self._images.url,
            "control_url": self._control.url,
            "proxies": [asdict(info) for info in self._farm.infos],
            "shop": self._shop_settings(),
            "stores": [
                {"platform": s.platform, "id": s.id, "slug": s.slug, "name": s.name, "state": s.state}
                for s in self._market.stores
            ],
        }

    def _shop_settings(self) -> dict[str, Any] | None:
        """The settings with which Menuwatch crawls the shop, and its keywords."""
        if self._shop is None or self._service is None:
            return None
        return {
            "keywords": list(KEYWORDS),
            "CJ_BASE_URL": self._shop.url,
            "SERPWATCH_URL": self._service.url,
            "SERPWATCH_TOKEN": TOKEN,
            "CRAWL_RESULT_HOSTS": self._service.url.removeprefix("http://"),
        }

    async def _answer(self, request: Request) -> Response:
        return self._logged(request, self._data, self._page)

    def _page(self, request: Request, identity: Identity) -> Response:
        if _GRAPHQL.fullmatch(request.path):
            return self._graphql.respond(request, identity)
        return self._plain(request)

    def _site(self, name: str) -> Callable[[Request], Awaitable[Response]]:
        """The web site of a platform besides Dutchie."""

        async def answer(request: Request) -> Response:
            return self._logged(
                request,
                self._sites[name],
                lambda r, identity: self._endpoints[name].respond(r, identity) or self._plain(r),
            )

        return answer

    def _plain(self, request: Request) -> Response:
        """What every web site has."""
        if request.path == "/robots.txt":
            return self._robots
        if request.path == "/health":
            return Response(200, b"ok\n", "text/plain")
        return _NO_PAGE

    async def _image(self, request: Request) -> Response:
        self._stats.images += 1
        return self._logged(request, self._images, lambda r, _identity: image_response(r))

    def _logged(
        self, request: Request, server: HttpServer, answers: Callable[[Request, Identity], Response]
    ) -> Response:
        """The answer, once the arrival of the request is on record."""
        identity = (self._farm.origin_of(request.peer_port), request.headers.get("user-agent", ""))
        arrival = self._arrivals.note(server.url.removeprefix("http://"), request.path, *identity)
        answer = answers(request, identity)
        arrival.status = answer.status
        return answer

    async def _steer(self, request: Request) -> Response:
        try:
            body = msgspec.json.decode(request.body) if request.body else {}
            found = await self._command(request.method, request.path, request.query, body)
        except (ValueError, KeyError, IndexError, TypeError, msgspec.MsgspecError) as error:
            return Response(400, msgspec.json.encode({"error": str(error)}))
        if found is None:
            return Response(404, msgspec.json.encode({"error": f"{request.method} {request.path} does nothing"}))
        return Response(200, msgspec.json.encode(found))

    async def _command(self, method: str, path: str, query: Any, body: dict[str, Any]) -> Any:
        if method == "GET" and path == "/stats":
            counts = [asdict(c) for c in self._farm.counts()]
            fetched = None if self._service is None else self._service.document()
            return {"tick": self._graphql.tick, **self._stats.document(), "proxies": counts, "service": fetched}
        if method == "GET" and path == "/expected":
            return {i: asdict(row) for i, row in self._expected.rows(query["store"], int(query["tick"])).items()}
        if method == "GET" and path == "/arrivals":
            return [asdict(arrival) for arrival in self._arrivals.since(int(query.get("since", 0)))]
        if method != "POST":
            return None
        if path == "/tick":
            by = int(body.get("by", 1))
            if by < 0:
                raise ValueError(f"the market only goes forward, got {by}")
            self._graphql.tick += by
            for endpoint in self._endpoints.values():
                endpoint.tick += by
        elif path in ("/faults", "/misbehave"):
            self._faults.set(body)
        elif path == "/reset":
            self._stats.reset()
        elif path == "/hashes":
            self._graphql.hashes = dict(HASHES) if body["accept"] is None else dict(body["accept"])
        elif path == "/proxy":
            await self._farm.fault(
                int(body["index"]), body["kind"], times=body.get("times"), after_bytes=int(body.get("after_bytes", 300))
            )
        elif path == "/robots":
            self._robots = Response(
                HTTPStatus(body.get("status", 200)), str(body.get("body", "")).encode(), "text/plain; charset=utf-8"
            )
        else:
            return None
        return {"tick": self._graphql.tick}
