"""The cheapest basket near a place: what several products cost at one store, over two stores and over any number of stores.

- **Item.** A canonical product in one size, or any product of a category in one size, a number of times.
- **Offer.** An option on offer now, specials included, at a store whose menu is not stale. Prices for patients count only on request.
  A shop with menus on two platforms is one place: the fresher menu with the item counts.
- **Slips.** An offer at less than a fifth of the item's median price, over three places or more, is taken for a slip of the menu (a
  price per gram, a deposit) and left out.
- **Choice.** As few items missing as possible, then the lowest cost, then fewer stores. The choice of two stores is exact: all pairs
  are compared that can be cheaper than the best so far.
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, Any

from msgspec import Struct, structs

from menuwatch.analytics.products import IMPLAUSIBLE, LEAST
from menuwatch.catalog.taxonomy.categories import CATEGORIES
from menuwatch.catalog.taxonomy.sizes import size_of, size_order
from menuwatch.core.errors import InvalidField, InvalidFields
from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all
from menuwatch.geo.circle import Circle
from menuwatch.geo.units import METERS_PER_MILE
from menuwatch.stores.service import explain_no_stores_near

_q = sql.load(__package__, "basket.sql")

MOST_ITEMS, MOST_QUANTITY = 30, 100
MOST_STORES = 500
"""Stores that are compared: the nearest ones."""
MOST_SHOWN = 50
"""Stores that are listed with what they lack."""

EACH = "each"
"""How options without a size are asked for."""
_ITEM = re.compile(r"\s*(?P<what>[^:*]+?)\s*(?::\s*(?P<size>[^*]+?)\s*)?(?:\*\s*(?P<quantity>\d{1,3})\s*)?")
ITEM_FORM = "PRODUCT:SIZE or CATEGORY:SIZE, such as `4711:3.5 g` or `flower:3.5 g`, with `*2` behind it for two of them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """One requested item: a canonical product by its id, or a category. A `size` of None stands for the product's only one,
    an empty one for options without a size."""

    text: str
    product: int | None = None
    category: str | None = None
    size: str | None = None
    quantity: int = 1


class BasketItem(Struct, kw_only=True, frozen=True):
    """One item of the basket."""

    item: Annotated[str, doc("The item as requested.")]
    canonical_product_id: Annotated[
        int | None, doc("Null for any product of a category; differs from the requested id if that product was merged.")
    ]
    name: Annotated[str, doc("Name of the product, or the category.")]
    brand: str | None
    category: str | None
    size: Annotated[str | None, doc("Size; null if the product has none.")]
    quantity: int
    stores: Annotated[int, doc("Of the compared stores, those that offer it.")]
    lowest: Annotated[Decimal | None, doc("Lowest price of one; null if no store offers it.")]
    implausible: Annotated[
        int,
        doc("Offers left out because they cost less than a fifth of the item's median price: likely errors of a menu."),
    ]


class BasketLine(Struct, kw_only=True, frozen=True):
    """An item at the store where it is bought."""

    item: str
    product_id: Annotated[int, doc("Id of the listing.")]
    canonical_product_id: Annotated[int | None, doc("Null for a listing that is not matched yet.")]
    name: Annotated[str, doc("Name on the menu.")]
    option: Annotated[str, doc("Size or package, as on the menu.")]
    size: str | None
    quantity: int
    price: Annotated[Decimal, doc("Price of one, specials included.")]
    cost: Annotated[Decimal, doc("`price` times `quantity`.")]
    medical: Annotated[bool, doc("Whether the price is for patients.")]
    crawled_at: Annotated[Instant, doc("The crawl that saw the price last.")]


class BasketStop(Struct, kw_only=True, frozen=True):
    """A store with what is bought there."""

    dispensary_id: Annotated[int, doc("Id of the store; of several menus of one shop, the nearest or first.")]
    store: str
    location_id: int | None
    city: str | None
    state: str | None
    miles: Annotated[Decimal, doc("Distance from the place, in miles.")]
    cost: Decimal
    lines: list[BasketLine]


class Basket(Struct, kw_only=True, frozen=True):
    """Where to buy which item."""

    cost: Decimal
    missing: Annotated[list[str], doc("Items that are not in it, as requested.")]
    stops: Annotated[list[BasketStop], doc("Stores, the nearest first.")]


class BasketStore(Struct, kw_only=True, frozen=True):
    """What one store has of the basket."""

    dispensary_id: int
    store: str
    location_id: int | None
    city: str | None
    state: str | None
    miles: Annotated[Decimal, doc("Distance from the place, in miles.")]
    crawled_at: Annotated[Instant, doc("Time of the oldest of these menus.")]
    items: Annotated[int, doc("Items that it offers.")]
    cost: Annotated[Decimal, doc("Cost of these items.")]
    missing: Annotated[list[str], doc("Items that it does not offer, as requested.")]


class CheapestBasket(Struct, kw_only=True, frozen=True):
    """The cheapest ways to buy all items near a place."""

    currency: Annotated[
        str | None,
        doc(
            "USD or CAD: that of the nearest store whose menu is not stale, or of the nearest store if all are. All prices are "
            "in it. Null if there is no store."
        ),
    ]
    compared_stores: Annotated[int, doc("Stores whose offers are compared, a shop on two platforms once.")]
    stale_stores: Annotated[
        int, doc("Menus left out because they were not crawled for more than twice their interval.")
    ]
    other_currency_stores: Annotated[int, doc("Menus left out because their prices are in another currency.")]
    farther_stores: Annotated[int, doc("Menus left out because 500 others are nearer.")]
    notice: Annotated[str | None, doc("Why there is no basket; null if there is one.")]
    items: list[BasketItem]
    one_store: Annotated[Basket | None, doc("At the cheapest store that has all items; null if none has all of them.")]
    two_stores: Annotated[
        Basket | None,
        doc("At two stores at most: all items, or as many as two stores have; null if they have none."),
    ]
    any_stores: Annotated[Basket | None, doc("Every item where it costs least; null if no store has any.")]
    stores: Annotated[
        list[BasketStore], doc("What each store has, those with the most items first, then the cheapest; at most 50.")
    ]


def parse_item(text: str) -> Want:
    """Reads `4711:3.5 g`, `flower:3.5g*2` or `4711`; raises InvalidField. Pure."""
    match = _ITEM.fullmatch(text)
    if match is None or len(text) > 200:
        raise InvalidField("item", f"{text[:60]!r} is not an item: write {ITEM_FORM}")
    what, said, quantity = match["what"].lower(), match["size"], int(match["quantity"] or 1)
    if not 1 <= quantity <= MOST_QUANTITY:
        raise InvalidField("item", f"{text!r}: the quantity must be from 1 to {MOST_QUANTITY}")
    size = None if said is None else size_of({"option": said})
    if said is not None and said.lower() == EACH:
        size = ""
    elif said is not None and size is None:
        raise InvalidField("item", f"{text!r}: {said!r} is not a size; write it as 3.5 g, 100 mg or 10 pieces")
    if what.isdecimal() and 0 < int(what) < 2**63:
        return Want(text=text, product=int(what), size=size, quantity=quantity)
    if what not in CATEGORIES:
        known = ", ".join(sorted(CATEGORIES))
        raise InvalidField("item", f"{text!r}: {what!r} is neither the id of a canonical product nor one of {known}")
    if not size:
        raise InvalidField("item", f"{text!r} needs a size, such as {what}:3.5 g")
    return Want(text=text, category=what, size=size, quantity=quantity)


def parse_items(texts: Sequence[str]) -> list[Want]:
    """Reads the items of a basket, from one to MOST_ITEMS; raises InvalidField for each that is none. Pure."""
    if not 1 <= len(texts) <= MOST_ITEMS:
        raise InvalidField("item", f"{len(texts)} items: a basket has from 1 to {MOST_ITEMS}")
    wants, errors = [], []
    for text in texts:
        try:
            wants.append(parse_item(text))
        except InvalidField as error:
            errors.append(error)
    if errors:
        raise InvalidFields(errors)
    if twice := [want.text for n, want in enumerate(wants) if _key(want) in map(_key, wants[:n])]:
        raise InvalidField("item", f"{twice[0]!r} is in the basket twice: use a quantity, such as *2")
    return wants


def _key(want: Want) -> tuple[Any, ...]:
    return want.product, want.category, want.size


@dataclass(slots=True)
class _Place:
    """A shop: its menus, and its offer of each item by the item's position."""

    stores: list[Row]
    offers: dict[int, Row]

    @property
    def meters(self) -> int:
        return int(self.stores[0]["meters"])


