"""The search index and the API of stores, on one host.

Pages count from 0 and hold at most 1,000 rows; a page beyond the last, and the menu of an unknown store, are empty. A wrong key is
403.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import asin, cos, radians, sin, sqrt
from typing import Any

import msgspec

from menuwatch.sim.endpoint import Body, Endpoint
from menuwatch.sim.fault_injection import ApiRequest, Faults, Identity
from menuwatch.sim.http import Request, Response
from menuwatch.sim.market import Market
from menuwatch.sim.model import SimStore
from menuwatch.sim.platforms.jane.rows import render_row
from menuwatch.sim.platforms.jane.stores import store_hit, store_record
from menuwatch.sim.stats import Stats

APP_ID = "VFM4X0N23A"
API_KEY = "9d1c0b7ae2f34561bb50c7d89e6f1234"
MAX_PER_PAGE = 1000

_INDEX = re.compile(r"/1/indexes/(menu-products|stores)-production/query")
_STORE = re.compile(r"/v1/stores/(\d+)")
_FILTER = re.compile(r"\s*store_id\s*[:=]\s*(\d+)\s*")
_EARTH_METERS = 6_371_000


class SearchEndpoint(Endpoint):
    """The search index and the API of stores of one market, on one host."""

    def __init__(self, market: Market, faults: Faults, stats: Stats) -> None:
        super().__init__(market, render_row, faults, stats)

    def respond(self, request: Request, identity: Identity) -> Response | None:
        """The response to one request, faulty or not; None where the path is not Jane's."""
        if (one := _STORE.fullmatch(request.path)) is not None:
            return self._one_store(request, identity, one[1])
        index = _INDEX.fullmatch(request.path)
        if index is None:
            return None
        if request.method != "POST":
            return self._refuse(405, "Method not allowed")
        key = request.headers.get("x-algolia-application-id"), request.headers.get("x-algolia-api-key")
        if key != (APP_ID, API_KEY):
            return self._refuse(403, "Invalid Application-ID or API key")
        if "iheartjane.com" not in request.headers.get("referer", ""):
            return self._refuse(403, "Method not allowed with this referer")
        try:
            question = msgspec.json.decode(request.body, type=dict[str, Any])
            number, size = int(question.get("page", 0)), min(int(question.get("hitsPerPage", 20)), MAX_PER_PAGE)
        except (msgspec.MsgspecError, ValueError, TypeError):
            return self._refuse(400, "Invalid JSON in the body")
        if number < 0 or size < 1:
            return self._refuse(400, "invalid page or hitsPerPage")
        if index[1] == "stores":
            api_request = self._log("listings", identity, None, number)
            return self._respond(api_request, None, lambda _: self._stores(question, number, size))
        asked = _FILTER.fullmatch(str(question.get("filters", "")))
        if asked is None:
            return self._refuse(400, "filters: unexpected token")
        store = self._market.find(asked[1], "jane")
        api_request = self._log("menu_items", identity, store, number)
        return self._respond(
            api_request, store, lambda emptied: self._menu(store, api_request, number, size, emptied=emptied)
        )

    def _refuse(self, status: int, message: str) -> Response:
        self._stats.refused()
        return Response(status, msgspec.json.encode({"message": message, "status": status}))

    def _one_store(self, request: Request, identity: Identity, store_id: str) -> Response:
        store = self._market.find(store_id, "jane")
        if request.method != "GET" or store is None:
            self._stats.refused()
            return Response(404, b'{"error":"not found"}')
        api_request = self._log("listing", identity, store, 0)
        record = store_record(store, len(self._market.menu(store, self.tick)))
        return self._respond(api_request, store, lambda _: Body(msgspec.json.encode({"store": record})))

    def _stores(self, question: dict[str, Any], number: int, size: int) -> Body:
        stores = [store for store in self._market.on("jane") if _is_around(store, question)]
        hits = [store_hit(store, len(self._market.menu(store, self.tick))) for store in stores]
        rows = [msgspec.json.encode(hit) for hit in hits[number * size : (number + 1) * size]]
        return Body(_answer(rows, len(hits), -(-len(hits) // size), number, size))

    def _menu(self, store: SimStore | None, api_request: ApiRequest, number: int, size: int, *, emptied: bool) -> Body:
        rows = [body for _, body in self._menus.menu(store, self.tick)] if store is not None else []
        page = self._menu_page(rows, api_request, size, emptied=emptied)
        body = _answer(page.rows, page.stated_total, page.stated_pages, number, size)
        return Body(body, (number, page.pages) if number <= max(page.pages, 1) - 1 or not page.rows else None)


def _answer(rows: Sequence[bytes], total: int, pages: int, number: int, size: int) -> bytes:
    about = {
        "nbHits": total,
        "page": number,
        "nbPages": pages,
        "hitsPerPage": size,
        "exhaustiveNbHits": True,
        "query": "",
        "params": f"query=&hitsPerPage={size}&page={number}",
        "processingTimeMS": 5,
    }
    return b'{"hits":[%s],%s' % (b",".join(rows), msgspec.json.encode(about)[1:])


def _is_around(store: SimStore, question: dict[str, Any]) -> bool:
    """Whether the store is in the circle that the question names."""
    if "aroundLatLng" not in question:
        return True
    latitude, longitude = (float(text) for text in str(question["aroundLatLng"]).split(","))
    lat, lat_other = radians(latitude), radians(store.latitude)
    half = (
        sin((lat_other - lat) / 2) ** 2 + cos(lat) * cos(lat_other) * sin(radians(store.longitude - longitude) / 2) ** 2
    )
    return 2 * _EARTH_METERS * asin(sqrt(half)) <= float(question.get("aroundRadius", 1000))
