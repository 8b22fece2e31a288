"""The API of Sweed: product lists by store and sale type, the front page's rows, categories, stores and their configuration.

Every request is a POST that names its store in the header `storeid`; an answer does not say which store it is of. Pages count from 1
and hold at most 100 rows; a page beyond the last is empty. A number without a store is 404. `rows` has what they hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import msgspec

from menuwatch.sim.endpoint import MAX_PER_PAGE, Body, Endpoint
from menuwatch.sim.expected import OptionRow, Row, dollars
from menuwatch.sim.fault_injection import ApiRequest, Faults, Identity
from menuwatch.sim.http import Request, Response
from menuwatch.sim.market import Market, make_store, plain_store, store_name
from menuwatch.sim.model import ProductState, SimStore, percent_off
from menuwatch.sim.platform import SimPlatform, Sizes
from menuwatch.sim.platforms.sweed.rows import (
    KINDS,
    less,
    listed,
    render_rows,
    shop_url,
    store_config,
    store_info,
    terms,
)
from menuwatch.sim.stats import Stats
from menuwatch.sim.words import SHOP_NAMES

_API = re.compile(r"/_api/proxy/(?:Products|Store)/(Get[A-Za-z]+)")
_OPERATIONS = ("GetProductList", "GetProductCarouselList", "GetProductCategoryList", "GetStoreInfo", "GetStoreConfig")
_ROW_SIZE = 20
"""Products in one row of the front page."""

_BY_CONTENT: tuple[Sizes, ...] = ((("100mg", None, 24),), (("10mg", None, 7),))
_SIZES: dict[str, tuple[Sizes, ...]] = {
    "Flower": ((("3.5g", 3.5, 40),), (("7g", 7.0, 75),), (("3.5g", 3.5, 38), ("14g", 14.0, 110)),
               (("3.5g", 3.5, 36), ("7g", 7.0, 62), ("28g", 28.0, 210))),
    "Pre-Rolls": ((("1g", 1.0, 12),), (("1g", 1.0, 12), ("2.5g", 2.5, 30))),
    "Vaporizers": ((("0.5g", 0.5, 40), ("1g", 1.0, 60)), (("0.5g", 0.5, 24),)),
    "Concentrate": ((("1g", 1.0, 50),), (("0.5g", 0.5, 30),)),
    "Edible": _BY_CONTENT,
    "Tincture": _BY_CONTENT,
    "Topicals": _BY_CONTENT,
    "Oral": _BY_CONTENT,
}  # fmt: skip
_EACH: tuple[Sizes, ...] = ((("Each", None, 30),), (("Pink", None, 25), ("Crimson", None, 25)))

_encode = msgspec.json.Encoder().encode


class SweedEndpoint(Endpoint):
    """The API of one market."""

    def __init__(self, market: Market, faults: Faults, stats: Stats) -> None:
        super().__init__(market, render_rows, faults, stats)

    def respond(self, request: Request, identity: Identity) -> Response | None:
        """The response to one request, faulty or not; None where the path is not this API's."""
        match = _API.fullmatch(request.path)
        if match is None or match[1] not in _OPERATIONS:
            return None
        if request.method != "POST":
            return self._refuse(405, "Method Not Allowed")
        asked = _asked(request.body)
        if asked is None:
            return self._refuse(400, "The body is no JSON object")
        operation = match[1]
        store = self._store(operation, request, asked)
        if store is None:
            return self._refuse(404, "Store not found")
        if operation != "GetProductList":
            api_request = self._log(operation, identity, store, 0)
            return self._respond(api_request, store, lambda _: Body(_encode(self._record(operation, store))))
        number, size = asked.get("page", 1), asked.get("pageSize", 24)
        if not (_is_count(number) and _is_count(size)):
            return self._refuse(400, "page and pageSize are numbers from 1 on")
        api_request = self._log(operation, identity, store, number - 1)
        return self._respond(
            api_request, store, lambda emptied: self._list(store, api_request, asked, number, size, emptied=emptied)
        )

    def _refuse(self, status: int, message: str) -> Response:
        self._stats.refused()
        return Response(status, _encode({"message": message}))

    def _store(self, operation: str, request: Request, asked: dict[str, Any]) -> SimStore | None:
        """By the header, or by the address of its shop."""
        if operation == "GetStoreConfig" and "domain" in asked:
            address = f"https://{asked['domain']}/{asked.get('routeName', '')}"
            return next((store for store in self._market.on("sweed") if shop_url(store) == address), None)
        number = request.headers.get("storeid", "")
        return next((store for store in self._market.on("sweed") if store.id == number), None)

    def _rows(self, store: SimStore) -> list[tuple[ProductState, bytes]]:
        """Every row that the shop lists."""
        return [
            (state, row)
            for state, body in self._menus.menu(store, self.tick)
            for row in body.splitlines()
            if state.active
        ]

    def _record(self, operation: str, store: SimStore) -> Any:
        if operation == "GetStoreInfo":
            return store_info(store)
        if operation == "GetStoreConfig":
            return store_config(store)
        if operation == "GetProductCategoryList":
            return [
                {"id": other, "name": name, "imageUrl": None, "filter": {"category": [number]}}
                for name, (number, other) in _categories().items()
            ]
        rows = self._rows(store)
        titled: list[dict[str, Any]] = []
        for place, name in enumerate(_categories()):
            products = [row for state, row in rows if KINDS[state.product.category][0] == name]
            titled.append(
                {
                    "id": 3742 + place, "name": name, "description": None, "total": len(products),
                    "products": [msgspec.Raw(row) for row in products[:_ROW_SIZE]],
                    "filter": {"category": [_categories()[name][0]]}, "ruleType": "Standard", "ruleSetting": "Selectors",
                }
            )  # fmt: skip
        return titled

    def _list(
        self, store: SimStore, request: ApiRequest, asked: dict[str, Any], number: int, size: int, *, emptied: bool
    ) -> Body:
        filters = asked.get("filters") or {}
        wanted = filters.get("category") if isinstance(filters, dict) else None
        sells = store.medical if asked.get("saleType") == "Medical" else store.recreational
        listed_rows = self._rows(store) if sells else []
        rows = [(s, row) for s, row in listed_rows if not wanted or KINDS[s.product.category][1] in wanted]
        page = self._menu_page([row for _, row in rows], request, min(size, MAX_PER_PAGE), emptied=emptied)
        offs = (percent_off(state, store) for state, _ in rows)
        document = {
            "filters": [
                {
                    "key": "category", "type": "Multiple", "uiLabel": "Category", "expandedByDefault": False,
                    "presentation": "Checkbox",
                    "options": [
                        {"id": n, "name": name, "disabled": None, "selected": False, "tooltip": None}
                        for name, (n, _) in _categories().items()
                    ],
                }
            ],
            "searchFilters": [],
            "sortingMethods": [{"id": 7, "name": "Most Popular", "selected": True}],
            "attributes": None,
            "source": "ProductSearch",
            "promos": [terms(off) for off in sorted({off for off in offs if off is not None})],
            "page": number,
            "pageSize": size,
            "total": page.stated_total,
            "list": [msgspec.Raw(row) for row in page.rows],
        }  # fmt: skip
        whole = not wanted and number <= max(page.pages, 1)
        return Body(_encode(document), (number - 1, page.pages) if whole else None)


