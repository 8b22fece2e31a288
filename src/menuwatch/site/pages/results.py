"""What a search finds, with what it can be narrowed to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fastapi import APIRouter, Request, Response

from menuwatch.db import partitions
from menuwatch.operations import shopping
from menuwatch.operations import shopping_places as places
from menuwatch.operations.shopping import PRICE_STEPS, THC_STEPS, Here, Order, Spread
from menuwatch.site import screen, words
from menuwatch.site.wishes import MILES, SORTS, Asked
from menuwatch.web.system import Reading

router = APIRouter()

_ON_PAGE = 24
_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One link of a facet."""

    label: str
    items: int | None
    link: str
    chosen: bool = False


@router.get("/search")
async def search(request: Request, conn: Reading) -> Response:
    """Items that a query finds."""
    asked = Asked.of(request.query_params)
    place = await screen.around(conn, asked.near, asked.within)
    if place.unknown:
        asked.errors["near"] = f"We don’t know “{place.typed[:60]}”. Try a ZIP code, or a city with its state."
    store = await places.store(conn, asked.store) if asked.store is not None else None
    if asked.store is not None and store is None:
        asked.errors["store"] = "We don’t know that store any more, so this looks in all of them."
    if asked.sort is Order.DISTANCE and place.here is None:
        asked = replace(asked, sort=Order.RELEVANCE)
    here = place.here
    if store is not None:
        at = dict(zip(here.stores, here.meters, strict=True)).get(store["id"], 0) if here else 0
        here = Here(stores=(store["id"],), meters=(at,))
    brands = await shopping.brands(conn, asked.brands)
    wish = asked.wish(brands=[one["id"] for one in brands], here=here)
    # A search that nobody has thought of gets an answer in time too, if only that it takes too long.
    async with partitions.patience(conn, lock_seconds=_PATIENCE_SECONDS, statement_seconds=_PATIENCE_SECONDS):
        found = await shopping.search(conn, wish, order=asked.sort, after=asked.after, limit=_ON_PAGE)
    named = {one["slug"]: one["name"] for one in brands}
    context: dict[str, Any] = {
        "asked": asked,
        "place": place,
        "store": store,
        "query": asked.q,
        "found": found,
        "heading": _heading(asked, store, named),
        "facets": _facets(asked, found.spread, named),
        "chips": _chips(asked, named, store, place),
        "sorts": [
            Option(label=label, items=None, link=asked.link(sort=order), chosen=asked.sort is order)
            for order, label in SORTS.items()
            if order is not Order.DISTANCE or place.here is not None
        ],
        "next": None if found.next is None else asked.link(after=found.next),
        "first": asked.link() if asked.after is not None else None,
        "miles": MILES,
        "canonical": screen.absolute(request, _canonical(asked)),
        "description": f"{_heading(asked, store, named)}: prices, potency and stock at every store that carries it.",
        # Of the countless ways to narrow a search, those of a category alone are worth a place in an index.
        "index": asked == Asked(category=asked.category),
    }
    return screen.show(request, "results.html", context, status=200)


def _canonical(asked: Asked) -> str:
    return Asked(q=asked.q, category=asked.category, brands=asked.brands, store=asked.store).link()


def _heading(asked: Asked, store: Any, brands: dict[str, str]) -> str:
    if asked.q:
        return f"“{asked.q}”"
    of = " and ".join(brands.values()) if 0 < len(brands) <= 2 else ""
    kind = words.category(asked.category) if asked.category else "Everything"
    said = f"{of} {kind.lower()}" if of and asked.category else of or kind
    return f"{said} at {store['name']}" if store is not None else said


