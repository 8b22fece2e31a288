"""Price limits of alerts and searches have the currency of the store or the place that they are about."""

from __future__ import annotations

import pytest

from tests.api.shop import item
from tests.site.shop_pages import Front, Page
from tests.site.test_group_watches import ask
from tests.site.test_near_me import PHOENIX, TORONTO
from tests.site.test_watches import news

GOODS = {"1": ("Blue Dream", 40), "2": ("Slip", 50)}


async def crawl(front: Front, store: int, hours: float, *, cheaper: float = 0) -> None:
    menu = [item(key, name, options=[("1/8oz", price - cheaper, 5)]) for key, (name, price) in GOODS.items()]
    await front.crawl(store, hours, menu)


@pytest.fixture
async def toronto(front: Front) -> int:
    store = await front.shop.store("tower", **TORONTO)
    await crawl(front, store, 0)
    return store


def asked_for(page: Page) -> tuple[str | None, str]:
    """The placeholder of the price limit, and its label."""
    (field,) = page.all("input", name="amount")
    return field["placeholder"], page.html.partition('for="amount">')[2].partition("<")[0]


async def test_an_alert_on_a_product_in_canada(front: Front, toronto: int) -> None:
    number = await front.item("Blue Dream")
    assert asked_for(await front.page(f"/p/{number}-blue-dream")) == ("CA$", "Price in Canadian dollars")
    fields = {"condition": "price_below", "by": "feed", "reach": "any"}
    refused = Page(await front.post(f"/p/{number}/watch", amount="CA$ 45", **fields))
    assert "It already costs CA$40.00. Choose a lower price" in refused.text
    for typed in ("CA$35", "C$35", "$35", "35"):
        answer = await front.post(f"/p/{number}/watch", amount=typed, **fields)
        assert answer.status_code == 303, typed
    assert await front.rows("SELECT DISTINCT amount FROM price_watches") == [(35,)]
    token = answer.headers["location"].removeprefix("/alerts/")
    assert "Blue Dream costs less than CA$35.00" in (await front.page(f"/alerts/{token}")).text
    await crawl(front, toronto, 4, cheaper=6)
    assert await news(front, token) == ["Blue Dream is CA$34.00"]


async def test_an_alert_on_a_product_in_the_united_states(front: Front) -> None:
    await crawl(front, await front.shop.store("desert", **PHOENIX), 0)
    number = await front.item("Blue Dream")
    assert asked_for(await front.page(f"/p/{number}-blue-dream")) == ("$", "Price in dollars")
    near = await front.page(f"/p/{number}-blue-dream", params={"near": "Toronto, ON"})
    assert asked_for(near) == ("CA$", "Price in Canadian dollars"), "that of the place"


async def test_an_alert_on_a_store(front: Front, toronto: int) -> None:
    assert asked_for(await front.page(f"/alerts/new?of=store&store={toronto}")) == ("CA$", "Price in Canadian dollars")
    token = await ask(front, f"of=store&store={toronto}", "price_below", amount="48")
    assert "a product costs less than CA$48.00 at Tower" in (await front.page(f"/alerts/{token}")).text
    # 50 - 4 is below the limit now; 40 was already.
    await crawl(front, toronto, 4, cheaper=4)
    assert await news(front, token) == ["Slip (3.5 g) is CA$46.00, down from CA$50.00"]


async def test_limits_of_a_search(front: Front, toronto: int) -> None:
    near = {"near": "Toronto, ON", "max": "CA$45", "gram": "$20"}
    page = await front.page("/search", params=near)
    assert page.names == ["Blue Dream"]
    assert "under CA$45" in page.text
    assert "up to CA$20 per gram" in page.text
    assert [page.all("input", id=name)[0]["placeholder"] for name in ("min", "max")] == ["CA$ from", "CA$ to"]
    assert list(page.facets["Price"]) == ["CA$40 to CA$60"]
    everywhere = await front.page("/search", params={"max": "$45"})
    assert "under $45" in everywhere.text
    text = await front.page("/search", params={"q": "flower under CA$45", "near": "Toronto, ON"})
    assert text.names == ["Blue Dream"]
    assert (
        "products matching up to CA$45"
        in (await front.page("/alerts/new", params={"of": "search", "max": "CA$45", "near": "Toronto, ON"})).text
    )
    token = await ask(front, "of=search&max=45", "any_drop", reach="near", near="Toronto, ON", within="25")
    shown = (await front.page(f"/alerts/{token}")).text
    assert "a product matching up to CA$45 gets cheaper within 40 km of Toronto, ON" in shown


