"""Places, as shoppers type them, and how far away stores are. Distances are worked out by the haversine formula."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from tests.api.shop import item
from tests.site.shop_pages import Front, Page

PHOENIX = {"latitude": 33.4484, "longitude": -112.0740, "city": "Phoenix", "state": "AZ"}
PORTLAND = {"latitude": 43.6591, "longitude": -70.2568, "city": "Portland", "state": "ME"}
TORONTO = {"latitude": 43.6426, "longitude": -79.3871, "city": "Toronto", "state": "ON", "country": "CA"}
AJAX = {"latitude": 43.8509, "longitude": -79.0204, "city": "Ajax", "state": "ON", "country": "CA"}
STORES = {"desert": PHOENIX, "harbour": PORTLAND, "tower": TORONTO, "lakeside": AJAX}


@pytest.fixture
async def four(front: Front) -> Front:
    """Four stores with the same product."""
    for slug, place in STORES.items():
        menu = [
            item(f"{slug}-1", "Blue Dream", options=[("1/8oz", 40, 5)], special=[32]),
            item(f"{slug}-2", f"{slug.title()} Haze", thc=20.0),
        ]
        await front.crawl(await front.shop.store(slug, **place), 0, menu)
    return front


def miles(one: dict[str, Any], other: dict[str, Any]) -> float:
    """By the haversine formula, on a sphere of 6,371.0 km."""
    a, b = math.radians(one["latitude"]), math.radians(other["latitude"])
    across = math.radians(other["longitude"] - one["longitude"])
    h = math.sin((b - a) / 2) ** 2 + math.cos(a) * math.cos(b) * math.sin(across / 2) ** 2
    return 2 * 6371.0 * math.asin(math.sqrt(h)) / 1.609344


def stores_of(page: Page) -> list[str]:
    return re.findall(r'<li class="store"><a href="[^"]*"><strong>([^<]*)', page.html)


async def test_stores_near_the_places_of_the_report(four: Front) -> None:
    for near, stores in (
        ("Phoenix", ["Desert"]),
        ("Toronto", ["Tower", "Lakeside"]),
        ("Toronto, ON", ["Tower", "Lakeside"]),
        ("M5V 2T6", ["Tower", "Lakeside"]),
        ("Ajax, ON", ["Lakeside", "Tower"]),
        ("L1S 1A1", ["Lakeside", "Tower"]),
        ("33.45,-112.07", ["Desert"]),
    ):
        assert stores_of(await four.page("/stores", params={"near": near, "within": "25"})) == stores, near


async def test_of_several_cities_one_with_stores_is_shown_and_the_others_are_linked(four: Front) -> None:
    """The largest Portland is in Oregon, where no store is."""
    for path in ("/stores", "/search", "/deals", "/", "/b/acme"):
        page = await four.page(path, params={"near": "Portland"})
        assert "Showing Portland, ME . Or did you mean Portland, OR" in page.text, path
        other = await four.page(page.link("Portland, OR"))
        assert "Or did you mean" not in other.text
        assert "near=Portland%2C+OR" in page.link("Portland, OR")
        assert "Harbour" not in other.text


async def test_a_city_in_the_search_text_is_never_chosen_silently(four: Front) -> None:
    page = await four.page("/search", params={"q": "blue dream portland"})
    assert page.names == ["Blue Dream"]
    assert "Showing Portland, ME . Or did you mean Portland, OR" in page.text
    other = await four.page(page.link("Portland, OR"))
    assert "“blue dream”" in other.text
    assert other.names == []


async def test_canadian_places_in_the_search_text(four: Front) -> None:
    for text in ("blue dream M5V 2T6", "blue dream m5v2t6", "blue dream Toronto ON", "toronto blue dream"):
        page = await four.page("/search", params={"q": text})
        assert "“blue dream”" in page.text, text
        assert "at 2 stores within 25 miles" in page.text


async def test_what_is_no_place_is_told(four: Front) -> None:
    for near, said in (
        ("Neverwhere", "We don’t know “Neverwhere”"),
        ("Arizona", "“Arizona” is a whole state or province"),
        ("Z9Z 9Z9", "We don’t know"),
    ):
        for path in ("/stores", "/search", "/deals", "/"):
            assert said in (await four.page(path, params={"near": near})).text


async def test_every_list_has_the_distance(four: Front) -> None:
    number = await four.item("Blue Dream")
    away = miles(TORONTO, AJAX)
    assert 20 < away < 25
    for path in ("/stores", "/search", "/deals?sort=newest", "/", f"/p/{number}-blue-dream", "/b/acme"):
        page = await four.page(f"{path}{'&' if '?' in path else '?'}near=43.85,-79.02")
        assert f"{away:.0f} mi" in page.text or "0.1 mi" in page.text, path
    cards = (await four.page("/search?near=43.85,-79.02")).text
    assert f"Tower, Toronto · {away:.0f} mi" in cards
    assert " mi" not in re.sub(r"\d+ mi\b(?= <|les)", "", (await four.page("/deals")).text)


async def test_an_alert_near_a_place_needs_one_place(four: Front) -> None:
    number = await four.item("Blue Dream")
    page = await four.page(f"/p/{number}-blue-dream", params={"near": "Portland"})
    assert page.all("input", id="watch-near")[0]["value"] == "Portland, ME"
    fields = {"condition": "any_drop", "by": "feed", "reach": "near", "within": "25"}
    refused = Page(await four.post(f"/p/{number}/watch", near="Portland", **fields))
    assert refused.status == 422
    assert "Enter its state as well: “Portland, ME”, “Portland, OR”" in refused.text
    answer = await four.post(f"/p/{number}/watch", near="33.4484,-112.074", **fields)
    assert answer.status_code == 303
    ((kept,),) = await four.rows("SELECT place FROM price_watches")
    assert kept == "Phoenix, AZ"
