"""The whole outside world in one process: GraphQL, Weedmaps' discovery API, images, forward proxies, and a control port for whoever
runs it.

Control: `GET /stats`, `/ledger?store&tick`, `/arrivals?since`, `POST /tick`, `/misbehave`, `/reset`, `/hashes`, `/proxy`, `/robots`;
bodies and answers JSON. Both web sites also have `/health` and `/robots.txt` (none unless told).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from menuwatch.sim.arrivals import Arrivals
from menuwatch.sim.graphql import HASHES, Endpoint
from menuwatch.sim.http import Answer, HttpServer, Request
from menuwatch.sim.images import picture
from menuwatch.sim.ledger import Ledger
from menuwatch.sim.manners import Manners
from menuwatch.sim.market import IMAGE_BASE, Market
from menuwatch.sim.misbehave import Identity, Mischief
from menuwatch.sim.model import Rates
from menuwatch.sim.pages import Menus
from menuwatch.sim.proxies import ProxyFarm, start_proxies
from menuwatch.sim.recorded import Recorded
from menuwatch.sim.stats import Stats
from menuwatch.sim.weedmaps import Discovery

if TYPE_CHECKING:
    from menuwatch.sim.shop_stand import ShopStand

GRAPHQL_PATH = "/api-3/graphql"
_GRAPHQL = re.compile(r"(/api-\d+)?/graphql/?")
_NO_PAGE = Answer(404, b"<html><body>Not found</body></html>", "text/html")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything that a simulation depends on."""

    stores: int = 12
    products: int = 150
    seed: int = 1
    port: int = 0
    proxies: int = 0
    recorded: Path | None = None
    rates: Rates = field(default_factory=Rates)
    image_base: str = IMAGE_BASE
    misbehave: dict[str, Any] = field(default_factory=dict)
    refuse_hashes: bool = False
    weedmaps: int = 0
    """Stores on the second platform, beside the `stores` on the first."""
    shop: int = 0
    """Products for each keyword of a shop that is searched, with a service that fetches for it; 0: no such shop."""
    service: Manners = field(default_factory=Manners)
    refusals: float = 0.0
    """Share of that shop's answers that are refusals."""

    def market(self) -> Market:
        """The market of this world."""
        return Market(
            seed=self.seed,
            stores=self.stores,
            products=self.products,
            weedmaps=self.weedmaps,
            rates=self.rates,
            image_base=self.image_base,
        )


