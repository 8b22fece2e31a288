"""The Dovetail plugin on shops' own sites: menus by retailer and type of menu.

Items have the keys of the menu recorded in January 2026; which keys exist, which are null and what they are called follows the
recording; see there before changing anything. All shops share one server, where the host of a shop's site is the first step of the
path. Pages count from 1; a page beyond the last is empty. An unknown site answers 404 like WordPress, an unknown retailer with an
empty menu.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any
from urllib.parse import unquote

import msgspec

from menuwatch.sim.batches import SimBatch, batch_of
from menuwatch.sim.endpoint import MAX_PER_PAGE, Body, Endpoint
from menuwatch.sim.expected import OptionRow, Row, dollars, option_stock
from menuwatch.sim.fault_injection import ApiRequest, Faults, Identity
from menuwatch.sim.http import Request, Response
from menuwatch.sim.market import Market, make_store, plain_store, store_name
from menuwatch.sim.model import Content, ProductState, SimStore, percent_off
from menuwatch.sim.platform import SimPlatform
from menuwatch.sim.product_factory import slug_of
from menuwatch.sim.stats import Stats
from menuwatch.sim.words import SHOP_NAMES

_PRODUCTS = re.compile(r"/([^/]+)/wp-json/dovetail-api/v1/products/?")
_CAP = 25
_LAB_UNITS = {"PERCENTAGE": "%", "MILLIGRAMS": "mg", "MILLIGRAMS_PER_GRAM": "mg/g"}

_CATEGORIES = {
    "Flower": "Premium Flower",
    "Pre-Rolls": "Pre-Rolls",
    "Vaporizers": "Vaporizers",
    "Concentrate": "Concentrates",
    "Edible": "Edibles",
    "Tincture": "Tinctures",
    "Topicals": "Topicals",
    "Oral": "Capsules",
    "Accessories": "Accessories",
}
"""A shop's own words."""

_encoder = msgspec.json.Encoder()


class PluginEndpoint(Endpoint):
    """The plugin on the sites of one market."""

    def __init__(self, market: Market, faults: Faults, stats: Stats) -> None:
        super().__init__(market, render_item, faults, stats)

    def respond(self, request: Request, identity: Identity) -> Response | None:
        """The response to one request, faulty or not; None where the path is not the plugin's."""
        match = _PRODUCTS.fullmatch(request.path)
        if match is None:
            return None
        host = unquote(match[1])
        if request.method != "GET" or all(store.id.partition("/")[0] != host for store in self._market.on("dovetail")):
            self._stats.refused()
            return Response(404, _json({"code": "rest_no_route", "message": "No route was found matching the URL and request method.",
                                        "data": {"status": 404}}))  # fmt: skip
        number, size = _number(request, "page", 1), _number(request, "perpage", 20)
        menu_type = request.query.get("menutype", "recreational")
        key = f"{host}/{request.query.get('retailer', '')}/{menu_type}"
        store = self._market.find(key, "dovetail")
        api_request = self._log("products", identity, store, number - 1)
        if store is None:
            return self._respond(api_request, None, lambda _: Body(_page([], 0, number, 1, size)))
        return self._respond(
            api_request, store, lambda emptied: self._menu(store, api_request, number, size, emptied=emptied)
        )

    def _menu(self, store: SimStore, api_request: ApiRequest, number: int, size: int, *, emptied: bool) -> Body:
        rows = [body for _, body in self._menus.menu(store, self.tick)]
        page = self._menu_page(rows, api_request, min(size, MAX_PER_PAGE), emptied=emptied)
        body = _page(page.rows, page.stated_total, number, page.stated_pages, size)
        return Body(body, (number - 1, page.pages) if number <= max(page.pages, 1) else None)


def _page(rows: Any, total: int, number: int, pages: int, size: int) -> bytes:
    following = str(number + 1) if number < pages else ""
    head = {"total": total, "page": number, "pages": pages, "per_page": size, "next_page": following}
    return b'%s,"results":[%s]}' % (_json(head)[:-1], b",".join(rows))


def _number(request: Request, name: str, otherwise: int) -> int:
    """The parameter; WordPress takes what is no number for the default."""
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 and int(text) > 0 else otherwise


def _json(data: Any) -> bytes:
    return _encoder.encode(data)


def render_item(state: ProductState, store: SimStore) -> bytes:
    """The bytes of one element of `results`."""
    return _json(item_document(state, store))


