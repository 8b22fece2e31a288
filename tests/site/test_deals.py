"""Deals: the special's own offer, savings that are true, promotions, and where they end."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.api.shop import item
from tests.site.shop_pages import Front, Page
from tests.site.test_price_history import NOW, ago
from tests.site.test_product_sizes import PHOENIX, TUCSON


def sale(name: str, discount: float, *, kind: str = "percentDiscount", days: float | None = None) -> dict[str, Any]:
    """A special of a Dutchie menu that ends in so many days."""
    ends = {} if days is None else {"endStamp": str(int((NOW + timedelta(days=days)).timestamp() * 1000))}
    return {"specialName": name, "specialId": name.lower(), "discount": discount, kind: True, **ends}


def haze(
    price: float = 40, special: list[float] | None = None, *, n: str = "1", name: str = "Purple Haze", **more: Any
) -> dict[str, Any]:
    options = more.pop("options", [("1/8oz", price, 5)])
    specials = more.pop("specials", ())
    data = {"specialData": {"saleSpecials": list(specials), "bogoSpecials": None}} if specials else {}
    return item(n, name, options=options, special=special or [], **data, **more)


async def crawl(front: Front, store: int, days: float, *items: dict[str, Any]) -> None:
    await front.shop.execute(f"SELECT ensure_product_history_partition('{NOW - timedelta(days=days)}')")
    await front.crawl(store, ago(days), items)


def cards(page: Page) -> list[dict[str, str | None]]:
    """What each card says: its badge, name, price, size and struck price."""
    found = []
    for card in re.findall(r'<article class="card">(.*?)</article>', page.html, re.DOTALL):

        def one(pattern: str, card: str = card) -> str | None:
            match = re.search(pattern, card, re.DOTALL)
            return " ".join(re.sub("<[^>]+>", "", match[1]).split()) if match else None

        found.append(
            {
                "badge": one(r'class="badge">(.*?)</span>'),
                "name": one(r'class="name"><a[^>]*>(.*?)</a>'),
                "price": one(r"<strong>(.*?)</strong>"),
                "size": one(r'class="for">(.*?)</span>'),
                "struck": one(r"<s>.*?</span>(.*?)</s>"),
            }
        )
    return found


@pytest.fixture
async def store(front: Front) -> int:
    number = await front.shop.store(timezone="America/Phoenix", **PHOENIX)
    await front.shop.execute("UPDATE dispensaries SET crawl_interval_hours = 24 * 30")
    return number


async def deal(front: Front, query: str = "?sort=newest") -> dict[str, str | None]:
    (only,) = cards(await front.page(f"/deals{query}"))
    return only


class TestSavings:
    async def test_a_price_that_was_asked_is_saved(self, front: Front, store: int) -> None:
        await crawl(front, store, 5, haze(40))
        await crawl(front, store, 1, haze(40, [30]))
        assert await deal(front, "") == {
            "badge": "25% off", "name": "Purple Haze", "price": "$30", "size": "3.5 g", "struck": "$40",
        }  # fmt: skip

    async def test_a_price_that_was_never_asked_is_none(self, front: Front, store: int) -> None:
        await crawl(front, store, 5, haze(40, [30]))
        await crawl(front, store, 1, haze(40, [30]))
        assert cards(await front.page("/deals?sort=off")) == []
        assert "No special is below a price that the store charged" in (await front.page("/deals?sort=off")).text
        # Without savings the plain page shows what there is.
        assert await deal(front, "") == await deal(front)
        found = await deal(front)
        assert (found["badge"], found["price"], found["struck"]) == ("Special", "$30", None)

    async def test_a_price_that_was_raised_for_the_special_is_none(self, front: Front, store: int) -> None:
        await crawl(front, store, 5, haze(40))
        await crawl(front, store, 1, haze(60, [40]))
        assert (await deal(front))["badge"] == "Special"
        # Once it is what the store asks, it counts.
        await crawl(front, store, 0.5, haze(60))
        await crawl(front, store, 0.2, haze(60, [45]))
        assert (await deal(front))["badge"] == "25% off"

    async def test_a_price_of_long_ago_is_none(self, front: Front, store: int) -> None:
        await crawl(front, store, 120, haze(40))
        await crawl(front, store, 95, haze(30))
        await crawl(front, store, 1, haze(40, [28]))
        assert (await deal(front))["badge"] == "Special"

    async def test_a_price_ages_while_the_special_lasts(self, front: Front, store: int) -> None:
        await crawl(front, store, 5, haze(40))
        await crawl(front, store, 1, haze(40, [30]))
        await front.shop.execute("UPDATE storefront_deals SET offered_until = now() - interval '89 days'")
        assert (await deal(front))["badge"] == "25% off"
        await front.shop.execute("UPDATE storefront_deals SET offered_until = now() - interval '91 days'")
        assert (await deal(front))["badge"] == "Special"

    async def test_a_price_while_it_was_out_of_stock_was_not_asked(self, front: Front, store: int) -> None:
        await crawl(front, store, 5, haze(options=[("1/8oz", 40, 0)]))
        await crawl(front, store, 1, haze(40, [30]))
        assert (await deal(front))["badge"] == "Special"

    async def test_a_cent_is_no_saving(self, front: Front, store: int) -> None:
        await crawl(front, store, 5, haze(40))
        await crawl(front, store, 1, haze(40, [0.01]))
        assert (await deal(front))["badge"] == "Special"

    async def test_the_lowest_of_ninety_days_was_observed_that_long(self, front: Front, store: int) -> None:
        await crawl(front, store, 89, haze(40))
        await crawl(front, store, 1, haze(40, [30]))
        assert "Lowest in 90 days" not in (await front.page("/deals")).text
        await front.shop.execute("UPDATE storefront_deals SET observed_from = now() - interval '91 days'")
        assert "Lowest in 90 days" in (await front.page("/deals")).text

    async def test_a_lower_price_within_ninety_days_takes_the_title(self, front: Front, store: int) -> None:
        for days, price in ((100, 40), (60, 25), (30, 40)):
            await crawl(front, store, days, haze(price))
        await crawl(front, store, 1, haze(40, [30]))
        page = await front.page("/deals")
        assert cards(page)[0]["badge"] == "25% off"
        assert "Lowest in 90 days" not in page.text
        await crawl(front, store, 0.5, haze(40, [24]))
        assert "Lowest in 90 days" in (await front.page("/deals")).text


class TestOffers:
    async def test_it_is_the_size_that_is_on_special(self, front: Front, store: int) -> None:
        options = [("1g", 12, 5), ("1/8oz", 40, 5), ("1/4oz", 75, 0)]
        await crawl(front, store, 5, haze(options=options))
        await crawl(front, store, 1, haze(options=options, special=[12, 30, 50]))
        assert await deal(front) == {
            "badge": "25% off", "name": "Purple Haze", "price": "$30", "size": "3.5 g", "struck": "$40",
        }  # fmt: skip
        link = (await front.page("/deals")).link("Purple Haze")
        page = await front.page(link)
        assert "$30 for 3.5 g" in page.text

    async def test_one_product_is_listed_once_at_its_cheapest_store(self, front: Front, store: int) -> None:
        other = await front.shop.store("dear", **TUCSON)
        for number, price in ((store, 30), (other, 32)):
            await crawl(front, number, 5, haze(40, n=f"of-{number}"))
            await crawl(front, number, 1, haze(40, [price], n=f"of-{number}"))
        page = await front.page("/deals")
        assert [card["price"] for card in cards(page)] == ["$30"]
        assert "and 1 other store" in page.text
        near = await front.page("/deals?near=Tucson,+AZ")
        assert [card["price"] for card in cards(near)] == ["$32"]
        assert "Deals near Tucson" in near.text
        assert "other store" not in near.text

    async def test_what_is_off_the_menu_or_out_of_stock_is_no_deal(self, front: Front, store: int) -> None:
        await crawl(front, store, 5, haze(40), haze(40, n="2", name="Sour Diesel"))
        await crawl(front, store, 4, haze(40, [30]), haze(40, [30], n="2", name="Sour Diesel"))
        assert len(cards(await front.page("/deals"))) == 2
        await crawl(
            front, store, 3, haze(options=[("1/8oz", 40, 0)], special=[30]), haze(40, n="2", name="Sour Diesel")
        )
        assert cards(await front.page("/deals?sort=newest")) == []
        assert await front.rows("SELECT count(*) FROM storefront_deals") == [(0,)]

    async def test_a_store_that_is_not_shown_has_none(self, front: Front, store: int) -> None:
        await crawl(front, store, 5, haze(40, [30], specials=[sale("Everything", 25)]))
        await front.shop.execute("UPDATE dispensaries SET crawl_enabled = false")
        await front.index()
        counts = "SELECT (SELECT count(*) FROM storefront_deals), (SELECT count(*) FROM storefront_promotions)"
        assert await front.rows(counts) == [(0, 0)]


async def test_other_pages_call_no_saving_what_is_none(front: Front, store: int) -> None:
    options = [("1g", 12, 5), ("1/8oz", 40, 5)]
    await crawl(front, store, 5, haze(options=options, special=[12, 30]), haze(20, n="2", name="Sour Diesel"))
    await crawl(front, store, 1, haze(options=options, special=[12, 30]), haze(20, [15], n="2", name="Sour Diesel"))
    page = await front.page("/search?q=diesel")
    assert [(card["badge"], card["struck"]) for card in cards(page)] == [("25% off", "$20")]
    # The card shows the gram, which is not on special.
    page = await front.page("/search?q=haze")
    assert [(card["badge"], card["size"], card["struck"]) for card in cards(page)] == [(None, "1 g", None)]
    page = await front.page(page.link("Purple Haze") + "?size=3.5+g")
    assert "$30 for 3.5 g Special" in page.text
    assert "$40" not in page.text.partition("Price of 3.5 g")[0]


class TestLists:
    @pytest.fixture
    async def some(self, front: Front, store: int) -> Front:
        """Three deals: the second ends first, the third is newest and has no end."""
        plain = [haze(40), haze(40, n="2", name="Sour Diesel"), haze(40, n="3", name="Gummies", type="Edible")]
        await crawl(front, store, 9, *plain)
        first = [
            haze(40, [20], specials=[sale("Half off", 50, days=9)]),
            haze(40, [30], n="2", name="Sour Diesel", specials=[sale("Quarter off", 25, days=2), sale("Other", 10)]),
        ]
        await crawl(front, store, 5, *first, plain[2])
        await crawl(front, store, 1, *first, haze(40, [36], n="3", name="Gummies", type="Edible"))
        return front

    async def test_orders(self, some: Front) -> None:
        for query, names in (
            ("", ["Purple Haze", "Sour Diesel", "Gummies"]),
            ("?sort=ending", ["Sour Diesel", "Purple Haze"]),
            ("?sort=newest", ["Gummies", "Purple Haze", "Sour Diesel"]),
            ("?category=edible", ["Gummies"]),
            ("?category=tincture", []),
            ("?near=10001", []),
            ("?sort=x&page=x", ["Purple Haze", "Sour Diesel", "Gummies"]),
            ("?page=2", []),
        ):
            assert [card["name"] for card in cards(await some.page(f"/deals{query}"))] == names, query

    async def test_the_special_that_makes_the_price_is_named_with_its_end(self, some: Front) -> None:
        page = await some.page("/deals")
        assert "Quarter off" in page.text
        assert "Other" not in page.text
        ends = NOW + timedelta(days=2) - timedelta(hours=7)
        assert f"Ends {ends:%b} {ends.day}, {ends.year}" in page.text

    async def test_what_has_ended_is_not_listed(self, some: Front) -> None:
        await some.shop.execute("UPDATE storefront_deals SET ends = 1000 WHERE ends IS NOT NULL")
        assert [card["name"] for card in cards(await some.page("/deals"))] == ["Gummies"]

    async def test_an_end_in_decades_is_none(self, front: Front, store: int) -> None:
        await crawl(front, store, 1, haze(40, [30], specials=[sale("Forever", 25, days=40_000)]))
        assert [card["name"] for card in cards(await front.page("/deals"))] == ["Purple Haze"]
        assert "Forever" in (await front.page("/deals")).text
        assert cards(await front.page("/deals?sort=ending")) == []

    async def test_a_new_end_is_taken_over_without_a_new_beginning(self, some: Front) -> None:
        before = await some.rows(
            "SELECT product_id, began, offered_until FROM storefront_deals WHERE special = 'Half off'"
        )
        specials = [sale("Half off", 50, days=1)]
        await crawl(some, 1, 0.5, haze(40, [20], specials=specials))
        ((number, began, until, ends),) = await some.rows(
            "SELECT product_id, began, offered_until, to_timestamp(ends) FROM storefront_deals"
        )
        assert [(number, began, until)] == before
        assert abs(ends - (NOW + timedelta(days=1))) < timedelta(seconds=2)

    async def test_the_bar_and_the_front_page_lead_to_it_with_the_place(self, some: Front) -> None:
        page = await some.page("/?near=85004")
        assert "Best deals nearby" in page.text
        assert page.link("Deals") == "/deals?near=85004"
        assert page.link("All deals") == "/deals?near=85004"
        chips = await some.page("/deals?near=85004&sort=newest")
        assert "near=85004" in chips.link("Edibles")
        assert "sort=newest" in chips.link("Edibles")

    async def test_only_the_plain_page_is_for_search_engines(self, some: Front) -> None:
        assert not (await some.page("/deals")).all("meta", name="robots")
        assert (await some.page("/deals?sort=newest")).all("meta", name="robots", content="noindex")


class TestPromotions:
    async def test_specials_for_much_of_a_menu_come_first(self, front: Front, store: int) -> None:
        wide, few = [sale("20% off everything", 20, days=3)], [sale("Half off haze", 50)]
        menu = [haze(40, [32], n=str(n), name=f"Strain {n}", specials=wide) for n in range(6)]
        menu.append(haze(40, [20], n="9", specials=few))
        await crawl(front, store, 1, *menu)
        page = await front.page("/deals?sort=newest")
        part = page.text[page.text.index("Promotions at stores") :].partition("Strain 0")[0]
        assert "20% off everything" in part
        assert "6 products of 7" in part
        assert "Half off haze" not in part

    async def test_bundles_say_what_they_ask_and_invent_no_price(self, front: Front, store: int) -> None:
        bundle = {
            "specialName": "Five for less",
            "specialId": "b",
            "bogoConditions": [{"totalQuantity": {"quantity": 5}}],
            "bogoRewards": [{"discountType": "targetPrice", "discountAmount": 75}],
            "discountBundle": {"discountType": "targetPrice", "value": "75"},
        }
        data = {"saleSpecials": None, "bogoSpecials": [bundle]}
        await crawl(front, store, 1, item("1", "Purple Haze", specialData=data), item("2", "Other"))
        page = await front.page("/deals")
        assert "Five for less 5 for $75" in page.text
        assert cards(await front.page("/deals?sort=newest")) == []
        await front.shop.execute("UPDATE dispensaries SET state = 'ON'")
        assert "Five for less 5 for CA$75" in (await front.page("/deals")).text

    async def test_a_chain_has_it_once(self, front: Front, store: int) -> None:
        other = await front.shop.store("branch", **TUCSON)
        for number in (store, other):
            await crawl(
                front,
                number,
                1,
                *(
                    haze(40, [32], n=f"{number}-{n}", name=f"Strain {n}", specials=[sale("Storewide", 20)])
                    for n in range(6)
                ),
            )
        page = await front.page("/deals")
        assert page.html.count("<strong>Storewide</strong>") == 1
        assert "and 1 other store" in page.text
