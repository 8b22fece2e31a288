"""Alerts on what changes at a store, of a brand, of a search, and new deals of a product."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.api.shop import item
from tests.site.shop_pages import Front, Page
from tests.site.test_product_sizes import PHOENIX, TUCSON
from tests.site.test_watches import news

PLAIN = [item("1", options=[("1/8oz", 40, 5)]), item("2", "Green Crack", options=[("1/8oz", 30, 5)])]


@pytest.fixture
async def two(front: Front) -> Front:
    """Two stores with the same two products of a brand."""
    for slug, place in (("alpha", PHOENIX), ("beta", TUCSON)):
        await front.crawl(await front.shop.store(slug, **place), 0, PLAIN)
    return front


async def ask(front: Front, query: str, condition: str, **fields: str) -> str:
    """Asks for a feed; returns its token."""
    answer = await front.post(f"/alerts/new?{query}", condition=condition, by="feed", **fields)
    assert answer.status_code == 303, Page(answer).text
    return answer.headers["location"].removeprefix("/alerts/")


def menu(price: float = 40, quantity: int | None = 5, special: list[float] | None = None, *more: Any) -> list[Any]:
    return [item("1", options=[("1/8oz", price, quantity)], special=special or []), PLAIN[1], *more]


class TestConditions:
    @pytest.fixture
    def brand(self) -> str:
        return "of=brand&brand=acme"

    async def test_a_drop_at_any_store(self, two: Front, brand: str) -> None:
        token = await ask(two, brand, "any_drop")
        await two.crawl(1, 4, menu(36))
        await two.crawl(1, 8, menu(39))
        await two.crawl(2, 8, menu(40, 4))
        assert await news(two, token) == ["Blue Dream (3.5 g) is $36.00, down from $40.00"]

    async def test_a_price_below_is_told_when_it_is_crossed(self, two: Front, brand: str) -> None:
        token = await ask(two, brand, "price_below", amount="35")
        for hours, price in ((4, 34), (8, 33), (12, 37), (16, 32)):
            await two.crawl(1, hours, menu(price))
        assert len(await news(two, token)) == 2

    async def test_back_in_stock(self, two: Front, brand: str) -> None:
        token = await ask(two, brand, "back_in_stock")
        await two.crawl(1, 4, menu(40, 0))
        assert await news(two, token) == []
        await two.crawl(1, 8, menu(40, 3))
        assert await news(two, token) == ["Blue Dream (3.5 g) is back in stock at $40.00"]

    async def test_a_new_deal_is_told_when_it_begins(self, two: Front, brand: str) -> None:
        token = await ask(two, brand, "new_deal")
        for hours, special in ((4, [30.0]), (8, [30.0]), (12, []), (16, [31.0])):
            await two.crawl(1, hours, menu(40, 5, special))
        assert await news(two, token) == [
            "Blue Dream (3.5 g) is on special at $31.00",
            "Blue Dream (3.5 g) is on special at $30.00",
        ]

    async def test_a_product_is_new_once(self, two: Front, brand: str) -> None:
        token = await ask(two, brand, "new_product")
        for hours, store in ((4, 1), (8, 1), (12, 2)):
            await two.crawl(store, hours, menu(40, 5, None, item("3", "Purple Haze", options=[("1/8oz", 45, 5)])))
        assert await news(two, token) == ["Purple Haze (3.5 g) is new at $45.00"]

    async def test_another_size_makes_no_new_product(self, two: Front, brand: str) -> None:
        token = await ask(two, brand, "new_product")
        large = await ask(two, "of=search&size=7+g", "new_product")
        haze = {"eighth": [("1/8oz", 45, 5)], "both": [("1/8oz", 45, 5), ("1/4oz", 80, 5)]}
        await two.crawl(1, 4, menu(40, 5, None, item("3", "Purple Haze", options=haze["eighth"])))
        await two.crawl(1, 8, menu(40, 5, None, item("3", "Purple Haze", options=haze["both"])))
        assert (len(await news(two, token)), await news(two, large)) == (1, [])
        # Of a product that is new in two sizes, the one that is asked for counts.
        await two.crawl(1, 12, menu(40, 5, None, item("4", "Sour Diesel", options=haze["both"])))
        assert await news(two, large) == ["Sour Diesel (7 g) is new at $80.00"]

    async def test_what_was_away_is_not_new(self, two: Front, brand: str) -> None:
        for store in (1, 2):
            for hours in (4, 8, 12):
                await two.crawl(store, hours, [PLAIN[1]])
        new, back = await ask(two, brand, "new_product"), await ask(two, brand, "back_in_stock")
        await two.crawl(1, 96, menu())
        assert await news(two, new) == []
        assert await news(two, back) == ["Blue Dream (3.5 g) is back in stock at $40.00"]

    async def test_many_are_one_event(self, two: Front, brand: str) -> None:
        token = await ask(two, brand, "any_drop")
        await two.crawl(
            1, 4, [item("1", options=[("1/8oz", 39, 5)]), item("2", "Green Crack", options=[("1/8oz", 29, 5)])]
        )
        assert await news(two, token) == ["2 price drops: Blue Dream (3.5 g), Green Crack (3.5 g)"]
        page = await two.page(f"/alerts/{token}")
        assert "Green Crack (3.5 g) is $29.00, down from $30.00" in page.text


class TestSubjects:
    async def test_a_store_alone(self, two: Front) -> None:
        token = await ask(two, "of=store&store=2", "any_drop")
        await two.crawl(1, 4, menu(30))
        await two.crawl(2, 4, menu(35))
        assert await news(two, token) == ["Blue Dream (3.5 g) is $35.00, down from $40.00"]
        assert "a product gets cheaper at Beta" in (await two.page(f"/alerts/{token}")).text

    async def test_new_at_a_store_is_what_others_had_before(self, two: Front) -> None:
        token = await ask(two, "of=store&store=2", "new_product")
        haze = item("3", "Purple Haze", options=[("1/8oz", 45, 5)])
        await two.crawl(1, 4, menu(40, 5, None, haze))
        await two.crawl(2, 4, menu(40, 5, None, haze))
        assert await news(two, token) == ["Purple Haze (3.5 g) is new at $45.00"]

    async def test_around_a_place(self, two: Front) -> None:
        fields = {"reach": "near", "near": "85004", "within": "25"}
        drops = await ask(two, "of=brand&brand=acme", "any_drop", **fields)
        new = await ask(two, "of=brand&brand=acme", "new_product", **fields)
        await two.crawl(2, 4, menu(30, 5, None, item("3", "Purple Haze")))
        assert (await news(two, drops), await news(two, new)) == ([], [])
        await two.crawl(1, 4, menu(35, 5, None, item("3", "Purple Haze")))
        assert len(await news(two, drops)) == 1
        # It is new here, though not everywhere.
        assert len(await news(two, new)) == 1

    @pytest.mark.parametrize(
        ("query", "told"),
        [
            ("q=blue+dream", True),
            ("q=green+crack", False),
            ("q=blue+dream&category=flower&size=3.5+g&brand=acme", True),
            ("q=blue+dream&category=edible", False),
            ("category=flower&max=35", False),
            ("category=flower&min=35&max=37", True),
            ("category=flower&size=28+g", False),
            ("q=dream&store=1", True),
            ("q=dream&store=2", False),
            ("thc_min=20&q=blue", True),
            ("thc_min=25&q=blue", False),
        ],
    )
    async def test_a_search_with_its_filters(self, two: Front, query: str, told: bool) -> None:
        token = await ask(two, f"of=search&{query}", "any_drop")
        await two.crawl(1, 4, menu(36))
        assert len(await news(two, token)) == told

    async def test_an_alert_asks_for_what_the_search_showed(self, two: Front) -> None:
        page = await two.page("/search?q=bluee+dream+waterfall")
        assert page.names == ["Blue Dream"]
        assert re.findall(r'href="/alerts/new\?of=search&amp;([^"]*)"', page.html) == ["q=blue+dream"]

    async def test_equal_searches_are_kept_once(self, two: Front) -> None:
        for query in ("q=blue+dream&near=85004", "q=blue+dream&sort=price"):
            await ask(two, f"of=search&{query}", "new_deal")
        assert await two.rows("SELECT query FROM watched_searches") == [("/search?q=blue+dream",)]

    async def test_a_deal_of_a_product(self, two: Front) -> None:
        number = await two.item("Blue Dream")
        answer = await two.post(f"/p/{number}/watch", condition="new_deal", by="feed", reach="any", size="3.5 g")
        token = answer.headers["location"].removeprefix("/alerts/")
        await two.crawl(1, 4, menu(40, 5, [30.0]))
        assert await news(two, token) == ["Blue Dream (3.5 g) is on special at $30.00"]

    async def test_a_merged_brand_is_watched_on(self, two: Front) -> None:
        token = await ask(two, "of=brand&brand=acme", "any_drop")
        ((former,),) = await two.rows("SELECT brand_id FROM price_watches")
        await two.rows("INSERT INTO brands (slug, name) VALUES ('other', 'Other') RETURNING id")
        await two.shop.execute(
            f"UPDATE brands SET merged_into = (SELECT id FROM brands WHERE slug = 'other') WHERE id = {former}"
        )
        await two.index()
        await two.crawl(1, 4, menu(30))
        assert len(await news(two, token)) == 1
        assert "a product of Other" in (await two.page(f"/alerts/{token}")).text


class TestQuiet:
    async def test_a_store_that_is_added_or_shown_again_is_no_news(self, two: Front) -> None:
        tokens = [await ask(two, "of=brand&brand=acme", one) for one in ("any_drop", "new_product", "back_in_stock")]
        tokens.append(await ask(two, "of=brand&brand=acme", "price_below", amount="90"))
        await two.crawl(await two.shop.store("gamma"), 4, [*PLAIN, item("9", "Sour Diesel")])
        await two.shop.execute("UPDATE dispensaries SET crawl_enabled = false WHERE id = 1")
        await two.index()
        await two.shop.execute("UPDATE dispensaries SET crawl_enabled = true WHERE id = 1")
        await two.crawl(1, 8, menu(20))
        assert [await news(two, token) for token in tokens] == [[]] * 4

    async def test_nothing_is_noted_while_nobody_watches(self, two: Front) -> None:
        await two.crawl(1, 4, menu(30))
        assert await two.rows("SELECT count(*) FROM storefront_former_offers") == [(0,)]

    async def test_what_was_noted_is_taken(self, two: Front) -> None:
        await ask(two, "of=brand&brand=acme", "any_drop")
        await two.crawl(1, 4, menu(30))
        assert await two.rows("SELECT count(*) FROM storefront_former_offers") == [(0,)]


async def test_pages_lead_to_the_form(two: Front) -> None:
    for path, about in (
        ("/b/acme", "products of Acme"),
        ("/s/1-alpha", "products at Alpha"),
        ("/search?q=blue+dream&max=50", "products matching “blue dream” (up to $50)"),
    ):
        link = (await two.page(path)).link("Set an alert")
        assert about in (await two.page(link)).text
    assert "Set an alert" not in (await two.page("/search")).text
    for nothing in ("of=brand&brand=nobody", "of=store&store=99", "of=search", "of=x", ""):
        await two.page(f"/alerts/new?{nothing}", status=404)


async def test_a_wrong_form_says_what_is_right(two: Front) -> None:
    page = Page(await two.post("/alerts/new?of=brand&brand=acme", condition="price_below", amount="x", by="feed"))
    assert page.status == 422
    assert "Enter a price such as 25 or 25.50." in page.text
    page = Page(
        await two.post("/alerts/new?of=brand&brand=acme", condition="x", by="pigeon", reach="near", near="nowhere")
    )
    for said in ("Choose an alert condition.", "Choose how to be notified.", "We couldn’t find “nowhere”"):
        assert said in page.text