def item_document(state: ProductState, store: SimStore) -> dict[str, Any]:
    """One element of `results`, its keys in the order of the recording."""
    product = state.product
    host, retailer, _ = store.id.split("/")
    brand = product.brand
    batch = batch_of(state)
    return {
        "id": product.id,
        "name": product.name,
        "description": product.description or None,
        "informations": {"cross": "Sherb x OG", "flavor": "Gas, Dough"} if product.serial % 4 else None,
        "link": f"https://{host}/{retailer}/shop/{product.slug}/",
        "slug": product.slug,
        "images": [{"id": None, "url": product.image, "label": None, "description": None}] if product.image else [],
        "staff_pick": product.serial % 9 == 0,
        "category": _CATEGORIES[product.category],
        "subcategory": "Default",
        "brand": None if brand is None else {
            "id": brand.id, "name": brand.label, "description": f"{brand.label} grows.", "informations": [], "images": [],
            "slug": slug_of(brand.label), "link": f"https://{host}/brands/{slug_of(brand.label)}/",
        },
        "strain_type": product.strain,
        "potency_thc": _potency(state.lab.thc),
        "potency_cbd": _potency(state.lab.cbd),
        "effects": ["Calm", "Happy"] if product.serial % 3 else None,
        "specials": None,
        "sku": None,
        "split_source": None,
        "tags": [product.name] if product.serial % 2 else [],
        "terpenes": _terpenes(batch),
        "variants": [_variant(state, store, place) for place in range(len(product.options))],
        "cannabinoids": [],
        "meta_data": {
            "id": product.pos_number,
            "category": "Packed",
            "sku": product.pos_number.zfill(8),
            "batch_id": None if batch is None else str(int(product.pos_number) + state.product.serial),
            "batch_name": None if batch is None else batch.number,
            "alternate_name": None,
            "lab_result_url": None if batch is None else batch.certificate_url,
            "packaged_date": None if batch is None else f"{batch.packaged_on:%Y-%m-%d}T05:00:00.000Z",
        },
        "options": None,
        "collections": None,
    }  # fmt: skip


def _variant(state: ProductState, store: SimStore, place: int) -> dict[str, Any]:
    product, option = state.product, state.product.options[place]
    paid, regular = _prices(state, store, place)
    return {
        "id": f"{product.id}~{option}",
        "name": option,
        "option": option,
        "quantity": _quantity(state, place),
        "price": _money(paid),
        "regular_price": _money(regular),
        "special_ids": [],
        "images": None,
    }


def _money(cents: int) -> int | float:
    return cents // 100 if cents % 100 == 0 else cents / 100


def _quantity(state: ProductState, place: int) -> int:
    return min(_CAP, state.stock[place]) if state.active else 0


def _prices(state: ProductState, store: SimStore, place: int) -> tuple[int, int]:
    """(paid, regular), in cents."""
    off, regular = percent_off(state, store), state.prices[place]
    return (regular if off is None else (regular * (100 - off) + 50) // 100), regular


def _potency(content: Content | None) -> dict[str, Any]:
    if content is None or content.range is None:
        return {"formatted": None, "range": None, "unit": "%"}
    unit = _LAB_UNITS[content.unit]
    return {"formatted": f"{content.range[-1]}{unit}", "range": list(content.range), "unit": unit}


def _terpenes(batch: SimBatch | None) -> list[dict[str, Any]]:
    """The list also names terpenes that were not measured."""
    measured = batch.terpenes if batch is not None else ()
    rows: list[tuple[str, float | None]] = [*measured, *([("Camphene", None)] if measured else [])]
    return [
        {
            "id": slug_of(name), "name": name, "description": f"{name} is found in nature.", "unit": "PERCENTAGE",
            "unit_symbol": "%", "value": value, "aromas": ["Woody"], "effects": ["Calm"], "benefits": ["Stress Relief"],
        }
        for name, value in rows
    ]  # fmt: skip


class _Dovetail(SimPlatform):
    """An option has one price, that of the menu's type; a price below the regular one is a special price; quantities end at 25, and
    what is not sold has none."""

    name = "dovetail"
    first_index = 600_000

    def make_store(self, rng: Random, seed: int, number: int) -> SimStore:
        shop = SHOP_NAMES[(number + 4) % len(SHOP_NAMES)]
        store = make_store(rng, seed, self.first_index + number)
        menu_type = "recreational" if store.recreational else "medical"
        # Two sites of one chain would be one site with two retailers.
        store_id = f"{slug_of(shop)}.example/{slug_of(store.city)}-{number}/{menu_type}"
        return plain_store(
            store,
            self.name,
            shop,
            id=store_id,
            slug=store_id,
            name=f"{store_name(shop, store.city, number)} Online",
            counting="manual",
        )

    def endpoint(self, market: Market, faults: Faults, stats: Stats) -> Endpoint:
        return PluginEndpoint(market, faults, stats)

    def options(self, state: ProductState, store: SimStore) -> Iterator[OptionRow]:
        for place, option in enumerate(state.product.options):
            paid, regular = _prices(state, store, place)
            price, special = dollars(regular), dollars(paid) if paid < regular else None
            quantity = min(_CAP, state.stock[place]) if state.active else 0
            rec = store.recreational
            yield OptionRow(
                option=option,
                price_rec=price if rec else None,
                special_rec=special if rec else None,
                price_med=None if rec else price,
                special_med=None if rec else special,
                quantity=quantity,
                stock=option_stock(quantity),
            )

    def row(self, row: Row, state: ProductState, store: SimStore) -> Row:
        batch = batch_of(state)
        if batch is None:
            return row
        return replace(
            row,
            terpenes=tuple((name, Decimal(str(value)), "PERCENTAGE") for name, value in batch.terpenes),
            batch={
                "batch_id": batch.number,
                "packaged_on": batch.packaged_on.isoformat(),
                "certificate_url": batch.certificate_url,
            },
        )


PLATFORM = _Dovetail()
