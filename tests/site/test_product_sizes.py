"""The page of a product compares stores size by size, and shows a location once however many menus it has."""

from __future__ import annotations

import re

import pytest

from tests.api.shop import item
from tests.site.shop_pages import Front, Page
from tests.site.test_watches import feed, news

PHOENIX = {"city": "Phoenix", "state": "AZ", "latitude": 33.4484, "longitude": -112.0740}
TUCSON = {"city": "Tucson", "state": "AZ", "latitude": 32.2226, "longitude": -110.9747}


async def page_of(front: Front, query: str = "", name: str = "Blue Dream") -> Page:
    number = await front.item(name)
    return await front.page((await front.http.get(f"/p/{number}{query}")).headers["location"])


def tables(page: Page) -> dict[str, list[tuple[str, str]]]:
    """For each size, in their order, the stores with what they ask."""
    found = {}
    for body in page.html.split('<h3 id="size-')[1:]:
        rows = re.findall(
            r'<li class="offer.*?<strong>(.*?)</strong>.*?<div class="asks">.*?<strong>(.*?)</strong>', body, re.DOTALL
        )
        found[body[body.index(">") + 1 : body.index("<")]] = rows
    return found


@pytest.fixture
async def three(front: Front) -> Front:
    menus = {
        "alpha": [("1/8oz", 40, 5), ("1g", 14, 5), ("1/4oz", 70, 5)],
        "beta": [("1/8oz", 36, 5), ("1g", 15, 5)],
        "gamma": [("1/8oz", 30, 0), ("1/4oz", 75, 2)],
    }
    for slug, options in menus.items():
        store = await front.shop.store(slug, **(TUCSON if slug == "beta" else PHOENIX))
        await front.crawl(store, 0, [item(f"of-{slug}", options=options)])
    return front


async def test_sizes_are_compared_apart_and_by_weight(three: Front) -> None:
    page = await page_of(three)
    # What is out of stock comes last, whatever it costs.
    assert tables(page) == {
        "1 g": [("Alpha", "$14"), ("Beta", "$15")],
        "3.5 g": [("Beta", "$36"), ("Alpha", "$40"), ("Gamma", "$30")],
        "7 g": [("Alpha", "$70"), ("Gamma", "$75")],
    }
    assert "$14 for 1 g" in page.text
    assert "Lowest price at Alpha" in page.text
    assert "Lowest price of 1 g across all stores" in page.text


async def test_a_chosen_size_is_what_all_of_the_page_is_about(three: Front) -> None:
    page = await page_of(three, "?size=3.5+g")
    assert list(tables(page)) == ["3.5 g"]
    assert "$36 for 3.5 g" in page.text
    assert "Lowest price of 3.5 g at Beta" in page.text
    (option,) = [found for found in page.all("option") if "selected" in found and not found.get("value")]
    assert option is not None
    assert "$14 for 1 g" in (await page_of(three, "?size=9+g")).text


async def test_near_a_place_the_nearest_store_comes_first(three: Front) -> None:
    page = await page_of(three, "?size=3.5+g&near=Tucson,+AZ&within=100")
    assert tables(page)["3.5 g"][0] == ("Beta", "$36")
    assert "Nearest at Beta" in page.text
    page = await page_of(three, "?size=3.5+g&near=85004&within=100")
    assert [store for store, _ in tables(page)["3.5 g"]] == ["Alpha", "Beta", "Gamma"]


async def test_machines_read_the_offers_of_each_size(three: Front) -> None:
    data = (await page_of(three)).linked
    assert (data["@type"], data["variesBy"], "offers" in data) == ("ProductGroup", "https://schema.org/size", False)
    offers = {one["size"]: one["offers"] for one in data["hasVariant"]}
    assert {size: (one["lowPrice"], one["highPrice"], one["offerCount"]) for size, one in offers.items()} == {
        "1 g": ("14.00", "15.00", 2),
        "3.5 g": ("30.00", "40.00", 3),
        "7 g": ("70.00", "75.00", 2),
    }
    gamma = [one for one in offers["3.5 g"]["offers"] if one["seller"]["name"] == "Gamma"]
    assert gamma[0]["availability"].endswith("OutOfStock")
    assert (await page_of(three, "?size=7+g")).linked["offers"]["lowPrice"] == "70.00"


async def test_many_stores_are_shown_some_at_a_time_and_the_cheapest_of_every_size_is(front: Front) -> None:
    for n in range(13):
        store = await front.shop.store(f"s{n:02}")
        await front.shop.crawl(store, 0, [item(f"of-{n}", options=[("1g", 10 + n, 5)])])
    dear = await front.shop.store("dear")
    await front.crawl(dear, 0, [item("of-dear", options=[("1g", 90, 5), ("1/8oz", 99, 5)])])
    page = await page_of(front)
    assert [len(rows) for rows in tables(page).values()] == [11, 1]
    assert tables(page)["3.5 g"] == [("Dear", "$99")]
    every = await front.page(page.link("All 14 stores with 1 g").removeprefix("http://menus.example").partition("#")[0])
    assert len(tables(every)["1 g"]) == 14


async def test_cards_say_which_size_their_price_is_for(three: Front) -> None:
    page = await three.page("/search")
    assert '<span class="for">1 g</span> <span class="for">from</span> <strong>$14</strong>' in page.html


