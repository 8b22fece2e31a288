"""Places, as shoppers type them, and how far away stores are. Distances are worked out by the haversine formula."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

from menuwatch.accounts.audit import Actor, actor_context
from menuwatch.stores import editing
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


def kilometers(one: dict[str, Any], other: dict[str, Any]) -> float:
    """By the haversine formula, on a sphere of 6,371.0 km."""
    a, b = math.radians(one["latitude"]), math.radians(other["latitude"])
    across = math.radians(other["longitude"] - one["longitude"])
    h = math.sin((b - a) / 2) ** 2 + math.cos(a) * math.cos(b) * math.sin(across / 2) ** 2
    return 2 * 6371.0 * math.asin(math.sqrt(h))


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
        assert "at 2 stores within 40 km" in page.text


async def test_what_is_no_place_is_told(four: Front) -> None:
    for near, said in (
        ("Neverwhere", "We couldn’t find “Neverwhere”"),
        ("Arizona", "“Arizona” is a state or province"),
        ("Z9Z 9Z9", "We couldn’t find"),
    ):
        for path in ("/stores", "/search", "/deals", "/"):
            assert said in (await four.page(path, params={"near": near})).text


async def test_every_list_has_the_distance(four: Front) -> None:
    number = await four.item("Blue Dream")
    away = kilometers(TORONTO, AJAX)
    assert 30 < away < 40
    for path in ("/stores", "/search", "/deals?sort=newest", "/", f"/p/{number}-blue-dream", "/b/acme"):
        page = await four.page(f"{path}{'&' if '?' in path else '?'}near=43.85,-79.02")
        distances = {"/stores": 2}.get(path, 1)
        assert len(re.findall(rf"\b(?:0\.1|{away:.0f}) km\b", page.text)) >= distances, path
    cards = (await four.page("/search?near=43.85,-79.02")).text
    assert f"Tower, Toronto · {away:.0f} km" in cards
    assert "mi" not in re.findall(r"\d (km|mi)\b", cards)
    assert not re.findall(r"\d (?:km|mi)\b", (await four.page("/deals")).text)


async def test_distances_are_in_miles_in_the_united_states_and_in_kilometers_in_canada(four: Front) -> None:
    phoenix = (await four.page("/stores", params={"near": "Tempe, AZ"})).text
    assert set(re.findall(r"\d (km|mi)\b", phoenix)) == {"mi"}
    for path in ("/stores", "/search", "/deals", "/"):
        page = await four.page(path, params={"near": "Timmins, ON"})
        assert "within 40 km of Timmins, ON" in page.text, path
        assert "mile" not in page.text, path


async def test_an_alert_near_a_place_needs_one_place(four: Front) -> None:
    number = await four.item("Blue Dream")
    page = await four.page(f"/p/{number}-blue-dream", params={"near": "Portland"})
    assert page.all("input", id="watch-near")[0]["value"] == "Portland, ME"
    fields = {"condition": "any_drop", "by": "feed", "reach": "near", "within": "25"}
    refused = Page(await four.post(f"/p/{number}/watch", near="Portland", **fields))
    assert refused.status == 422
    assert "Add the state or province: “Portland, ME”, “Portland, OR”" in refused.text
    answer = await four.post(f"/p/{number}/watch", near="33.4484,-112.074", **fields)
    assert answer.status_code == 303
    answer = await four.post(f"/p/{number}/watch", near="Toronto", **fields)
    assert answer.status_code == 303, "there are further places of that name, but no stores near them"
    assert await four.rows("SELECT place FROM price_watches ORDER BY id") == [("Phoenix, AZ",), ("Toronto, ON",)]


@pytest.mark.parametrize(
    ("position", "town"),
    [("41.84,-87.65", (41.85, -87.65)), ("39.95,-75.16", (39.95, -75.16)), ("40.85,-73.87", (40.85, -73.87))],
)
async def test_an_alert_from_a_position_keeps_the_town_there(
    four: Front, position: str, town: tuple[float, float]
) -> None:
    """In Chicago, Philadelphia and the Bronx, whose nearest towns share their names with others of the state."""
    number = await four.item("Blue Dream")
    answer = await four.post(
        f"/p/{number}/watch", condition="any_drop", by="feed", reach="near", within="25", near=position
    )
    assert answer.status_code == 303
    ((latitude, longitude),) = await four.rows("SELECT latitude, longitude FROM price_watches")
    assert math.dist((latitude, longitude), town) < 0.1


async def test_a_mark_of_several_stores_leads_to_them(front: Front) -> None:
    for slug, longitude in (("one", -112.07412345678901), ("two", -112.07422345678901), ("far", -111.5)):
        store = await front.shop.store(
            slug, latitude=33.448400000000001, longitude=longitude, state="AZ", city="Phoenix"
        )
        await front.crawl(store, 0, [item("1")])
    (link,) = re.findall(r'<a href="(/stores\?near=[^"]*)"', (await front.page("/stores/AZ")).html)
    page = await front.page(link.replace("&amp;", "&"))
    assert re.findall(r'<li class="store"><a href="/s/(\d+)', page.html) == ["1", "2"]
    assert "Stores near this location" in page.text


async def test_a_store_without_a_position_is_no_dot_and_follows_its_postal_code(front: Front) -> None:
    store = await front.shop.store("one", zipcode="60601", state="IL", city=None)
    await front.crawl(store, 0, [item("1")])
    page = await front.page("/stores?near=60601")
    assert "in 60601 · 1 product" in page.text
    assert " mi " not in page.text
    # By the Census Bureau's gazetteer, 60601 is at 41.886, -87.622 and 60201 (Evanston) at 42.055, -87.695: 12.2 miles.
    away = await front.page("/stores?near=60201")
    assert "about 12 mi · 1 product" in away.text
    for path in (f"/s/{store}-one", "/search", f"/p/{await front.item('Blue Dream')}-blue-dream"):
        assert "about 12 mi" in (await front.page(f"{path}?near=60201")).text, path
    assert "in 60601 from" not in (await front.page(f"/s/{store}-one?near=60601")).text
    assert "Directions" not in page.text
    assert '<figure class="map">' not in page.html
    with actor_context(Actor(name="ann", kind="user", via="api")):
        async with front.shop.pool.connection() as conn:
            await editing.set_details(conn, store, {"zipcode": "85001", "state": "AZ"})
    await front.index()
    assert re.findall(r'<li class="store"><a href="/s/(\d+)', (await front.page("/stores?near=85001")).html) == ["1"]


async def test_a_canadian_store_without_a_position_is_in_its_postal_area(front: Front) -> None:
    await front.crawl(await front.shop.store("one", zipcode="M5V 2T6", state="ON", city="Toronto"), 0, [item("1")])
    assert "in M5V · 1 product" in (await front.page("/stores", params={"near": "M5V 1J1"})).text
    assert re.search(r"about \d+ km · 1 product", (await front.page("/stores", params={"near": "Ajax, ON"})).text)


async def test_the_map_links_every_store(four: Front) -> None:
    page = await four.page("/stores", params={"near": "Toronto"})
    drawing = page.html[page.html.index('<figure class="map">') : page.html.index("</figure>")]
    assert re.findall(r"<title>([^<]*)</title>", drawing) == [
        f"Tower, {kilometers({'latitude': 43.7064, 'longitude': -79.3986}, TORONTO):.1f} km",
        f"Lakeside, {kilometers({'latitude': 43.7064, 'longitude': -79.3986}, AJAX):.0f} km",
        "Toronto, ON",
    ]
    links = re.findall(r'<a href="(/s/[^"]*)"', drawing)
    for link in links:
        await four.page(link)
    assert len(links) == 2
    state = await four.page("/stores/ON")
    assert (
        len(
            re.findall(
                r'<a href="/s/', state.html[state.html.index('<figure class="map">') : state.html.index("</figure>")]
            )
        )
        == 2
    )
    assert "The cross marks" not in state.text
    assert '<figure class="map">' not in (await four.page("/stores/AZ")).html


async def test_a_product_has_a_map_of_the_stores_nearby(four: Front) -> None:
    number = await four.item("Blue Dream")
    page = await four.page(f"/p/{number}-blue-dream", params={"near": "Toronto"})
    drawing = page.html[page.html.index('<figure class="map">') : page.html.index("</figure>")]
    assert [name.partition(",")[0] for name in re.findall(r"<title>([^<]*)</title>", drawing)] == [
        "Tower",
        "Lakeside",
        "Toronto",
    ]
    assert '<figure class="map">' not in (await four.page(f"/p/{number}-blue-dream")).html


async def test_stores_named_in_a_search_have_their_distance(four: Front) -> None:
    away = kilometers({"latitude": 43.7064, "longitude": -79.3986}, TORONTO)
    page = await four.page("/search", params={"q": "tower", "near": "Toronto"})
    assert f"Stores: Tower, Toronto ({away:.1f} km)" in page.text


async def test_stores_at_one_place_are_one_mark(four: Front) -> None:
    await four.crawl(await four.shop.store("annex", **TORONTO), 0, [item("annex", "Blue Dream")])
    page = await four.page("/stores", params={"near": "Toronto"})
    (link,) = re.findall(r'<a href="([^"]*)"[^>]*><title>2 stores: [A-Za-z, ]+</title>', page.html)
    assert set(stores_of(await four.page(link.replace("&amp;", "&")))) == {"Tower", "Annex"}


DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
ALWAYS = {day: {"active": True, "start": "12:00 AM", "end": "12:00 AM"} for day in DAYS}
NEVER = {day: {"active": False, "start": "9:00 AM", "end": "9:00 PM"} for day in DAYS}


async def list_hours(front: Front, slug: str, hours: Any, timezone: str | None = "America/Phoenix") -> None:
    """The platform's list of stores, with the hours of a store."""
    await front.shop.execute(
        "INSERT INTO dutchie_discovery_locations (platform_dispensary_id, slug, name, status, raw) "
        "VALUES (%s, %s, %s, 'promoted', %s)",
        [f"id-{slug}", slug, slug, json.dumps({"pickupHours": hours})],
    )
    await front.shop.execute("UPDATE dispensaries SET timezone = %s WHERE slug = %s", [timezone, slug])


