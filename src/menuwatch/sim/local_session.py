"""The endpoints of the simulator without sockets: a session of which each request is answered in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from menuwatch.core.http import Response
from menuwatch.sim.endpoint import Endpoint
from menuwatch.sim.fault_injection import Faults
from menuwatch.sim.graphql import GraphQLEndpoint
from menuwatch.sim.http import Request
from menuwatch.sim.market import Market
from menuwatch.sim.platform import platform_names, sim_platform
from menuwatch.sim.stats import Stats

BASE_URL = "http://simulated.test"
"""Base URL of every platform in such a session."""


class LocalSession:
    """A session with the endpoint of one platform; `store` is the first of its `stores`."""

    def __init__(
        self, name: str, *, products: int, seed: int = 5, faults: Mapping[str, Any] | None = None, stores: int = 1
    ) -> None:
        dutchie = name == "dutchie"
        self.market = Market(
            seed=seed,
            stores=stores if dutchie else 0,
            products=products,
            platforms={} if dutchie else {name: stores},
        )
        self.store = self.market.stores[0]
        injected = Faults(seed)
        injected.set(faults or {})
        self.endpoint: Endpoint = (
            GraphQLEndpoint(self.market, injected, Stats())
            if dutchie
            else sim_platform(name).endpoint(self.market, injected, Stats())
        )
        self.settings: dict[str, Any] = (
            {"dutchie_base_url": BASE_URL}
            if dutchie
            else {"platforms": {name: {"base_url": BASE_URL, **sim_platform(name).settings}}}
        )
        """Settings of Menuwatch with which its adapter requests this endpoint."""

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
        """The endpoint's response; 404 for a path that it does not know."""
        parts = urlsplit(url)
        request = Request(
            method=method,
            path=parts.path,
            query={**dict(parse_qsl(parts.query, keep_blank_values=True)), **(params or {})},
            headers={"host": parts.netloc} | {name.lower(): value for name, value in (headers or {}).items()},
            body=b"" if json is None else msgspec.json.encode(json),
            peer_port=1,
        )
        answer = self.endpoint.respond(request, (None, "local"))
        target = f"{url}?{urlencode(params)}" if params else url
        if answer is None:
            return Response(404, {}, b"", target, 1.0)
        found = {name.lower(): value for name, value in answer.headers.items()}
        return Response(
            answer.status, {"content-type": answer.content_type, **found}, answer.body[: answer.cut], target, 1.0
        )


def simulated_platforms() -> list[str]:
    """Every platform of the simulator."""
    return ["dutchie", *platform_names()]
