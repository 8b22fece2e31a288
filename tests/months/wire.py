"""How a shop's shelves look on the wire of each platform, sound and spoiled. Shapes are those of the recorded answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from menuwatch.core.http import Response
from menuwatch.platforms.base import Platform
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.platforms.weedmaps.adapter import Weedmaps
from tests.months.market import Good

Name = str
Item = dict[str, Any]
Change = Callable[[Item], Item]


async def _at_once(_: float) -> None:
    """Waiting takes no time here."""


class Wire(Protocol):
    """One platform's language."""

    @property
    def name(self) -> Name: ...
    @property
    def renames(self) -> Mapping[str, Change]:
        """Schema changes, by what they are called: each makes of a sound item one of a later, unknown schema."""
        ...

    @property
    def malformed(self) -> Mapping[str, Change]:
        """Ways in which one item can be unreadable, its id apart."""
        ...

    def platform(self) -> Platform: ...
    def item(self, good: Good, store: str) -> Item: ...
    def page(self, items: Sequence[Item], *, number: int, size: int, total: int | None) -> bytes: ...
    def product_id(self, good_id: int) -> str: ...
    def store_id(self, number: int) -> str: ...
    def number(self, params: Mapping[str, str], json: Any, url: str = "", store: str = "") -> int | None: ...
    def visible(self, good: Good) -> Good | None:
        """The good as the platform shows it, None where its menu leaves it out."""
        ...

    def nameless(self, item: Item) -> Item:
        """The item without an id that can be read."""
        ...

    @property
    def selling_out(self) -> float:
        """The share of goods about to sell out that do: less than 1 where the menu would lose too many at once."""
        ...

    @property
    def unshown(self) -> Mapping[str, str]:
        """Variants of faults that nobody could tell from a sound menu of this platform, each with the reason."""
        ...

    async def respond(self, method: str, url: str, **given: Any) -> Response: ...
    def odd_envelopes(self, items: Sequence[Item]) -> Mapping[str, bytes]: ...


def _without(item: Item, *names: str) -> Item:
    return {name: value for name, value in item.items() if name not in names}


def _renamed(name: str, other: str) -> Change:
    return lambda item: {**_without(item, name), other: item[name]}


def _with(**values: Any) -> Change:
    return lambda item: {**item, **values}


def _encode(value: Any) -> bytes:
    return msgspec.json.encode(value)