async def test_hours_are_shown_and_the_stores_page_says_where_they_are_not_known(four: Front) -> None:
    await list_hours(four, "desert", ALWAYS)
    await list_hours(four, "tower", NEVER)
    await list_hours(four, "lakeside", ALWAYS, None)
    for slug, state in (
        ("desert", "Open for pickup 24 hours"),
        ("tower", "Closed for pickup"),
        ("harbour", "Hours unknown"),
        ("lakeside", "Hours unknown"),
    ):
        place = STORES[slug]
        listed = await four.page("/stores", params={"near": f"{place['latitude']},{place['longitude']}", "within": "5"})
        assert (state in listed.text) == (slug in ("desert", "tower")), slug
        ((number,),) = await four.rows("SELECT id FROM dispensaries WHERE slug = %s", slug)
        page = await four.page(f"/s/{number}-{slug}")
        if slug == "lakeside":
            assert "time zone unknown" in page.text
            assert "Monday 24 hours" in page.text
        else:
            assert state in page.text
        assert ("Pickup hours as listed by the menu platform" in page.text) == (slug != "harbour")
    await four.shop.execute("UPDATE dutchie_discovery_locations SET last_seen_at = now() - interval '91 days'")
    assert "Open for pickup" not in (await four.page("/stores?near=Phoenix")).text


