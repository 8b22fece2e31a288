"""Structured data for search engines (schema.org as JSON-LD); only facts that the page shows too. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from menuwatch.geo import states
from menuwatch.geo.units import currency
from menuwatch.platforms.opening_hours import DAY, WEEKDAYS, read_hours
from menuwatch.site import format as words
from menuwatch.site import screen
from menuwatch.site.comparison import Line, SizeTable
from menuwatch.storefront.page_queries import Item, ListedStore

_MOST_OFFERS = 20
_LONGEST_TEXT = 1500
_CONTEXT = "https://schema.org"


def site(address: str, search: str) -> dict[str, Any]:
    """The web site and its search URL."""
    return {
        "@context": _CONTEXT,
        "@type": "WebSite",
        "url": address,
        "name": "Menuwatch",
        "potentialAction": {
            "@type": "SearchAction",
            "target": {"@type": "EntryPoint", "urlTemplate": search + "?q={search_term_string}"},
            "query-input": "required name=search_term_string",
        },
    }


def trail(steps: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Breadcrumbs of a page, as names and addresses."""
    listed = [
        {"@type": "ListItem", "position": at, "name": name, "item": address}
        for at, (name, address) in enumerate(steps, 1)
    ]
    return {"@context": _CONTEXT, "@type": "BreadcrumbList", "itemListElement": listed}


def item(
    item: Item, tables: Sequence[SizeTable], address: str, absolute: Callable[[str], str], description: str | None
) -> dict[str, Any] | None:
    """An item with its offers: of one size as a product, of several as a group with a product for each. Unknown stock is omitted.
    None without a price: search engines refuse a product without an offer."""
    tables = [table for table in tables if any(line.option.price is not None for line in table.lines)]
    if not tables:
        return None
    data: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "Product",
        "name": item.name,
        "url": address,
        "category": words.category(item.category),
    }
    if description:
        data["description"] = description[:_LONGEST_TEXT]
    if item.brand:
        data["brand"] = {"@type": "Brand", "name": item.brand}
    paths = [line.offer.local_image_path for table in tables for line in table.lines if line.offer.local_image_path]
    if paths:
        data["image"] = [absolute(screen.picture(path, 800)) for path in dict.fromkeys(paths)][:4]
    if len(tables) == 1:
        return data | _of_size(tables[0], absolute)
    data |= {"@type": "ProductGroup", "productGroupID": str(item.id), "variesBy": f"{_CONTEXT}/size"}
    data["hasVariant"] = [
        {
            "@type": "Product",
            "name": f"{item.name}, {table.size}" if table.size else item.name,
            **_of_size(table, absolute),
        }
        for table in tables
    ]
    return data


def _of_size(table: SizeTable, absolute: Callable[[str], str]) -> dict[str, Any]:
    data: dict[str, Any] = {"size": table.size} if table.size else {}
    # An aggregate has one currency: that of the first offer shown.
    priced = [(line, line.option.price) for line in table.lines if line.option.price is not None]
    priced = [pair for pair in priced if currency(pair[0].offer.state) == currency(priced[0][0].offer.state)]
    data["offers"] = {
        "@type": "AggregateOffer",
        "priceCurrency": currency(priced[0][0].offer.state),
        "lowPrice": _amount(min(price for _, price in priced)),
        "highPrice": _amount(max(price for _, price in priced)),
        "offerCount": len(priced),
        "offers": [_offer(line, price, absolute) for line, price in priced[:_MOST_OFFERS]],
    }
    return data


def _offer(line: Line, price: int, absolute: Callable[[str], str]) -> dict[str, Any]:
    offer = line.offer
    data = {
        "@type": "Offer",
        "price": _amount(price),
        "priceCurrency": currency(offer.state),
        "seller": {
            "@type": "Store",
            "name": offer.store,
            "url": absolute(screen.store_path(offer.store_id, offer.store)),
        },
    }
    if line.option.in_stock is not None:
        data["availability"] = f"{_CONTEXT}/{'InStoreOnly' if line.option.in_stock else 'OutOfStock'}"
    return data


def store(store: ListedStore, address: str) -> dict[str, Any]:
    """A store with its location and opening hours."""
    data: dict[str, Any] = {"@context": _CONTEXT, "@type": "Store", "name": store.name, "url": address}
    parts = {
        "streetAddress": _street(store),
        "addressLocality": store.city,
        "addressRegion": store.state,
        "postalCode": store.zipcode,
        "addressCountry": _country(store),
    }
    if known := {name: value for name, value in parts.items() if value}:
        data["address"] = {"@type": "PostalAddress", **known}
    if store.phone:
        data["telephone"] = store.phone
    if store.latitude is not None and store.longitude is not None:
        data["geo"] = {"@type": "GeoCoordinates", "latitude": store.latitude, "longitude": store.longitude}
    if hours := _hours(store):
        data["openingHoursSpecification"] = hours
    return data


def _street(store: ListedStore) -> str | None:
    """Street and number alone: many menus give the whole address in this field."""
    if store.address and store.city:
        street, comma, rest = store.address.partition(",")
        if comma and store.city.casefold() in rest.casefold():
            return street.strip()
    return store.address


def _country(store: ListedStore) -> str | None:
    """The ISO code of the country, by the state if that is known."""
    if store.state in states.PROVINCES:
        return "CA"
    if store.state in states.NAMES:
        return "US"
    return store.country if store.country and len(store.country) == 2 else None


def _hours(store: ListedStore) -> list[dict[str, str]]:
    """The store's hours by weekday; those of orders for pickup are not the store's."""
    known = read_hours(msgspec.json.decode(store.hours)) if store.hours is not None else None
    if known is None or known.for_pickup:
        return []
    return [
        {
            "@type": "OpeningHoursSpecification",
            "dayOfWeek": f"{_CONTEXT}/{WEEKDAYS[day].capitalize()}",
            "opens": _clock(span[0]),
            "closes": "23:59" if span[1] - span[0] >= DAY else _clock(span[1]),
        }
        for day, span in sorted(known.week.items())
        if span is not None
    ]


def _clock(minutes: int) -> str:
    return f"{minutes % DAY // 60:02}:{minutes % 60:02}"


def _amount(cents: int) -> str:
    return f"{cents / 100:.2f}"
