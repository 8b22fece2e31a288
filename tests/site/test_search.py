"""What is found, how it is spread, in which order, and near which place. What is expected follows from the menus written here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from menuwatch.geo.database import GeoDatabase
from menuwatch.site.app import create_site
from menuwatch.web.dependencies import AppContext
from menuwatch.web.request_middleware import Traffic
from menuwatch.web.routing import Apps
from tests.api.shop import item
from tests.geo import mmdb_file
from tests.site.shop_pages import Front, Page

PHOENIX = {"latitude": 33.4484, "longitude": -112.0740, "city": "Phoenix", "state": "AZ", "zipcode": "85004"}
TUCSON = {"latitude": 32.2226, "longitude": -110.9747, "city": "Tucson", "state": "AZ", "zipcode": "85701"}

A_MENU: list[dict[str, Any]] = [
    item("1", "Blue Dream", options=[("1/8oz", 40, 5)], thc=21.5, strainType="Sativa"),
    item("2", "Gelato 41", options=[("1/8oz", 30, 0)], thc=28.0, strainType="Hybrid"),
    item("3", "Night Orchard", options=[("1g", 12, 9)], thc=18.0, strainType="Indica", brandName="Kiln"),
    item("4", "Peach Gummies", options=[("100mg", 18, 4)], thc=None, type="Edible", brandName="Kiln", strainType="N/A"),
    item("5", "Old Stock", options=[("1/2oz", 90, None)], thc=15.0, brandName="Kiln"),
]
B_MENU: list[dict[str, Any]] = [
    item("b1", "Blue Dream", options=[("1/8oz", 45, 2)], special=[36], thc=21.5, strainType="Sativa"),
    item("b2", "Cherry Pie", options=[("1g", 10, 1)], thc=30.5, strainType="Indica"),
]


@pytest.fixture
async def two(front: Front) -> Front:
    for slug, menu, where in (("alpha", A_MENU, PHOENIX), ("beta", B_MENU, TUCSON)):
        await front.crawl(await front.shop.store(slug, **where), 0, menu)
    return front


async def found(front: Front, query: str) -> list[str]:
    return (await front.page(f"/search?{query}")).names


async def test_everything_is_found_once(two: Front) -> None:
    assert sorted(await found(two, "")) == [
        "Blue Dream", "Cherry Pie", "Gelato 41", "Night Orchard", "Old Stock", "Peach Gummies",
    ]  # fmt: skip


WISHES: list[tuple[str, set[str]]] = [
    ("q=blue", {"Blue Dream"}),
    ("q=BLUE+dream", {"Blue Dream"}),
    ("q=dream+blue", {"Blue Dream"}),
    ("q=gum", {"Peach Gummies"}),
    ("q=kiln", {"Night Orchard", "Peach Gummies", "Old Stock"}),
    ("q=kiln+edible", {"Peach Gummies"}),
    ("q=bleu+dream", {"Blue Dream"}),
    ("q=gelatto", {"Gelato 41"}),
    ("q=orchrd", {"Night Orchard"}),
    ("q=xyzzy", set()),
    ("q=bluedream", {"Blue Dream"}),
    ("q=gummy", {"Peach Gummies"}),
    ("q=eighth", {"Blue Dream", "Gelato 41"}),
    ("q=under+$12", {"Night Orchard", "Cherry Pie"}),
    ("q=eighth&exact=1", set()),
    ("q=dream+xyzzy", {"Blue Dream"}),
    ("q=blue+tucson", {"Blue Dream"}),
    ("q=cherry+85004", set()),
    (
        "q=%27%22%3A%2A%26%7C%21()",
        {"Blue Dream", "Cherry Pie", "Gelato 41", "Night Orchard", "Old Stock", "Peach Gummies"},
    ),
    ("category=edible", {"Peach Gummies"}),
    ("strain=indica", {"Night Orchard", "Cherry Pie"}),
    ("strain=indica&strain=sativa", {"Night Orchard", "Cherry Pie", "Blue Dream"}),
    ("brand=kiln", {"Night Orchard", "Peach Gummies", "Old Stock"}),
    ("brand=nobody", set()),
    ("size=3.5+g", {"Blue Dream", "Gelato 41"}),
    ("stock=1", {"Blue Dream", "Night Orchard", "Peach Gummies", "Cherry Pie"}),
    ("special=1", {"Blue Dream"}),
    ("max=12", {"Night Orchard", "Cherry Pie"}),
    ("min=30&max=40", {"Blue Dream", "Gelato 41"}),
    ("gram=10", {"Gelato 41", "Old Stock", "Cherry Pie"}),
    ("thc_min=25", {"Gelato 41", "Cherry Pie"}),
    ("thc_max=18", {"Night Orchard", "Old Stock"}),
    ("near=85004", {"Blue Dream", "Gelato 41", "Night Orchard", "Peach Gummies", "Old Stock"}),
    ("near=Tucson,+AZ", {"Blue Dream", "Cherry Pie"}),
    ("near=85004&q=blue&special=1", set()),
    ("near=85701&special=1", {"Blue Dream"}),
    ("near=85701&q=bleu", {"Blue Dream"}),
]


async def test_a_wish_finds_what_it_names(two: Front) -> None:
    # 40 dollars for 3.5 g are 11.43 a gram, 36 are 10.29; 30 are 8.57, 90 for 14 g are 6.43.
    assert {query: set(await found(two, query)) for query, _ in WISHES} == dict(WISHES)


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("price", ["Cherry Pie", "Night Orchard", "Peach Gummies", "Gelato 41", "Blue Dream", "Old Stock"]),
        ("per_gram", ["Old Stock", "Gelato 41", "Cherry Pie", "Blue Dream", "Night Orchard", "Peach Gummies"]),
        ("thc", ["Cherry Pie", "Gelato 41", "Blue Dream", "Night Orchard", "Old Stock", "Peach Gummies"]),
    ],
)
async def test_an_order_sorts(two: Front, sort: str, names: list[str]) -> None:
    assert await found(two, f"sort={sort}") == names


async def test_near_a_place_its_prices_count_and_the_nearest_come_first(two: Front) -> None:
    here = await two.page("/search?near=85004&within=25&q=blue")
    assert "$40" in here.text
    assert "$36" not in here.text
    both = await two.page("/search?near=85701&within=100&sort=distance&stock=1")
    assert set(both.names[:2]) == {"Blue Dream", "Cherry Pie"}


async def test_the_front_page_looks_around_the_visitors_city(two: Front, tmp_path: Path) -> None:
    """Of Tucson the database knows no place on the map: the gazetteer does. Where no store is, it looks nowhere. No page
    that was rendered for one visitor is shown to another."""
    networks = {
        "93.184.216.0/24": mmdb_file.city("US", "Arizona", "Phoenix", (33.4484, -112.074)),
        "93.184.217.0/24": mmdb_file.city("US", "Arizona", "Tucson"),
        "81.2.69.0/24": mmdb_file.city("GB", "England", "London", (51.5, -0.125)),
    }
    mmdb_file.write(tmp_path / "places.mmdb", networks)
    shop, geo = two.shop, GeoDatabase(tmp_path / "places.mmdb")
    settings = replace(two.settings, site_cache_mb=32)
    served = AppContext(pool=shop.pool, archive=shop.archive, platforms=shop.platforms, settings=settings, geo=geo)
    site = create_site(served, Traffic())
    near = {
        "8.8.8.8": None,
        "93.184.216.34": "Near Phoenix, AZ",
        "93.184.217.34": "Near Tucson, AZ",
        "81.2.69.142": None,
        "127.0.0.1": None,
    }
    for address, said in near.items():
        transport = httpx.ASGITransport(Apps(api=site, dashboard=site, site=site), client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://menus.example") as http:
            page = Page(await http.get("/"))
        assert page.status == 200
        assert ("Estimated from your network" in page.text) == (said is not None), address
        assert said is None or said in page.text, address


async def test_counts_follow_the_filter_and_leave_out_their_own_choice(two: Front) -> None:
    facets = (await two.page("/search?category=flower&strain=indica")).facets
    assert facets["Category"] == {"Flower": "2"}
    assert facets["Strain"] == {"Indica": "2", "Hybrid": "2", "Sativa": "1"}
    assert facets["Show only"] == {"In stock": "2", "On special": "0"}
    assert facets["Brand"] == {"Acme": "1", "Kiln": "1"}
    assert (await two.page("/search")).facets["Category"] == {"Flower": "5", "Edibles": "1"}


async def test_counts_near_a_place_are_those_of_its_stores(two: Front) -> None:
    facets = (await two.page("/search?near=85701")).facets
    assert facets["Category"] == {"Flower": "2"}
    assert facets["Show only"] == {"In stock": "2", "On special": "1"}
    assert facets["Price"] == {"Under $20": "1", "$20 to $40": "1"}


@pytest.mark.parametrize("sort", ["", "price", "per_gram", "thc", "newest"])
@pytest.mark.parametrize("near", ["", "&near=85004"])
async def test_pages_show_everything_once_in_order(front: Front, sort: str, near: str) -> None:
    menu = [
        item(
            str(n),
            f"Thing {chr(65 + n // 26)}{chr(97 + n % 26)}zix",
            options=[("1g", 10 + n % 7, n % 3)],
            thc=float(10 + n % 11),
        )
        for n in range(60)
    ]
    await front.crawl(await front.shop.store(**PHOENIX), 0, menu)
    seen: list[str] = []
    path = f"/search?sort={sort}{near}"
    for _ in range(5):
        page = await front.page(path)
        seen += page.names
        if "More products" not in page.text:
            break
        path = page.link("More products")
    assert len(seen) == 60
    assert set(seen) == {one["Name"] for one in menu}
    if sort == "price":
        price = {one["Name"]: one["recPrices"][0] for one in menu}
        assert [price[name] for name in seen] == sorted(price.values())


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("min=cheap", "“cheap” is not a price"),
        ("min=50&max=20", "The maximum price is below the minimum"),
        ("thc_min=200", "not a percentage from 0 to 100"),
        ("near=nowhere+at+all", "We couldn’t find “nowhere at all”"),
        ("category=guns", "Unknown category “guns”"),
        ("store=999999", "That store is no longer listed"),
    ],
)
async def test_what_is_wrong_is_said_and_what_was_typed_stays(two: Front, query: str, said: str) -> None:
    page = await two.page(f"/search?{query}")
    assert said in page.text
    name, _, value = query.partition("&")[0].partition("=")
    if name in ("min", "near"):
        assert any(one.get("value") == value.replace("+", " ") for one in page.all("input", name=name))


@pytest.mark.parametrize(
    "query",
    ["after=x", "after=99999999999999999999.1", "after=1.99999999999999999999", "sort=nothing", "within=7", "store=abc",
     "q=%00", "q=" + "a" * 5000, "near=%F0%9F%8C%B5", "strain=x&strain=y",
     "size=" + "&size=".join(map(str, range(200))), "max=9999999999"],
)  # fmt: skip
async def test_nonsense_in_an_address_is_no_fault(two: Front, query: str) -> None:
    await two.page(f"/search?{query}")


async def test_what_leaves_more_than_is_counted_is_told_as_an_estimate(
    two: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All but a hair of the table is looked at, so what is estimated is what there is.
    monkeypatch.setattr("menuwatch.storefront.search._SAMPLE_ROWS", 5.9999)
    monkeypatch.setattr("menuwatch.storefront.search.SURE", 3)
    await two.shop.execute("UPDATE storefront_totals SET items = 6 WHERE kind = 'all'")
    page = await two.page("/search")
    assert "≈ 6 products" in page.text
    assert page.facets["Category"] == {"Flower": "≈ 5", "Edibles": "≈ 1"}
    assert len(page.names) == 6


async def test_words_that_find_very_many_find_the_same(two: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = {
        query: set(await found(two, query))
        for query in ("q=kiln", "q=flower", "q=kiln&near=85004", "q=flower&special=1")
    }
    monkeypatch.setattr("menuwatch.storefront.search.MOST_COUNTED", 1)
    assert {query: set(await found(two, query)) for query in narrow} == narrow
    assert narrow["q=kiln"] == {"Night Orchard", "Peach Gummies", "Old Stock"}
