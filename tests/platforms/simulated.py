"""Menus of the simulated market, read by the real adapters in this process, without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from menuwatch.config.settings import Settings
from menuwatch.core.http import Response
from menuwatch.platforms.base import Platform
from menuwatch.platforms.registry import platforms
from menuwatch.sim.endpoint import Endpoint
from menuwatch.sim.fault_injection import Faults
from menuwatch.sim.graphql import GraphQLEndpoint
from menuwatch.sim.http import Request
from menuwatch.sim.market import Market
from menuwatch.sim.model import SimStore
from menuwatch.sim.platform import platform_names, sim_platform
from menuwatch.sim.stats import Stats

BASE_URL = "http://simulated.test"


class Simulated:
    """One store of one platform, and a session that requests its endpoint."""

    def __init__(
        self, name: str, *, products: int = 60, seed: int = 5, faults: Mapping[str, Any] | None = None
    ) -> None:
        dutchie = name == "dutchie"
        self.market = Market(seed=seed, stores=int(dutchie), products=products, platforms={} if dutchie else {name: 1})
        self.store: SimStore = self.market.stores[0]
        stats, injected = Stats(), Faults(seed)
        injected.set(faults or {})
        self.endpoint: Endpoint = (
            GraphQLEndpoint(self.market, injected, stats)
            if dutchie
            else sim_platform(name).endpoint(self.market, injected, stats)
        )
        extra = {} if dutchie else {name: {"base_url": BASE_URL, **sim_platform(name).settings}}
        settings = Settings(dutchie_base_url=BASE_URL, platforms=extra, fetch_retry_base_seconds=0.0)
        self.adapter: Platform = platforms(settings)[name]

    async def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Any | None = None,
        headers: Mapping[str, str] | None = None,
        **_: Any,
    ) -> Response:
        """The endpoint's response."""
        path, _, query = url.removeprefix(BASE_URL).partition("?")
        given = dict(pair.split("=", 1) for pair in query.split("&") if "=" in pair)
        request = Request(
            method=method,
            path=path,
            query={**given, **(params or {})},
            headers={key.lower(): value for key, value in (headers or {}).items()},
            body=b"" if json is None else msgspec.json.encode(json),
            peer_port=1,
        )
        answer = self.endpoint.respond(request, (None, "test"))
        target = f"{url}?{urlencode(params)}" if params else url
        if answer is None:
            return Response(404, {}, b"", target, 1.0)
        return Response(answer.status, {}, answer.body[: answer.cut], target, 1.0)

    def menu(self) -> Any:
        """The whole menu as the adapter fetches it."""
        return asyncio.run(self.adapter.fetch_menu(self, self.store.id))


def simulated_platforms() -> list[str]:
    """Every platform of the simulator."""
    return ["dutchie", *platform_names()]
