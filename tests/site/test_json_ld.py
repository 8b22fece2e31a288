"""What pages tell search engines: what Google's reference of structured data requires of each kind (D14)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.api.shop import item
from tests.site.shop_pages import Front, Page
from tests.site.test_price_history import ago

REQUIRED = {
    "Product": {"name", "offers"},
    "ProductGroup": {"name", "productGroupID", "variesBy", "hasVariant"},
    "AggregateOffer": {"lowPrice", "priceCurrency", "offerCount"},
    "Offer": {"price", "priceCurrency"},
    "BreadcrumbList": {"itemListElement"},
    "ListItem": {"position", "name", "item"},
    "Store": {"name"},
    "PostalAddress": {"addressCountry"},
    "WebSite": {"name", "url"},
    "SearchAction": {"target", "query-input"},
    "OpeningHoursSpecification": {"dayOfWeek", "opens", "closes"},
}
"""Properties that a kind must have, by the reference of Google Search."""


def data_of(page: Page) -> list[dict[str, Any]]:
    found = re.findall(r'<script type="application/ld\+json">(.*?)</script>', page.html, re.DOTALL)
    return [json.loads(one) for one in found]


def check(data: Any) -> None:
    """Holds every object to what its kind requires, and every address to be absolute."""
    if isinstance(data, list):
        for one in data:
            check(one)
    if not isinstance(data, dict):
        return
    missing = REQUIRED.get(data.get("@type", ""), set()) - data.keys()
    assert not missing, (data.get("@type"), missing)
    for name, value in data.items():
        if name in ("url", "item", "urlTemplate"):
            assert value.startswith("http"), (name, value)
        if name == "image":
            assert all(one.startswith("http") for one in value)
        check(value)


@pytest.mark.parametrize("public", [None, "https://example.org/menus"])
async def test_every_page_has_data_that_validators_accept(front: Front, public: str | None) -> None:
    object.__setattr__(front.settings, "public_url", public)
    store = await front.shop.store("near", city="Mesa", state="AZ", timezone="America/Phoenix")
    options = [("1/8oz", 40, 5), ("1/4oz", 70, 5)]
    await front.crawl(store, ago(1), [item("1", "Blue Dream", options=options), item("2", "Sour Diesel")])
    base = public or "http://menus.example"
    number = await front.item("Blue Dream")
    kinds = {}
    for path in ("/", f"/p/{number}-blue-dream", f"/s/{store}-near", "/b/acme", "/search?category=flower"):
        page = await front.page(path)
        found = data_of(page)
        check(found)
        kinds[path] = [one["@type"] for one in found]
        canonical = page.all("link", rel="canonical")[0]["href"]
        assert canonical
        assert canonical.startswith(base), canonical
        assert page.all("meta", property="og:url", content=canonical)
        assert page.all("meta", name="twitter:card")
    assert list(kinds.values()) == [
        ["WebSite"], ["ProductGroup", "BreadcrumbList"], ["Store", "BreadcrumbList"], [], [],
    ]  # fmt: skip
    group, crumbs = data_of(await front.page(f"/p/{number}-blue-dream"))
    assert [(one["size"], one["offers"]["lowPrice"]) for one in group["hasVariant"]] == [
        ("3.5 g", "40.00"),
        ("7 g", "70.00"),
    ]
    assert [one["name"] for one in crumbs["itemListElement"]] == ["Products", "Flower", "Acme", "Blue Dream"]
    assert crumbs["itemListElement"][-1]["item"] == f"{base}/p/{number}-blue-dream"


async def test_a_product_without_a_price_is_not_offered(front: Front) -> None:
    store = await front.shop.store("near")
    await front.crawl(store, 0, [item("1", "Blue Dream", options=[("1/8oz", None, 5)])])
    (crumbs,) = data_of(await front.page(f"/p/{await front.item('Blue Dream')}-blue-dream"))
    assert crumbs["@type"] == "BreadcrumbList"


async def test_an_address_is_given_in_its_parts_with_the_code_of_its_country(front: Front) -> None:
    store = await front.shop.store("near", city="Mesa", state="AZ")
    await front.crawl(store, 0, [item("1")])
    await front.shop.execute(
        "UPDATE dispensaries SET address = '1 Main St., Mesa, AZ 85201', zipcode = '85201', country = 'USA' WHERE id = %s",
        [store],
    )
    (shop, _) = data_of(await front.page(f"/s/{store}-near"))
    assert shop["address"] == {
        "@type": "PostalAddress",
        "streetAddress": "1 Main St.",
        "addressLocality": "Mesa",
        "addressRegion": "AZ",
        "postalCode": "85201",
        "addressCountry": "US",
    }