async def find_cheapest_basket(
    conn: Connection, wants: Sequence[Want], circle: Circle, *, medical: bool = False
) -> CheapestBasket:
    """The cheapest baskets of these items in the circle; `medical`: prices for patients as well. Raises InvalidField for a product
    that does not exist or is offered in several sizes."""
    near = await fetch_all(conn, _q.stores_near, circle._asdict(), prepare=False)
    fresh = [store for store in near if not store["is_stale"]]
    currency = next((store["currency"] for store in [*fresh, *near]), None)
    same = [store for store in fresh if store["currency"] == currency]
    stores = {store["dispensary_id"]: store for store in same[:MOST_STORES]}
    products = await _read_products(conn, wants)
    offers = await _read_offers(conn, wants, products, stores, medical=medical)
    wants = _with_sizes(wants, offers)
    places: dict[int, _Place] = {}
    for store in stores.values():
        places.setdefault(store["place"], _Place([], {})).stores.append(store)
    items = []
    for n, want in enumerate(wants):
        best = _best_by_place([one for one in offers[n] if (one["size"] or "") == want.size], stores)
        kept = _plausible(best)
        for place, offer in kept.items():
            places[place].offers[n] = offer
        items.append(_item(want, products, kept, len(best) - len(kept)))
    selling = sorted((place for place in places.values() if place.offers), key=lambda one: one.meters)
    chosen = {most: _choose(selling, wants, most) for most in (1, 2, None)}
    alone = chosen[1]
    return CheapestBasket(
        currency=currency,
        compared_stores=len(places),
        stale_stores=len(near) - len(fresh),
        other_currency_stores=len(fresh) - len(same),
        farther_stores=len(same) - len(stores),
        notice=_notice(stores, selling) if near else await explain_no_stores_near(conn),
        items=items,
        one_store=alone if alone is not None and not alone.missing else None,
        two_stores=chosen[2],
        any_stores=chosen[None],
        stores=[_store(place, wants) for place in _by_use(selling, wants)[:MOST_SHOWN]],
    )


