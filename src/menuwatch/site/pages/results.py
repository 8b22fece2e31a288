"""The search results page, with its facets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from msgspec import Struct
from starlette.concurrency import run_in_threadpool

from menuwatch.catalog.taxonomy.sizes import size_order
from menuwatch.db import partitions
from menuwatch.db.pool import Connection
from menuwatch.geo import postcodes
from menuwatch.site import format as words
from menuwatch.site import screen
from menuwatch.site.search_query import MILES, SORTS, SearchQuery
from menuwatch.storefront import page_queries
from menuwatch.storefront.page_queries import ListedStore, NearbyStores
from menuwatch.storefront.search import (
    PRICE_STEPS,
    THC_STEPS,
    Order,
    ResultCounts,
    SearchPage,
    find_city,
    find_stores_named,
    list_brands,
    search,
)
from menuwatch.storefront.search_text import cities, places, without_sign
from menuwatch.web.dependencies import ReadConn

router = APIRouter()

_ON_PAGE = 24
_PATIENCE_SECONDS = 5.0


class Option(Struct, frozen=True, kw_only=True):
    """One link of a facet."""

    label: str
    items: int | None
    link: str
    chosen: bool = False


@router.get("/search")
async def search_page(request: Request, conn: ReadConn) -> Response:
    """Items that match a query."""
    typed = SearchQuery.parse(request.query_params)
    asked = (await _with_place(conn, typed)).understood()
    stores = [] if typed.exact or typed.store is not None else await find_stores_named(conn, asked.q)
    place = await screen.around(conn, asked.near, asked.within)
    if place.unknown:
        asked.errors["near"] = f"{place.error} Showing products from all locations for now."
    store = await page_queries.get_store(conn, asked.store) if asked.store is not None else None
    if asked.store is not None and store is None:
        asked.errors["store"] = "That store is no longer listed; showing results from all stores."
    if asked.sort is Order.DISTANCE and place.nearby is None:
        asked = replace(asked, sort=Order.RELEVANCE)
    nearby = place.nearby
    if store is not None:
        at = dict(zip(nearby.stores, nearby.meters, strict=True)).get(store.id, 0) if nearby else 0
        nearby = NearbyStores(stores=(store.id,), meters=(at,))
    brands = await list_brands(conn, asked.brands)
    search_request = asked.request(brands=[brand["id"] for brand in brands], nearby=nearby)
    # Answers in time even for an expensive search, if only with a timeout message.
    async with partitions.patience(conn, lock_seconds=_PATIENCE_SECONDS, statement_seconds=_PATIENCE_SECONDS):
        results = await search(conn, search_request, order=asked.sort, after=asked.after, limit=_ON_PAGE)
    brand_names = {brand["slug"]: brand["name"] for brand in brands}
    sign = words.sign(store.state if store is not None else place.state)
    context: dict[str, Any] = {
        "asked": asked,
        "place": place,
        "store": store,
        "query": typed.q,
        "as_typed": typed.link(exact=True) if asked != typed else None,
        "stores": stores,
        "results": results,
        "heading": _heading(asked, store, brand_names),
        "facets": _facets(asked, results.counts, brand_names, sign),
        "chips": _chips(asked, brand_names, store, place, sign),
        "sign": sign,
        "sorts": [
            Option(label=label, items=None, link=asked.link(sort=order), chosen=asked.sort is order)
            for order, label in SORTS.items()
            if order is not Order.DISTANCE or place.nearby is not None
        ],
        "next": None if results.next is None else asked.link(after=results.next),
        "first": asked.link() if asked.after is not None else None,
        "watch_link": f"/alerts/new?{urlencode([('of', 'search'), *_as_shown(asked, results).pairs()])}"
        if asked.narrowed or asked.q
        else None,
        "miles": MILES,
        "near_link": lambda near: asked.link(near=near),
        "canonical": screen.whole(request, _canonical(asked)),
        "description": f"{_heading(asked, store, brand_names)}: prices, potency and stock at every store.",
        # Of all filter combinations, only those of a single category may be indexed by search engines.
        "index": asked == SearchQuery(category=asked.category),
    }
    return screen.render(request, "results.html", context, status=200)


def _as_shown(asked: SearchQuery, results: SearchPage) -> SearchQuery:
    """The query for what the results show: with corrected words, and without those that were left out."""
    parsed = results.parsed
    return replace(asked, q=parsed.read_as) if parsed.guessed or parsed.left_out else asked


async def _with_place(conn: Connection, asked: SearchQuery) -> SearchQuery:
    """The query with the place that its text names as the place to search near."""
    if asked.exact or asked.near or not asked.q:
        return asked
    for name, rest in places(asked.q):
        if await run_in_threadpool(postcodes.find, name) is not None:
            return replace(asked, q=rest, near=name)
    rests = dict(cities(asked.q))
    city = await find_city(conn, list(rests))
    if city is None:
        return asked
    # A name that several places have is left to the page, which says which of them it shows.
    several = len(await run_in_threadpool(postcodes.find_all, city["city"])) > 1
    near = city["city"] if several else f"{city['city']}, {city['state']}"
    return replace(asked, q=rests[city["name"]], near=near)


def _canonical(asked: SearchQuery) -> str:
    return SearchQuery(q=asked.q, category=asked.category, brands=asked.brands, store=asked.store).link()


def _heading(asked: SearchQuery, store: ListedStore | None, brands: dict[str, str]) -> str:
    if asked.q:
        return f"“{asked.q}”"
    of = " and ".join(brands.values()) if 0 < len(brands) <= 2 else ""
    kind = words.category(asked.category) if asked.category else "Deals" if asked.special else "All products"
    said = f"{of} {kind.lower()}" if of and asked.category else of or kind
    return f"{said} at {store.name}" if store is not None else said


def _chips(
    asked: SearchQuery, brands: dict[str, str], store: ListedStore | None, place: screen.Around, sign: str
) -> list[Option]:
    """Active filters, each with the URL that removes it; prices with the `sign` of their currency."""
    found: list[tuple[str, str]] = []
    if store is not None:
        found.append((store.name, asked.link(store=None)))
    if asked.category:
        found.append((words.category(asked.category), asked.link(category="")))
    found += [(words.strain(one), asked.toggled("strains", one)) for one in asked.strains]
    found += [(brands.get(one, one), asked.toggled("brands", one)) for one in asked.brands]
    found += [(one, asked.toggled("sizes", one)) for one in asked.sizes]
    if asked.stock:
        found.append(("In stock", asked.link(stock=False)))
    if asked.special:
        found.append(("On special", asked.link(special=False)))
    if (asked.low or asked.high) and not (asked.error("min") or asked.error("max")):
        low, high = without_sign(asked.low), without_sign(asked.high)
        found.append((_range(low, high, sign, ""), asked.link(low="", high="")))
    if asked.gram and not asked.error("gram"):
        found.append((f"up to {sign}{without_sign(asked.gram)} per gram", asked.link(gram="")))
    if (asked.thc_low or asked.thc_high) and not (asked.error("thc_min") or asked.error("thc_max")):
        found.append((f"THC {_range(asked.thc_low, asked.thc_high, '', ' %')}", asked.link(thc_low="", thc_high="")))
    if place.place is not None:
        found.append((f"within {place.radius()} of {place.place.label}", asked.link(near="")))
    return [Option(label=label, items=None, link=link, chosen=True) for label, link in found]


def _range(low: str, high: str, before: str, after: str) -> str:
    low, high = low.rstrip("% "), high.rstrip("% ")
    if low and high:
        return f"{before}{low}–{before}{high}{after}"
    return f"under {before}{high}{after}" if high else f"{before}{low}{after} and more"


def _facets(
    asked: SearchQuery, counts: ResultCounts, brands: dict[str, str], sign: str
) -> list[tuple[str, list[Option]]]:
    """Facets with their options. Selected options stay listed even without results."""
    got = {name: {one.value: one for one in choices} for name, choices in counts.facets.items()}
    order = list(words.CATEGORIES)
    categories = sorted(got.get("category", {}), key=lambda one: order.index(one) if one in order else 99)
    strains = [one for one in words.STRAINS if one in got.get("strain", {}) or one in asked.strains]
    sizes = sorted({*list(got.get("size", {}))[:12], *asked.sizes}, key=size_order)
    some = list(dict.fromkeys([*asked.brands, *got.get("brand", {})]))[:14]

    def n(facet: str, value: str) -> int:
        one = got.get(facet, {}).get(value)
        return one.items if one else 0

    def brand_name(slug: str) -> str:
        one = got.get("brand", {}).get(slug)
        return one.label if one else brands.get(slug, slug)

    found = [
        ("Category", [
            Option(label=words.category(one), items=n("category", one), chosen=asked.category == one,
                   link=asked.link(category="" if asked.category == one else one))
            for one in categories
        ]),
        ("Price", _steps(asked, got.get("price", {}), PRICE_STEPS, ("low", "high"), lambda step: f"{sign}{step // 100}")),
        ("Size", [
            Option(label=one, items=n("size", one), chosen=one in asked.sizes, link=asked.toggled("sizes", one))
            for one in sizes
        ]),
        ("Strain", [
            Option(label=words.strain(one), items=n("strain", one), chosen=one in asked.strains, link=asked.toggled("strains", one))
            for one in strains
        ]),
        ("THC", _steps(asked, got.get("thc", {}), THC_STEPS, ("thc_low", "thc_high"), lambda step: f"{step // 100}%")),
        ("Brand", [
            Option(label=brand_name(one), items=n("brand", one), chosen=one in asked.brands, link=asked.toggled("brands", one))
            for one in some
        ]),
    ]  # fmt: skip
    available = [
        Option(
            label="In stock", items=n("in_stock", "yes"), chosen=asked.stock, link=asked.link(stock=not asked.stock)
        ),
        Option(
            label="On special",
            items=n("special", "yes"),
            chosen=asked.special,
            link=asked.link(special=not asked.special),
        ),
    ]
    available = [one for one in available if counts.items or one.chosen]
    # Without results there are no options, except those selected.
    typed = asked.low or asked.high or asked.gram
    shown = [(name, options) for name, options in found if options or (name == "Price" and (typed or counts.items))]
    return [("Show only", available), *shown] if available else shown


def _steps(asked: SearchQuery, got: Any, steps: tuple[int, ...], fields: tuple[str, str], label: Any) -> list[Option]:
    """Options for numeric ranges."""
    options = []
    for at in range(len(steps) + 1):
        low, high = (steps[at - 1] if at else None), (steps[at] if at < len(steps) else None)
        items = got[str(at)].items if str(at) in got else 0
        # A range ends a hundredth below the start of the next.
        bounds = (f"{low // 100}" if low else "", f"{(high - 1) / 100:.2f}" if high else "")
        chosen = (getattr(asked, fields[0]), getattr(asked, fields[1])) == bounds
        if not items and not chosen:
            continue
        upper = "and more" if high is None else f"to {label(high)}"
        said = f"Under {label(high)}" if low is None else f"{label(low)} {upper}"
        link = asked.link(**dict(zip(fields, ("", "") if chosen else bounds, strict=True)))
        options.append(Option(label=said, items=items, link=link, chosen=chosen))
    return options
