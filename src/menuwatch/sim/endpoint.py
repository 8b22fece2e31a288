"""What the endpoints of all platforms have in common: rendered menus, pages of them, statistics, and faults."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from math import ceil
from typing import Any

import msgspec

from menuwatch.sim.fault_injection import ApiRequest, Faults, Identity
from menuwatch.sim.http import Request, Response
from menuwatch.sim.market import Market
from menuwatch.sim.model import ProductState, SimStore
from menuwatch.sim.stats import Stats

_KEPT_BYTES = 256 * 1024 * 1024
MAX_PER_PAGE = 100

_HTML = "text/html; charset=UTF-8"

BLOCK_PAGE = (
    b'<!DOCTYPE html>\n<html lang="en-US">\n<head>\n<title>Attention Required!</title>\n<meta name="robots" '
    b'content="noindex, nofollow">\n</head>\n<body>\n<h1>Sorry, you have been blocked</h1>\n<h2>You are unable to access '
    b"this site</h2>\n<p>This website is using a security service to protect itself from online attacks.</p>\n</body>\n</html>\n"
)
STOREFRONT_PAGE = (
    b'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/><title>Order online</title></head>'
    b'<body><div id="__next"></div><script src="/_next/static/chunks/main.js" async></script></body></html>\n'
)
"""The web site itself, as a misrouted gateway serves it: no challenge, and no data."""
CHALLENGE_PAGE = (
    b'<!DOCTYPE html><html lang="en-US"><head><title>Just a moment...</title></head><body><noscript>Enable JavaScript '
    b"and cookies to continue</noscript></body></html>\n"
)
_FORBIDDEN = msgspec.json.encode({"errors": [{"message": "Forbidden"}]})


@dataclass(frozen=True, slots=True)
class MenuPage:
    """One page of a menu as served, with the totals it states; `pages` is the true number."""

    rows: Sequence[bytes]
    stated_total: int
    stated_pages: int
    pages: int


@dataclass(frozen=True, slots=True)
class Body:
    """A body to be sent. `crawled` is (page, pages) where it is a page of a whole menu."""

    data: bytes
    crawled: tuple[int, int] | None = None


class Menus:
    """Rendered menus of each store at the tick last requested, so that a page is a join of existing bytes. The least recently
    requested stores are dropped first."""

    def __init__(self, market: Market, render: Callable[[ProductState, SimStore], bytes]) -> None:
        self._market = market
        self._render = render
        self._rendered: OrderedDict[int, dict[str, tuple[ProductState, bytes]]] = OrderedDict()
        self._lists: dict[int, tuple[int, list[tuple[ProductState, bytes]]]] = {}
        self._bytes = 0

    def menu(self, store: SimStore, tick: int) -> list[tuple[ProductState, bytes]]:
        """Products in the order served, each with its bytes."""
        listed = self._lists.get(store.index)
        if listed is not None and listed[0] == tick:
            self._rendered.move_to_end(store.index)
            return listed[1]
        before = self._rendered.pop(store.index, {})
        self._bytes -= sum(len(body) for _, body in before.values())
        rows = []
        for state in self._market.menu(store, tick):
            known = before.get(state.product.id)
            # An unchanged product is the same object from tick to tick.
            rows.append(known if known is not None and known[0] is state else (state, self._render(state, store)))
        self._rendered[store.index] = {state.product.id: (state, body) for state, body in rows}
        self._lists[store.index] = (tick, rows)
        self._bytes += sum(len(body) for _, body in rows)
        while self._bytes > _KEPT_BYTES and len(self._rendered) > 1:
            index, dropped = self._rendered.popitem(last=False)
            del self._lists[index]
            self._bytes -= sum(len(body) for _, body in dropped.values())
        return rows


class Endpoint(ABC):
    """The menu API of one platform at the present `tick`."""

    def __init__(
        self, market: Market, render: Callable[[ProductState, SimStore], bytes], faults: Faults, stats: Stats
    ) -> None:
        self._market = market
        self._menus = Menus(market, render)
        self.render = render
        self._faults = faults
        self._stats = stats
        self.tick = 0

    @abstractmethod
    def respond(self, request: Request, identity: Identity) -> Response | None:
        """The response to one request, faulty or not; None where the path is not this API's."""

    def _log(self, operation: str, identity: Identity, store: SimStore | None, page: int) -> ApiRequest:
        """Counts a request; `page` counts from 0."""
        return ApiRequest(
            number=self._stats.begin(operation),
            operation=operation,
            identity=identity,
            store=store.id if store is not None else None,
            slug=store.slug if store is not None else None,
            page=page,
        )

    def _respond(self, request: ApiRequest, store: SimStore | None, make_body: Callable[[bool], Body]) -> Response:
        """The response, faulty or not; `make_body` is called with whether its page is to be empty."""
        kind, parameters = self._faults.fault_for(request) or (None, {})
        if kind is not None:
            response = fault_response(kind, parameters, request.number)
            if response is not None:
                self._stats.end(request, response.status, kind)
                return response
        emptied = kind == "empty_page"
        body = make_body(emptied)
        self._stats.end(request, 200, kind)
        if kind == "truncated":
            cut = max(1, len(body.data) * 2 // 3)
            return Response(200, body.data, cut=cut) if parameters.get("abrupt") else Response(200, body.data[:cut])
        if body.crawled is not None and not emptied and store is not None:
            self._stats.served(store, self.tick, *body.crawled)
        return Response(200, body.data, wait=float(parameters.get("seconds", 1.0)) if kind == "slow" else 0.0)

    def _menu_page(self, rows: Sequence[bytes], request: ApiRequest, per_page: int, *, emptied: bool) -> MenuPage:
        """The requested page of a menu of these rows, with the faults of the store's server."""
        page = max(0, request.page or 0)
        clamp = self._store_fault("clamp", request)
        if clamp is not None:
            per_page = min(per_page, int(clamp.get("per_page", 25)))
            self._stats.note("clamp")
        total = len(rows)
        pages = ceil(total / per_page)
        chosen = rows[page * per_page : (page + 1) * per_page]
        pinned = self._store_fault("pinned", request)
        if pinned is not None and page and chosen:
            chosen = [*rows[: int(pinned.get("count", 3))], *chosen]
            self._stats.note("pinned")
        lie = self._store_fault("total_lies", request)
        stated_total, stated_pages = total, pages
        if lie is not None and total:
            stated_total = max(0, total + int(lie.get("delta", 7)))
            stated_pages = max(0, pages + int(lie.get("page_delta", 0)))
            self._stats.note("total_lies")
        return MenuPage([] if emptied else chosen, stated_total, stated_pages, pages)

    def _store_fault(self, kind: str, request: ApiRequest) -> dict[str, Any] | None:
        return self._faults.of_store(kind, request, self.tick)


def fault_response(kind: str, parameters: dict[str, Any], number: int) -> Response | None:
    """The response to request `number` with this fault, None for kinds that only change or delay the normal one."""
    if kind in ("forbidden", "tired", "refuse_all"):
        # Both forms of refusal are on record.
        return Response(403, BLOCK_PAGE, _HTML) if number % 2 else Response(403, _FORBIDDEN)
    if kind == "rate_limited":
        wait = parameters.get("retry_after", 1)
        if wait is not None and parameters.get("date"):
            wait = format_datetime(datetime.now(UTC) + timedelta(seconds=wait), usegmt=True)
        return Response(
            429,
            b'{"errors":[{"message":"Too Many Requests"}]}',
            headers={"Retry-After": str(wait)} if wait is not None else {},
        )
    if kind == "server_error":
        status = int(parameters.get("status", (500, 502, 503)[number % 3]))
        return Response(status, b"<html><body><h1>Server Error</h1></body></html>", _HTML)
    if kind == "html":
        return Response(200, STOREFRONT_PAGE, _HTML)
    if kind == "challenge":
        return Response(403, CHALLENGE_PAGE, _HTML, {"cf-mitigated": "challenge"})
    if kind == "errors":
        errors = [
            {"message": "Internal server error", "path": ["filteredProducts"], "locations": [{"line": 2, "column": 3}]}
        ]
        return Response(200, msgspec.json.encode({"errors": errors, "data": None}))
    if kind == "flood":
        items = b",".join([b"{}"] * int(parameters.get("items", 250_000)))
        return Response(200, b'{"data":{"filteredProducts":{"products":[%b]}}}' % items)
    return None