def _notice(stores: Mapping[int, Row], selling: Sequence[_Place]) -> str | None:
    if not stores:
        return "All menus in this circle are stale: these stores were not crawled for more than twice their interval."
    return None if selling else "No store in this circle offers any of these items now."


async def _read_products(conn: Connection, wants: Sequence[Want]) -> dict[int, Row]:
    """The live canonical products by the ids that were asked for."""
    ids = [want.product for want in wants if want.product is not None]
    rows = {row["requested_id"]: row for row in await fetch_all(conn, _q.products, {"ids": ids})} if ids else {}
    if unknown := [want for want in wants if want.product is not None and want.product not in rows]:
        raise InvalidFields(
            [InvalidField("item", f"{one.text!r}: canonical product {one.product} does not exist") for one in unknown]
        )
    return rows


async def _read_offers(
    conn: Connection, wants: Sequence[Want], products: Mapping[int, Row], stores: Mapping[int, Row], *, medical: bool
) -> list[list[Row]]:
    """The offers that could be of each item, of all sizes."""
    values = {
        "ids": sorted({row["id"] for row in products.values()}),
        "categories": sorted({want.category for want in wants if want.category is not None}),
        "stores": list(stores),
    }
    rows: list[Row] = []
    if values["ids"]:
        rows += await fetch_all(conn, _q.offers_of_products, values, prepare=False)
    if values["categories"]:
        rows += await fetch_all(conn, _q.offers_of_categories, values, prepare=False)
    by_key: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        if row["medical"] and not medical:
            continue
        row["size"] = size_of(row)
        by_key[row["category"] or row["canonical_product_id"]].append(row)
    keys = [want.category if want.product is None else products[want.product]["id"] for want in wants]
    return [by_key[key] for key in keys]


def _with_sizes(wants: Sequence[Want], offers: Sequence[Sequence[Row]]) -> list[Want]:
    """The items with their sizes. A product without a size in the request has the only one that it is offered in; raises
    InvalidField."""
    found, errors = [], []
    for want, rows in zip(wants, offers, strict=True):
        sizes = sorted({row["size"] for row in rows}, key=size_order)
        if want.size is not None or not sizes:
            found.append(want)
        elif len(sizes) == 1:
            found.append(replace(want, size=sizes[0] or ""))
        else:
            names = ", ".join(size or EACH for size in sizes)
            errors.append(InvalidField("item", f"{want.text!r} needs a size, one of: {names}"))
    if errors:
        raise InvalidFields(errors)
    return found


def _best_by_place(offers: Sequence[Row], stores: Mapping[int, Row]) -> dict[int, Row]:
    """The cheapest offer of the freshest menu that has the item, by place."""
    best: dict[int, Row] = {}
    for offer in offers:
        store = stores[offer["dispensary_id"]]
        offer["crawled_at"] = store["crawled_at"]
        known = best.get(store["place"])
        if known is None or _rank(offer) < _rank(known):
            best[store["place"]] = offer
    return best


def _rank(offer: Row) -> tuple[Any, ...]:
    return -offer["crawled_at"].timestamp(), offer["price"], offer["product_id"]


def _plausible(best: Mapping[int, Row]) -> dict[int, Row]:
    """The offers without those that cost a fraction of the median."""
    if len(best) < LEAST:
        return dict(best)
    usual = statistics.median(offer["price"] for offer in best.values())
    return {place: offer for place, offer in best.items() if offer["price"] * IMPLAUSIBLE >= usual}