def _chips(asked: Asked, brands: dict[str, str], store: Any, place: screen.Around) -> list[Option]:
    """What is chosen, each with the address without it."""
    found: list[tuple[str, str]] = []
    if store is not None:
        found.append((store["name"], asked.link(store=None)))
    if asked.category:
        found.append((words.category(asked.category), asked.link(category="")))
    found += [(words.strain(one), asked.toggled("strains", one)) for one in asked.strains]
    found += [(brands.get(one, one), asked.toggled("brands", one)) for one in asked.brands]
    found += [(one, asked.toggled("sizes", one)) for one in asked.sizes]
    if asked.stock:
        found.append(("In stock", asked.link(stock=False)))
    if asked.special:
        found.append(("On special", asked.link(special=False)))
    if (asked.low or asked.high) and not (asked.wrong("min") or asked.wrong("max")):
        found.append((_range(asked.low, asked.high, "$", ""), asked.link(low="", high="")))
    if asked.gram and not asked.wrong("gram"):
        found.append((f"up to ${asked.gram.lstrip('$')} per gram", asked.link(gram="")))
    if (asked.thc_low or asked.thc_high) and not (asked.wrong("thc_min") or asked.wrong("thc_max")):
        found.append((f"THC {_range(asked.thc_low, asked.thc_high, '', ' %')}", asked.link(thc_low="", thc_high="")))
    if place.place is not None:
        found.append((f"within {place.miles} mi of {place.place.label}", asked.link(near="")))
    return [Option(label=label, items=None, link=link, chosen=True) for label, link in found]


def _range(low: str, high: str, before: str, after: str) -> str:
    low, high = low.lstrip("$").rstrip("% "), high.lstrip("$").rstrip("% ")
    if low and high:
        return f"{before}{low}–{before}{high}{after}"
    return f"under {before}{high}{after}" if high else f"{before}{low}{after} and more"


def _facets(asked: Asked, spread: Spread, brands: dict[str, str]) -> list[tuple[str, list[Option]]]:
    """Headings with their choices. What is chosen stays, also where it leaves nothing."""
    got = {name: {one.value: one for one in choices} for name, choices in spread.facets.items()}
    order = list(words.CATEGORIES)
    categories = sorted(got.get("category", {}), key=lambda one: order.index(one) if one in order else 99)
    strains = [one for one in words.STRAINS if one in got.get("strain", {}) or one in asked.strains]
    sizes = sorted({*list(got.get("size", {}))[:12], *asked.sizes}, key=_size_key)
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
        ("Price", _steps(asked, got.get("price", {}), PRICE_STEPS, ("low", "high"), lambda step: f"${step // 100}")),
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
    available = [one for one in available if spread.items or one.chosen]
    # Where nothing is found there is nothing to choose from, save what was typed.
    typed = asked.low or asked.high or asked.gram
    shown = [(name, options) for name, options in found if options or (name == "Price" and (typed or spread.items))]
    return [("Show only", available), *shown] if available else shown


def _steps(asked: Asked, got: Any, steps: tuple[int, ...], fields: tuple[str, str], label: Any) -> list[Option]:
    """Ranges between steps."""
    options = []
    for at in range(len(steps) + 1):
        low, high = (steps[at - 1] if at else None), (steps[at] if at < len(steps) else None)
        items = got[str(at)].items if str(at) in got else 0
        # A range ends a hundredth below the next one's beginning.
        bounds = (f"{low // 100}" if low else "", f"{(high - 1) / 100:.2f}" if high else "")
        chosen = (getattr(asked, fields[0]), getattr(asked, fields[1])) == bounds
        if not items and not chosen:
            continue
        upper = "and more" if high is None else f"to {label(high)}"
        said = f"Under {label(high)}" if low is None else f"{label(low)} {upper}"
        link = asked.link(**dict(zip(fields, ("", "") if chosen else bounds, strict=True)))
        options.append(Option(label=said, items=items, link=link, chosen=chosen))
    return options


def _size_key(size: str) -> tuple[int, float, str]:
    number, _, unit = size.partition(" ")
    try:
        return {"g": 0, "mg": 1}.get(unit, 2), float(number), size
    except ValueError:
        return 3, 0.0, size
