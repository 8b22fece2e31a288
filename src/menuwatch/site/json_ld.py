"""Structured data for search engines (schema.org as JSON-LD); only facts that the page shows too. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from menuwatch.geo import states
from menuwatch.site import format as words
from menuwatch.site import screen
from menuwatch.storefront.page_queries import Item, ListedStore, Offer

_MOST_OFFERS = 20
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


def item(item: Item, offers: Sequence[Offer], address: str, absolute: Callable[[str], str]) -> dict[str, Any]:
    """An item with its offers. Unknown stock is omitted."""
    data: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "Product",
        "name": item.name,
        "url": address,
        "category": words.category(item.category),
    }
    if item.brand:
        data["brand"] = {"@type": "Brand", "name": item.brand}
    images = [offer.local_image_path for offer in offers if offer.local_image_path]
    if images:
        data["image"] = [absolute(screen.picture(path, 800)) for path in dict.fromkeys(images)][:4]
    # An aggregate has one currency: that of the first offer shown.
    priced = [(offer, offer.price) for offer in offers if offer.price is not None]
    priced = [(offer, price) for offer, price in priced if _currency(offer.state) == _currency(priced[0][0].state)]
    if priced:
        data["offers"] = {
            "@type": "AggregateOffer",
            "priceCurrency": _currency(priced[0][0].state),
            "lowPrice": _amount(min(price for _, price in priced)),
            "highPrice": _amount(max(price for _, price in priced)),
            "offerCount": len(priced),
            "offers": [_offer(offer, price, absolute) for offer, price in priced[:_MOST_OFFERS]],
        }
    return data


def _offer(offer: Offer, price: int, absolute: Callable[[str], str]) -> dict[str, Any]:
    data = {
        "@type": "Offer",
        "price": _amount(price),
        "priceCurrency": _currency(offer.state),
        "seller": {
            "@type": "Store",
            "name": offer.store,
            "url": absolute(screen.store_path(offer.store_id, offer.store)),
        },
    }
    if offer.in_stock is not None:
        data["availability"] = f"{_CONTEXT}/{'InStoreOnly' if offer.in_stock else 'OutOfStock'}"
    return data


def store(store: ListedStore, address: str) -> dict[str, Any]:
    """A store with its location."""
    data: dict[str, Any] = {"@context": _CONTEXT, "@type": "Store", "name": store.name, "url": address}
    parts = {
        "streetAddress": store.address,
        "addressLocality": store.city,
        "addressRegion": store.state,
        "postalCode": store.zipcode,
        "addressCountry": store.country,
    }
    if known := {name: value for name, value in parts.items() if value}:
        data["address"] = {"@type": "PostalAddress", **known}
    if store.phone:
        data["telephone"] = store.phone
    if store.latitude is not None and store.longitude is not None:
        data["geo"] = {"@type": "GeoCoordinates", "latitude": store.latitude, "longitude": store.longitude}
    return data


def _currency(state: str | None) -> str:
    return "CAD" if state in states.PROVINCES else "USD"


def _amount(cents: int) -> str:
    return f"{cents / 100:.2f}"