@dataclass(frozen=True)
class DutchieWire:
    """`data.filteredProducts`, 24 hexadecimal digits for an id."""

    name: Name = "dutchie"

    def platform(self) -> Platform:
        return Dutchie(base_url="http://menus.invalid", retry_base_seconds=0.0, sleep=_at_once)

    def product_id(self, good_id: int) -> str:
        return f"{0x5F00_0000_0000_0000_0000_0000 + good_id:024x}"

    def store_id(self, number: int) -> str:
        return f"{0x6000_0000_0000_0000_0000_0000 + number:024x}"

    def item(self, good: Good, store: str) -> Item:
        price, product_id = (good.cents or 0) / 100, self.product_id(good.id)
        pos = good.id % 2 == 0 and good.quantity is not None
        child = {"option": "1g", "quantity": good.quantity, "quantityAvailable": good.quantity, "price": price}
        counted = good.quantity is not None and not pos
        return {
            "_id": product_id, "id": product_id, "DispensaryID": store, "Name": f"Blue Dream {good.id} | 1g",
            "brandName": f"Brand {good.id % 7}", "brandId": f"b{good.id % 7}", "type": "Flower", "subcategory": "whole-flower",
            "strainType": "Hybrid", "Status": "Active", "Image": "", "images": [], "Options": ["1g"], "rawOptions": ["1g"],
            "Prices": [price], "recPrices": [price], "medicalPrices": [price], "recSpecialPrices": [],
            "medicalSpecialPrices": [],
            "POSMetaData": {"canonicalID": str(good.id), "children": [child]} if pos else None,
            "manualInventory": [{"option": "1g", "inventory": good.quantity}] if counted else None,
            "THCContent": {"unit": "PERCENTAGE", "range": [21.5]}, "CBDContent": None, "isBelowThreshold": False,
            "optionsBelowThreshold": [], "createdAt": "1700000000000", "weight": good.id % 40, "__typename": "Products",
        }  # fmt: skip

    def page(self, items: Sequence[Item], *, number: int, size: int, total: int | None) -> bytes:
        info = {"totalCount": total, "totalPages": None if total is None else -(-total // size)}
        return _encode({"data": {"filteredProducts": {"products": items, "queryInfo": info}}})

    def visible(self, good: Good) -> Good:
        return good

    def nameless(self, item: Item) -> Item:
        return {**item, "id": None, "_id": None}

    @property
    def selling_out(self) -> float:
        return 1.0

    @property
    def unshown(self) -> Mapping[str, str]:
        return {}

    async def respond(self, method: str, url: str, **given: Any) -> Response:
        raise AssertionError(f"{method} {url} is no request for a page")

    def number(self, params: Mapping[str, str], json: Any, url: str = "", store: str = "") -> int | None:
        variables = json["variables"] if json else msgspec.json.decode(params["variables"])
        return int(variables["page"])

    @property
    def renames(self) -> Mapping[str, Change]:
        return {
            "name renamed": _renamed("Name", "displayName"),
            "name an object": lambda item: {**item, "Name": {"en": item["Name"]}},
            "stock renamed": lambda item: {**_without(item, "POSMetaData", "manualInventory"), "inventory": 3},
            "stock null": _with(POSMetaData=None, manualInventory=None),
            "options renamed": _renamed("Options", "sizes"),
            "options a text": _with(Options="1g"),
            "prices renamed": lambda item: {
                **_without(item, "Prices", "recPrices", "medicalPrices"), "price": item["Prices"][0],
            },
            "prices objects": lambda item: {**item, "recPrices": [{"cents": 100}], "Prices": [{"cents": 100}]},
            "prices null": _with(Prices=None, recPrices=None, medicalPrices=None),
            "status in other words": _with(Status="PUBLISHED"),
            "ids renamed": lambda item: {**_without(item, "id", "_id"), "productId": item["id"]},
            "ids of another kind": lambda item: {**item, "id": f"prod_{item['id'][-6:]}", "_id": None},
            "items wrapped": lambda item: {"node": item},
        }  # fmt: skip

    @property
    def malformed(self) -> Mapping[str, Change]:
        return {
            "no name": _with(Name=None),
            "price a text": _with(recPrices=["ask us"]),
            "stock an object": _with(manualInventory=[{"option": "1g", "inventory": {"n": 3}}], POSMetaData=None),
            "options numbers": _with(Options=[1]),
        }

    def odd_envelopes(self, items: Sequence[Item]) -> Mapping[str, bytes]:
        found = {"products": items, "queryInfo": {"totalCount": len(items), "totalPages": 1}}
        return {
            "list renamed": _encode({"data": {"filteredProducts": {"items": items}}}),
            "envelope renamed": _encode({"data": {"menu": found}}),
            "envelope wrapped": _encode({"result": {"data": {"filteredProducts": found}}}),
            "list an object": _encode({"data": {"filteredProducts": {"products": {str(i): x for i, x in enumerate(items)}}}}),
            "graphql errors": _encode({"errors": [{"message": "Internal server error"}], "data": None}),
            "data null": _encode({"data": None}),
        }  # fmt: skip


@dataclass(frozen=True)
class WeedmapsWire:
    """`{"meta", "data"}`, numbers for ids."""

    name: Name = "weedmaps"

    def platform(self) -> Platform:
        return Weedmaps(base_url="http://menus.invalid", retry_base_seconds=0.0, sleep=_at_once)

    def product_id(self, good_id: int) -> str:
        return str(143_000_000 + good_id)

    def store_id(self, number: int) -> str:
        return str(320_000 + number)

    def item(self, good: Good, store: str) -> Item:
        slug = f"blue-dream-{good.id}"
        dollars = (good.cents or 0) // 100
        weights = "price_half_gram price_gram price_two_grams price_eighth price_quarter price_half_ounce price_ounce"
        attributes = {
            "name": f"Blue Dream {good.id}", "slug": slug, "category_name": "Edibles", "body": "", "is_published": True,
            "license_type": "recreational", "online_orderable": True, "picture_url": None, "brand_name": f"Brand {good.id % 7}",
            "genetics": "hybrid", "prices": {"price_unit": dollars, **dict.fromkeys(weights.split(), 0), "prices_other": {}},
            "created_at": "2023-10-25T16:03:20Z", "updated_at": "2024-05-03T22:52:33Z",
            "sub_category": {"id": 32, "name": "Capsules", "slug": "capsules"}, "measurements": [], "variants": [],
            "sale": None, "compliance_net_mg": 100, "inventory_quantity": good.quantity, "shared_inventory": False,
        }  # fmt: skip
        path = f"/dispensaries/shop-{store}/menu/{slug}"
        return {
            "id": int(self.product_id(good.id)), "type": "menu_item", "attributes": attributes,
            "links": {"self": path, "order": f"https://weedmaps.com{path}"},
            "relationships": {
                "brand": None, "listing": {"data": {"id": int(store), "type": "dispensary"}}, "product": None,
                "strain": {"data": None}, "categories": {"meta": {"total": 1}, "data": [{"id": 32, "type": "category"}]},
                "tags": {"meta": {"total": 0}, "data": []},
            },
        }  # fmt: skip

    def page(self, items: Sequence[Item], *, number: int, size: int, total: int | None) -> bytes:
        return _encode({"meta": {"page": number + 1, "per_page": size, "total": total}, "data": items})

    def visible(self, good: Good) -> Good:
        return good

    def nameless(self, item: Item) -> Item:
        return {**item, "id": None, "_id": None}

    @property
    def selling_out(self) -> float:
        return 1.0

    @property
    def unshown(self) -> Mapping[str, str]:
        return {}

    async def respond(self, method: str, url: str, **given: Any) -> Response:
        raise AssertionError(f"{method} {url} is no request for a page")

    def number(self, params: Mapping[str, str], json: Any, url: str = "", store: str = "") -> int | None:
        return int(params["page"]) - 1

    @property
    def renames(self) -> Mapping[str, Change]:
        def inside(change: Change) -> Change:
            return lambda item: {**item, "attributes": change(item["attributes"])}

        return {
            "name renamed": inside(_renamed("name", "title")),
            "name an object": inside(lambda at: {**at, "name": {"en": at["name"]}}),
            "stock renamed": inside(_renamed("inventory_quantity", "stock")),
            "stock null": inside(_with(inventory_quantity=None)),
            "stock a text": inside(_with(inventory_quantity="plenty")),
            "prices renamed": inside(lambda at: {**_without(at, "prices"), "price": at["prices"]["price_unit"]}),
            "prices a number": inside(lambda at: {**at, "prices": at["prices"]["price_unit"]}),
            "prices null": inside(_with(prices=None)),
            "published in other words": inside(_with(is_published="yes")),
            "ids renamed": _renamed("id", "uuid"),
            "ids of another kind": lambda item: {**item, "id": f"wm-{item['id']}"},
            "items wrapped": lambda item: {"item": item},
            "attributes renamed": _renamed("attributes", "fields"),
        }

    @property
    def malformed(self) -> Mapping[str, Change]:
        def inside(**values: Any) -> Change:
            return lambda item: {**item, "attributes": {**item["attributes"], **values}}

        return {
            "no name": inside(name=None),
            "price a text": inside(prices={"price_unit": "ask us"}),
            "stock an object": inside(inventory_quantity={"n": 3}),
            "no attributes": _with(attributes=None),
        }

    def odd_envelopes(self, items: Sequence[Item]) -> Mapping[str, bytes]:
        meta = {"page": 1, "per_page": 100, "total": len(items)}
        return {
            "list renamed": _encode({"meta": meta, "items": items}),
            "envelope renamed": _encode({"metadata": meta, "data": items}),
            "envelope wrapped": _encode({"data": {"meta": meta, "menu_items": items}}),
            "list an object": _encode({"meta": meta, "data": {str(i): x for i, x in enumerate(items)}}),
            "errors": _encode({"errors": [{"status": "500", "title": "oops"}]}),
            "data null": _encode({"meta": meta, "data": None}),
        }


WIRES: tuple[Wire, ...] = (DutchieWire(), WeedmapsWire())
"""Platforms whose wires are written by hand, from the recordings; `all_wires` has those of the simulator, too."""