class SimServer:
    """The servers of one world. `start`, then `hello` says where they are."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._market = world.market()
        self._mischief = Mischief(world.seed)
        self._mischief.set(world.misbehave)
        self._stats = Stats()
        recorded = Recorded(world.recorded) if world.recorded is not None else None
        menus = Menus(self._market)
        self._endpoint = Endpoint(menus, self._mischief, self._stats, recorded)
        self._discovery = Discovery(menus, self._mischief, self._stats)
        if world.refuse_hashes:
            self._endpoint.hashes.clear()
        self._ledger = Ledger(self._market)
        self._data = HttpServer(self._answer)
        self._listings = HttpServer(self._list)
        self._images = HttpServer(self._image)
        self._control = HttpServer(self._steer)
        self._farm = ProxyFarm()
        self._arrivals = Arrivals()
        self._robots = _NO_PAGE
        self._stand: ShopStand | None = None
        if world.shop:
            from menuwatch.sim.shop_stand import ShopStand  # its HTTP client takes a while to load

            self._stand = ShopStand(world.shop, manners=world.service, refusals=world.refusals, seed=world.seed)

    async def start(self) -> None:
        """Starts to listen. Raises OSError where the port is taken."""
        await self._data.start(self._world.port)
        await self._listings.start()
        await self._images.start()
        await self._control.start()
        if self._stand is not None:
            await self._stand.start()
        # Pictures are said to be on a host that exists nowhere: only the proxies know where it is.
        names = {urlsplit(self._world.image_base).hostname or "": f"127.0.0.1:{self._images.port}"}
        self._farm = await start_proxies(self._world.proxies, seed=self._world.seed, names=names)

    async def close(self) -> None:
        """Stops everything."""
        await self._farm.close()
        for server in (self._data, self._listings, self._images, self._control):
            await server.close()
        if self._stand is not None:
            await self._stand.close()

    def hello(self) -> dict[str, Any]:
        """Addresses and proxies."""
        return {
            "base_url": self._data.url,
            "weedmaps_url": self._listings.url,
            "graphql_url": self._data.url + GRAPHQL_PATH,
            "image_url": self._images.url,
            "control_url": self._control.url,
            "proxies": [asdict(info) for info in self._farm.infos],
            "shop": None if self._stand is None else self._stand.hello(),
            "stores": [
                {"platform": s.platform, "id": s.id, "slug": s.slug, "name": s.name, "state": s.state}
                for s in self._market.stores
            ],
        }

    async def _answer(self, request: Request) -> Answer:
        return self._logged(request, self._data, self._page)

    def _page(self, request: Request, identity: Identity) -> Answer:
        if _GRAPHQL.fullmatch(request.path):
            return self._endpoint.answer(request, identity)
        return self._plain(request)

    async def _list(self, request: Request) -> Answer:
        return self._logged(
            request,
            self._listings,
            lambda asked, identity: self._discovery.answer(asked, identity) or self._plain(asked),
        )

    def _plain(self, request: Request) -> Answer:
        """What every web site has."""
        if request.path == "/robots.txt":
            return self._robots
        if request.path == "/health":
            return Answer(200, b"ok\n", "text/plain")
        return _NO_PAGE

    async def _image(self, request: Request) -> Answer:
        self._stats.images += 1
        return self._logged(request, self._images, lambda asked, _identity: picture(asked))

    def _logged(self, request: Request, server: HttpServer, answers: Callable[[Request, Identity], Answer]) -> Answer:
        """The answer, once the arrival of the request is on record."""
        identity = (self._farm.origin_of(request.peer_port), request.headers.get("user-agent", ""))
        arrival = self._arrivals.note(server.url.removeprefix("http://"), request.path, *identity)
        answer = answers(request, identity)
        arrival.status = answer.status
        return answer

    async def _steer(self, request: Request) -> Answer:
        try:
            body = msgspec.json.decode(request.body) if request.body else {}
            found = await self._command(request.method, request.path, request.query, body)
        except (ValueError, KeyError, IndexError, TypeError, msgspec.MsgspecError) as error:
            return Answer(400, msgspec.json.encode({"error": str(error)}))
        if found is None:
            return Answer(404, msgspec.json.encode({"error": f"{request.method} {request.path} does nothing"}))
        return Answer(200, msgspec.json.encode(found))

    async def _command(self, method: str, path: str, query: Any, body: dict[str, Any]) -> Any:
        if method == "GET" and path == "/stats":
            counts = [asdict(c) for c in self._farm.counts()]
            fetched = None if self._stand is None else self._stand.service.document()
            return {"tick": self._endpoint.tick, **self._stats.document(), "proxies": counts, "service": fetched}
        if method == "GET" and path == "/ledger":
            return {i: asdict(row) for i, row in self._ledger.rows(query["store"], int(query["tick"])).items()}
        if method == "GET" and path == "/arrivals":
            return [asdict(arrival) for arrival in self._arrivals.since(int(query.get("since", 0)))]
        if method != "POST":
            return None
        if path == "/tick":
            by = int(body.get("by", 1))
            if by < 0:
                raise ValueError(f"the market only goes forward, got {by}")
            self._endpoint.tick += by
            self._discovery.tick += by
        elif path == "/misbehave":
            self._mischief.set(body)
        elif path == "/reset":
            self._stats.reset()
        elif path == "/hashes":
            self._endpoint.hashes = dict(HASHES) if body["accept"] is None else dict(body["accept"])
        elif path == "/proxy":
            await self._farm.fault(
                int(body["index"]), body["kind"], times=body.get("times"), after_bytes=int(body.get("after_bytes", 300))
            )
        elif path == "/robots":
            self._robots = Answer(
                HTTPStatus(body.get("status", 200)), str(body.get("body", "")).encode(), "text/plain; charset=utf-8"
            )
        else:
            return None
        return {"tick": self._endpoint.tick}