async def test_a_menu_that_lists_a_product_thirty_times_is_one_row(front: Front) -> None:
    store = await front.shop.store()
    await front.crawl(store, 0, [item(f"n{n}", options=[("1/8oz", 60 - n, 5)]) for n in range(30)])
    assert await front.rows("SELECT stores, price FROM storefront_items") == [(1, 3100)]
    page = await page_of(front)
    assert tables(page) == {"3.5 g": [("Green-Leaf", "$31")]}


class TestLocations:
    @pytest.fixture
    async def twice(self, front: Front) -> Front:
        """One shop with two menus, of which that of Weedmaps is fresher, and another shop."""
        for slug, price, hours in (("shop", 30, 0), ("shop-wm", 32, 2), ("other", 35, 0)):
            store = await front.shop.store(slug, **PHOENIX)
            await front.crawl(store, hours, [item(f"of-{slug}", options=[("1/8oz", price, 5)])])
        await front.shop.execute("UPDATE dispensaries SET platform = 'weedmaps' WHERE slug = 'shop-wm'")
        await front.shop.execute("INSERT INTO locations (name) VALUES ('Shop')")
        await front.shop.execute(
            "INSERT INTO location_links (location_id, dispensary_id, confidence, reasons) VALUES (1, 1, 1, '[]'), (1, 2, 1, '[]')"
        )
        await front.index()
        return front

    async def test_it_has_one_row_with_the_fresher_menu_and_both_prices(self, twice: Front) -> None:
        page = await page_of(twice)
        assert tables(page) == {"3.5 g": [("Shop-Wm", "$32"), ("Other", "$35")]}
        assert "on the Weedmaps menu $30 on Dutchie, seen" in page.text
        assert "2 stores" in page.text

    async def test_equal_prices_are_said_once(self, twice: Front) -> None:
        await twice.crawl(1, 4, [item("of-shop", options=[("1/8oz", 32, 5)])])
        page = await page_of(twice)
        assert tables(page)["3.5 g"] == [("Shop", "$32"), ("Other", "$35")]
        assert "on Weedmaps" not in page.text

    async def test_it_counts_as_one_store(self, twice: Front) -> None:
        assert await twice.rows("SELECT stores, in_stock FROM storefront_items") == [(2, 2)]
        for path, said in (("/", "at 2 stores"), ("/search?near=85004", "at 2 stores within"), ("/search", "2 stores")):
            await twice.shop.execute("UPDATE storefront_totals SET made_at = now() - interval '1 hour'")
            await twice.index()
            assert said in (await twice.page(path)).text, path

    async def test_lists_of_stores_have_it_once(self, twice: Front) -> None:
        for path in ("/stores/AZ", "/stores?near=85004"):
            assert re.findall(r'<li class="store"><a href="/s/(\d+)', (await twice.page(path)).html) in (
                ["3", "2"],
                ["2", "3"],
            ), path
        page = await twice.page("/s/1-shop")
        assert "A fresher menu of this store: Weedmaps" in page.text
        assert "Another menu of this store: Dutchie" in (await twice.page("/s/2-shop-wm")).text

    async def test_menus_that_are_linked_no_more_are_two_stores(self, twice: Front) -> None:
        await twice.shop.execute("DELETE FROM location_links WHERE dispensary_id = 2")
        await twice.index()
        assert await twice.rows("SELECT stores FROM storefront_items") == [(3,)]
        assert len(tables(await page_of(twice))["3.5 g"]) == 3


class TestWatches:
    async def test_one_of_a_size_is_about_that_size(self, three: Front) -> None:
        number = await three.item("Blue Dream")
        token = await feed(three, number, condition="price_below", amount="32", size="3.5 g")
        await three.crawl(1, 4, [item("of-alpha", options=[("1/8oz", 38, 5), ("1g", 9, 5), ("1/4oz", 70, 5)])])
        # Gamma asks 30 for it, and is out of it.
        assert await news(three, token) == []
        await three.crawl(1, 8, [item("of-alpha", options=[("1/8oz", 31, 5), ("1g", 9, 5), ("1/4oz", 70, 5)])])
        assert await news(three, token) == ["Blue Dream (3.5 g) is $31.00"]
        assert "Blue Dream (3.5 g) costs less than $32.00" in (await three.page(f"/alerts/{token}")).text

    async def test_back_in_stock_is_about_the_size(self, three: Front) -> None:
        for store, slug in ((1, "alpha"), (2, "beta")):
            await three.crawl(store, 4, [item(f"of-{slug}", options=[("1/8oz", 40, 0), ("1g", 14, 5)])])
        token = await feed(three, await three.item("Blue Dream"), condition="back_in_stock", size="3.5 g")
        await three.crawl(2, 8, [item("of-beta", options=[("1/8oz", 40, 0), ("1g", 13, 5)])])
        assert await news(three, token) == []
        await three.crawl(2, 12, [item("of-beta", options=[("1/8oz", 37, 3), ("1g", 13, 5)])])
        assert await news(three, token) == ["Blue Dream (3.5 g) is back in stock at $37.00"]

    async def test_a_size_that_is_not_listed_is_refused(self, three: Front) -> None:
        number = await three.item("Blue Dream")
        answer = await three.post(f"/p/{number}/watch", by="feed", reach="any", condition="any_drop", size="28 g")
        assert answer.status_code == 422
        assert "No store lists that size now. Choose another one." in answer.text