def _asked(body: bytes) -> dict[str, Any] | None:
    try:
        asked = msgspec.json.decode(body or b"{}")
    except msgspec.DecodeError:
        return None
    return asked if isinstance(asked, dict) else None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1_000_000


def _categories() -> dict[str, tuple[int, int]]:
    return {name: (number, other) for name, number, other, _ in KINDS.values()}


class _Sweed(SimPlatform):
    """Options that are sold out are not listed; quantities are exact. A shop for patients alone has medical prices, every other shop
    recreational ones. CBD alone is not shown."""

    name = "sweed"
    first_index = 300_000

    def make_store(self, rng: Random, seed: int, number: int) -> SimStore:
        shop = SHOP_NAMES[(number + 5) % len(SHOP_NAMES)]
        store = make_store(rng, seed, self.first_index + number)
        name = store_name(shop, store.city, number).replace(f" {store.city} ", f" - {store.city} ")
        store_id = str(8 + 7 * number)
        return plain_store(
            store,
            self.name,
            shop,
            id=store_id,
            slug=f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}-{store_id}",
            name=name,
            counting="manual",
        )

    def endpoint(self, market: Market, faults: Faults, stats: Stats) -> Endpoint:
        return SweedEndpoint(market, faults, stats)

    def options(self, state: ProductState, store: SimStore) -> Iterator[OptionRow]:
        off = percent_off(state, store)
        for place in listed(state):
            price = dollars(state.prices[place])
            special = None if off is None else dollars(less(state.prices[place], off))
            rec = store.recreational
            yield OptionRow(
                option=state.product.options[place],
                price_rec=price if rec else None,
                special_rec=special if rec else None,
                price_med=None if rec else price,
                special_med=None if rec else special,
                quantity=state.stock[place],
                stock="in_stock",
            )

    def row(self, row: Row, state: ProductState, store: SimStore) -> Row:
        return replace(row, cbd=row.cbd if row.thc is not None else None)

    def is_listed(self, state: ProductState, store: SimStore) -> bool:
        return bool(listed(state))

    def product_id(self, rng: Random, store: SimStore, serial: int) -> str:
        return str(int(store.id) * 100_000 + serial)

    def sizes(self, rng: Random, category: str) -> Sizes:
        return rng.choice(_SIZES.get(category, _EACH))


PLATFORM = _Sweed()