def _item(want: Want, products: Mapping[int, Row], offers: Mapping[int, Row], implausible: int) -> BasketItem:
    product = None if want.product is None else products[want.product]
    return BasketItem(
        item=want.text,
        canonical_product_id=product["id"] if product else None,
        name=product["name"] if product else f"any {want.category}",
        brand=product["brand"] if product else None,
        category=product["category"] if product else want.category,
        size=want.size or None,
        quantity=want.quantity,
        stores=len(offers),
        lowest=min((offer["price"] for offer in offers.values()), default=None),
        implausible=implausible,
    )


_MISSING = 10**15
"""What a missing item counts in hundredths of a cent: more than any basket costs."""


def _choose(places: Sequence[_Place], wants: Sequence[Want], most: int | None) -> Basket | None:
    """The cheapest basket over at most `most` stores (1, 2 or None for any number), places by distance. Pure."""
    if not places:
        return None
    costs = [_costs(place, wants) for place in places]
    if most == 1:
        chosen = [min(range(len(places)), key=lambda n: sum(costs[n]))]
    elif most == 2:
        chosen = list(cheapest_pair(costs))
    else:
        chosen = list(range(len(places)))
    # Of equal prices, the nearest place counts.
    sources = [min(chosen, key=lambda n: costs[n][item]) for item in range(len(wants))]
    found = [item for item, n in enumerate(sources) if costs[n][item] < _MISSING]
    stops = [
        _stop(places[n], [_line(places[n].offers[item], wants[item]) for item in found if sources[item] == n])
        for n in sorted({sources[item] for item in found})
    ]
    missing = [want.text for item, want in enumerate(wants) if item not in found]
    return Basket(cost=sum((stop.cost for stop in stops), Decimal(0)), missing=missing, stops=stops)


def _costs(place: _Place, wants: Sequence[Want]) -> list[int]:
    return [
        int(place.offers[n]["price"] * 10_000) * want.quantity if n in place.offers else _MISSING
        for n, want in enumerate(wants)
    ]


def cheapest_pair(costs: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The one or two rows with the lowest sum of the lower cost of each column. No partner can make a row cheaper than the lowest
    costs of all rows do, so rows are tried in the order of that bound until it reaches the best pair. Pure."""
    lowest = [min(column) for column in zip(*costs, strict=True)]
    bounds = sorted((sum(map(min, row, lowest)), n) for n, row in enumerate(costs))
    best, alone = min((sum(row), n) for n, row in enumerate(costs))
    pair: tuple[int, ...] = (alone,)
    for place, (bound, first) in enumerate(bounds):
        if bound >= best:
            break
        for _, second in bounds[place + 1 :]:
            cost = sum(map(min, costs[first], costs[second]))
            if cost < best:
                best, pair = cost, tuple(sorted((first, second)))
    return pair


def _line(offer: Row, want: Want) -> BasketLine:
    fields = {name: offer[name] for name in BasketLine.__struct_fields__ if name in offer}
    return BasketLine(item=want.text, quantity=want.quantity, cost=offer["price"] * want.quantity, **fields)


def _miles(place: _Place) -> Decimal:
    return Decimal(f"{place.meters / METERS_PER_MILE:.1f}")


def _stop(place: _Place, lines: list[BasketLine]) -> BasketStop:
    store = place.stores[0]
    fields = {name: store[name] for name in BasketStop.__struct_fields__ if name in store}
    return BasketStop(miles=_miles(place), cost=sum((line.cost for line in lines), Decimal(0)), lines=lines, **fields)


def _by_use(places: Sequence[_Place], wants: Sequence[Want]) -> Sequence[_Place]:
    return sorted(places, key=lambda place: sum(_costs(place, wants)))


def _store(place: _Place, wants: Sequence[Want]) -> BasketStore:
    fields = {name: place.stores[0][name] for name in BasketStore.__struct_fields__ if name in place.stores[0]}
    fields["crawled_at"] = min(offer["crawled_at"] for offer in place.offers.values())
    return BasketStore(
        **fields,
        miles=_miles(place),
        items=len(place.offers),
        cost=sum((offer["price"] * wants[n].quantity for n, offer in place.offers.items()), Decimal(0)),
        missing=[want.text for n, want in enumerate(wants) if n not in place.offers],
    )


ROW_FIELDS = (
    "basket", "dispensary_id", "store", "miles", "item", "product_id", "canonical_product_id", "name", "option", "size", "quantity",
    "currency", "price", "cost", "medical", "crawled_at",
)  # fmt: skip


def basket_rows(found: CheapestBasket) -> list[dict[str, Any]]:
    """Every line of every basket as a row of ROW_FIELDS. Pure."""
    rows = []
    for name in ("one_store", "two_stores", "any_stores"):
        one: Basket | None = getattr(found, name)
        for stop in one.stops if one else ():
            for line in stop.lines:
                row = {"basket": name, "currency": found.currency, **structs.asdict(stop), **structs.asdict(line)}
                rows.append({field: row[field] for field in ROW_FIELDS})
    return rows
