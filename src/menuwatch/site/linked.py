"""What search engines read of a page: schema.org's words as JSON-LD. Only what the page says as well. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from menuwatch.geo import states
from menuwatch.site import screen, words

_MOST_OFFERS = 20
_CONTEXT = "https://schema.org"


def site(address: str, search: str) -> dict[str, Any]:
    """The site, and how it is searched."""
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


def item(
    found: Mapping[str, Any], offers: Sequence[Mapping[str, Any]], address: str, absolute: Callable[[str], str]
) -> dict[str, Any]:
    """An item with its offers. What a menu does not say of stock is not said here."""
    made: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "Product",
        "name": found["name"],
        "url": address,
        "category": words.category(found["category"]),
    }
    if found["brand"]:
        made["brand"] = {"@type": "Brand", "name": found["brand"]}
    pictures = [one["local_image_path"] for one in offers if one["local_image_path"]]
    if pictures:
        made["image"] = [absolute(screen.picture(path, 800)) for path in dict.fromkeys(pictures)][:4]
    # One sum has one currency: that of the offer that is shown first.
    priced = [one for one in offers if one["price"] is not None]
    priced = [one for one in priced if _currency(one["state"]) == _currency(priced[0]["state"])]
    if priced:
        made["offers"] = {
            "@type": "AggregateOffer",
            "priceCurrency": _currency(priced[0]["state"]),
            "lowPrice": _amount(min(one["price"] for one in priced)),
            "highPrice": _amount(max(one["price"] for one in priced)),
            "offerCount": len(priced),
            "offers": [_offer(one, absolute) for one in priced[:_MOST_OFFERS]],
        }
    return made


def _offer(one: Mapping[str, Any], absolute: Callable[[str], str]) -> dict[str, Any]:
    made = {
        "@type": "Offer",
        "price": _amount(one["price"]),
        "priceCurrency": _currency(one["state"]),
        "seller": {
            "@type": "Store",
            "name": one["store"],
            "url": absolute(screen.store_path(one["store_id"], one["store"])),
        },
    }
    if one["in_stock"] is not None:
        made["availability"] = f"{_CONTEXT}/{'InStoreOnly' if one['in_stock'] else 'OutOfStock'}"
    return made


def store(found: Mapping[str, Any], address: str) -> dict[str, Any]:
    """A store and where it is."""
    made: dict[str, Any] = {"@context": _CONTEXT, "@type": "Store", "name": found["name"], "url": address}
    parts = {
        "streetAddress": found["address"],
        "addressLocality": found["city"],
        "addressRegion": found["state"],
        "postalCode": found["zipcode"],
        "addressCountry": found["country"],
    }
    if known := {name: value for name, value in parts.items() if value}:
        made["address"] = {"@type": "PostalAddress", **known}
    if found["phone"]:
        made["telephone"] = found["phone"]
    if found["latitude"] is not None and found["longitude"] is not None:
        made["geo"] = {"@type": "GeoCoordinates", "latitude": found["latitude"], "longitude": found["longitude"]}
    return made


def _currency(state: str | None) -> str:
    return "CAD" if state in states.PROVINCES else "USD"


def _amount(cents: int) -> str:
    return f"{cents / 100:.2f}"