async def test_directions_and_the_product_on_the_stores_own_menu(four: Front) -> None:
    """Where no address of a product is given, Dutchie has one below that of the menu."""
    number = await four.item("Blue Dream")
    await four.shop.execute("UPDATE catalog_products SET extra = '{}'")
    await four.shop.execute("UPDATE dispensaries SET menu_url = 'https://dutchie.com/dispensary/' || slug")
    await four.shop.execute(
        """UPDATE catalog_products SET extra = '{"menu_url": "https://shop.example/a?b=1&c=2"}' WHERE dispensary_id =
           (SELECT id FROM dispensaries WHERE slug = 'desert')"""
    )
    await four.shop.execute(
        """UPDATE catalog_products SET extra = '{"slug": "blue-dream/x"}' WHERE dispensary_id =
           (SELECT id FROM dispensaries WHERE slug = 'tower')"""
    )
    await four.shop.execute("UPDATE dispensaries SET menu_url = 'javascript:alert(1)' WHERE slug = 'lakeside'")
    await four.shop.execute("UPDATE dispensaries SET address = '1 Main St', zipcode = '85004' WHERE slug = 'desert'")
    page = await four.page(f"/p/{number}-blue-dream")
    links = {str(one.get("href")) for one in page.all("a")}
    assert {
        "https://shop.example/a?b=1&c=2",
        "https://dutchie.com/dispensary/tower/product/blue-dream%2Fx",
        "https://dutchie.com/dispensary/harbour",
        "https://www.google.com/maps/dir/?api=1&destination=1+Main+St%2C+Phoenix%2C+AZ%2C+85004",
        "https://www.google.com/maps/dir/?api=1&destination=43.642600%2C-79.387100",
    } <= links
    assert not any(link.startswith("javascript") for link in links)
    ((store,),) = await four.rows("SELECT id FROM dispensaries WHERE slug = 'tower'")
    assert page.link("Directions").startswith("https://www.google.com/maps/dir/")
    own = await four.page(f"/s/{store}-tower?near=Toronto")
    assert own.link("Directions").endswith("destination=43.642600%2C-79.387100")
    assert f"{kilometers({'latitude': 43.7064, 'longitude': -79.3986}, TORONTO):.1f} km from Toronto, ON" in own.text