async def two_countries(front: Front) -> tuple[int, int]:
    """A store in Phoenix, where Blue Dream costs $40, and one in Toronto, where it costs CA$55."""
    desert, tower = await front.shop.store("desert", **PHOENIX), await front.shop.store("tower", **TORONTO)
    await priced(front, desert, 0, 40)
    await priced(front, tower, 0, 55)
    return desert, tower


async def priced(front: Front, store: int, hours: float, price: float, quantity: int = 5) -> None:
    await front.crawl(store, hours, [item("1", "Blue Dream", options=[("1/8oz", price, quantity)])])


async def watch(front: Front, **fields: str) -> str:
    number = await front.item("Blue Dream")
    answer = await front.post(f"/p/{number}/watch", by="feed", **{"reach": "any", **fields})
    assert answer.status_code == 303, Page(answer).text
    return answer.headers["location"].removeprefix("/alerts/")


async def test_a_drop_is_one_in_the_same_currency(front: Front) -> None:
    """CA$36 is less than $40 as a number alone; the watch is about US dollars, as the cheapest offer when it was created."""
    desert, tower = await two_countries(front)
    token = await watch(front, condition="any_drop")
    await priced(front, tower, 4, 36)
    assert await news(front, token) == []
    await priced(front, desert, 8, 38)
    assert await news(front, token) == ["Blue Dream is $38.00, down from $40.00"]
    # The only store with US dollars runs out: nothing is compared with the price in Canada.
    await priced(front, desert, 12, 38, quantity=0)
    await priced(front, tower, 16, 30)
    assert len(await news(front, token)) == 1


async def test_a_limit_is_in_the_currency_that_the_form_showed(front: Front) -> None:
    """Anywhere: without the currency shown, it would be that of the cheapest offer, in Phoenix."""
    await two_countries(front)
    number = await front.item("Blue Dream")
    page = await front.page(f"/p/{number}-blue-dream", params={"near": "Toronto, ON"})
    (shown,) = page.all("input", name="currency")
    assert (asked_for(page)[0], shown["value"]) == ("CA$", "CAD")
    token = await watch(front, condition="price_below", amount="45", currency="CAD")
    assert "Blue Dream costs less than CA$45.00" in (await front.page(f"/alerts/{token}")).text
    token = await watch(front, condition="price_below", amount="35", currency="EUR")
    assert "Blue Dream costs less than $35.00" in (await front.page(f"/alerts/{token}")).text


async def test_a_drop_in_canada_is_in_canadian_dollars(front: Front) -> None:
    desert, tower = await two_countries(front)
    token = await watch(front, condition="any_drop", reach="near", near="Toronto, ON", within="25")
    await priced(front, desert, 4, 20)
    assert await news(front, token) == []
    await priced(front, tower, 8, 50)
    assert await news(front, token) == ["Blue Dream is CA$50.00, down from CA$55.00"]


async def test_a_limit_is_compared_with_prices_of_its_currency(front: Front) -> None:
    desert, tower = await two_countries(front)
    of_item = await watch(front, condition="price_below", amount="39")
    of_search = await ask(front, "of=search&q=blue", "price_below", amount="39")
    of_limit = await ask(front, "of=search&q=blue&max=39", "any_drop")
    for token in (of_item, of_search):
        assert "costs less than $39.00" in (await front.page(f"/alerts/{token}")).text
    await priced(front, tower, 4, 38)
    assert [await news(front, token) for token in (of_item, of_search, of_limit)] == [[], [], []]
    await priced(front, desert, 8, 37)
    (said,) = await news(front, of_item)
    assert said == "Blue Dream is $37.00"
    for token in (of_search, of_limit):
        assert await news(front, token) == ["Blue Dream (3.5 g) is $37.00, down from $40.00"]


async def test_back_in_stock_in_another_country_has_its_currency(front: Front) -> None:
    desert, tower = await two_countries(front)
    await priced(front, desert, 4, 40, quantity=0)
    await priced(front, tower, 5, 35, quantity=0)
    token = await watch(front, condition="back_in_stock")
    await priced(front, tower, 8, 35)
    assert await news(front, token) == ["Blue Dream is back in stock at CA$35.00"]


async def test_an_alert_everywhere_has_the_currency_of_most_stores(front: Front, toronto: int) -> None:
    token = await ask(front, "of=search&q=dream", "price_below", amount="39")
    assert "costs less than CA$39.00" in (await front.page(f"/alerts/{token}")).text
    await crawl(front, toronto, 4, cheaper=3)
    assert await news(front, token) == ["Blue Dream (3.5 g) is CA$37.00, down from CA$40.00"]
