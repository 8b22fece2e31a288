"""An offer is one size of a product at one store: what filters, orders, counts and cards say is of one such offer."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from menuwatch.matching.titles import title
from menuwatch.storefront import indexer
from menuwatch.storefront.items import category_of
from menuwatch.storefront.options import best_of_sizes, read_options
from tests.api.shop import item
from tests.site.shop_pages import Front
from tests.site.test_deals import cards
from tests.site.test_product_sizes import tables

PHOENIX = {"latitude": 33.4484, "longitude": -112.0740, "city": "Phoenix", "state": "AZ", "zipcode": "85004"}


@pytest.fixture
async def sizes(front: Front) -> Front:
    """Two stores with flower in several sizes."""
    alpha = [
        item("1", "Blue Dream", options=[("1g", 9, 5), ("1/8oz", 30, 5), ("1oz", 120, 5)]),
        item("2", "Gelato 41", options=[("1g", 5, 5), ("28.3g", 100, 5), ("14g", 60, 5), ("7g", 33, 5)]),
    ]
    beta = [item("3", "Blue Dream", options=[("1/8oz", 28, 5), ("28.35g", 130, 0)], special=[21])]
    for slug, menu in (("alpha", alpha), ("beta", beta)):
        await front.crawl(await front.shop.store(slug, **PHOENIX), 0, menu)
    return front


@pytest.mark.parametrize("near", ["", "&near=85004"])
async def test_d1_a_size_filter_filters_prices_orders_and_counts_that_size(sizes: Front, near: str) -> None:
    page = await sizes.page(f"/search?category=flower&size=28+g&max=9.99{near}")
    assert page.names == []
    page = await sizes.page(f"/search?size=28+g&sort=price{near}")
    assert [(card["name"], card["price"], card["size"]) for card in cards(page)] == [
        ("Gelato 41", "$100", "28 g"),
        ("Blue Dream", "$120", "28 g"),
    ]
    # $100 and $120 for 28 g are 3.57 and 4.29 a gram.
    assert "$3.57/g" in page.text
    assert page.facets["Price"] == {"$100 and more": "2"}
    assert (await sizes.page(f"/search?max=9.99{near}")).facets["Size"] == {"1 g": "2"}
    assert (await sizes.page(f"/search?size=28+g&gram=4{near}")).names == ["Gelato 41"]
    # Alpha's 28 g are in stock, and only Beta has 3.5 g on special.
    assert (await sizes.page(f"/search?size=28+g&special=1{near}")).names == []


async def test_d2_and_d3_a_headline_is_one_offer_that_can_be_bought(front: Front) -> None:
    store = await front.shop.store()
    menu = [item("1", options=[("1/8oz", 56, 0), ("1g", 20, 5), ("1oz", 140, 5)], special=[50, 20, 103])]
    await front.crawl(store, 0, menu)
    (card,) = cards(await front.page("/search"))
    assert (card["price"], card["size"]) == ("$20", "1 g")
    page = await front.page("/search")
    assert "$20.00/g" in page.text
    assert "$3.68/g" not in page.text
    # Sorted by price per gram, it is the offer with that: 103 / 28.
    (card,) = cards(page := await front.page("/search?sort=per_gram"))
    assert (card["price"], card["size"]) == ("$103", "28 g")
    assert "$3.68/g" in page.text


async def test_d4_totals_follow_within_a_minute(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    for slug in "ab":
        await front.crawl(await front.shop.store(slug), 0, [item(f"of-{slug}", f"Thing {slug}zix")])
    assert "2 products at 2 stores" in (await front.page("/")).text
    monkeypatch.setattr(indexer, "_FEW_ITEMS", 0)
    await front.crawl(await front.shop.store("c"), 0, [item("of-c", "Thing czix")])
    assert "2 products at 2 stores" in (await front.page("/")).text
    await front.shop.execute("UPDATE storefront_totals SET made_at = now() - interval '51 seconds'")
    await front.shop.execute("UPDATE storefront_stores SET indexed_at = now() - interval '9 seconds'")
    await front.index()
    assert "3 products at 3 stores" in (await front.page("/")).text


async def test_d5_cards_of_specials_show_the_special_offer(front: Front) -> None:
    for slug, price, special in (("cheap", 16, []), ("sale", 40, [30])):
        store = await front.shop.store(slug)
        await front.crawl(store, 0, [item(f"of-{slug}", options=[("1/8oz", price, 5)], special=special)])
    (card,) = cards(await front.page("/search?special=1"))
    assert (card["price"], card["badge"]) == ("$30", "Special")
    (card,) = cards(await front.page("/search"))
    assert card["price"] == "$16"


async def test_d8_sizes_are_in_the_order_of_their_weight(sizes: Front) -> None:
    assert list((await sizes.page("/search")).facets["Size"]) == ["1 g", "3.5 g", "7 g", "14 g", "28 g"]
    assert await sizes.rows("SELECT sizes FROM storefront_items WHERE name = 'Gelato 41'") == [
        (["1 g", "7 g", "14 g", "28 g"],)
    ]
    page = await sizes.page(f"/p/{await sizes.item('Gelato 41')}-gelato-41")
    assert list(tables(page)) == ["1 g", "7 g", "14 g", "28 g"]


async def test_d10_different_sizes_of_a_product_are_apart(front: Front) -> None:
    for slug, name, price in (("a", "Midnight Moon .5g", 24), ("b", "Midnight Moon 1g", 65)):
        store = await front.shop.store(slug)
        menu = [item(f"of-{slug}", name, options=[("N/A", price, 5)], type="Vaporizers")]
        await front.crawl(store, 0, menu)
    rows = await front.rows("SELECT size, price, stores FROM storefront_item_sizes ORDER BY price")
    assert rows == [("0.5 g", 2400, 1), ("1 g", 6500, 1)]


async def test_d11_no_price_promotions_and_accessories_come_last(front: Front) -> None:
    menu = [
        item("1", "Grinder Zix", options=[("N/A", 2, 5)], type="Accessories"),
        item("2", "Promo Zix", options=[("1g", 0.01, 5)]),
        item("3", "Silent Zix", options=[]),
        item("4", "Dear Zix", options=[("1g", 50, 5)]),
        item("5", "Cookie Zix", options=[("100mg", 20, 5)], thc=91.0, type="Edible"),
    ]
    await front.crawl(await front.shop.store(), 0, menu)
    assert (await front.page("/search?sort=price")).names[:2] == ["Cookie Zix", "Dear Zix"]
    assert set((await front.page("/search")).names[:2]) == {"Cookie Zix", "Dear Zix"}
    assert set((await front.page("/search?q=zix")).names[:2]) == {"Cookie Zix", "Dear Zix"}
    page = await front.page("/search?sort=thc")
    assert page.names[-1] != "Dear Zix"
    assert "91" not in page.text
    assert (await front.page("/search?thc_min=90")).names == []


@pytest.mark.parametrize(
    ("kind", "listed", "category"),
    [
        ("flower", ["preroll", "preroll", "flower"], "preroll"),
        ("vaporizer", ["concentrate", "vaporizer"], "vaporizer"),
        ("vaporizer", ["concentrate"], "vaporizer"),
        ("edible", ["tincture", None], "tincture"),
        ("accessory", ["apparel"], "apparel"),
        ("accessory", [], "accessory"),
        (None, ["flower"], "other"),
    ],
)
def test_a_product_has_a_category_of_its_listings(kind: str | None, listed: list[str | None], category: str) -> None:
    assert category_of(kind, listed) == category


def test_d16_one_target_price_for_every_size_is_that_of_the_smallest() -> None:
    prices = {"1/8oz": 40, "1/4oz": 75, "1oz": 170}
    variants = [
        {"option": option, "weight_g": weight, "price_rec": Decimal(prices[option]), "special_rec": Decimal(17)}
        for option, weight in (("1/8oz", 3.5), ("1/4oz", 7), ("1oz", 28))
    ]
    options = read_options(variants, name="Blue Dream", category="flower", in_stock=True)
    assert [(one.size, one.price, one.regular) for one in options] == [
        ("3.5 g", 1700, 4000),
        ("7 g", 7500, None),
        ("28 g", 17000, None),
    ]


@pytest.mark.parametrize(
    ("name", "category", "option", "expected"),
    [
        ("KPUFF 1G GELATO", "vaporizer", "N/A", ("1 g", True, 300_000, None)),
        ("Gelato 1/8oz", "flower", "each", ("3.5 g", True, 85_714, None)),
        ("Gummies 10pk 100mg", "edible", "each", ("100 mg", True, None, 30_000)),
        ("Gummies 10pk 5mg", "edible", "each", ("50 mg", True, None, 60_000)),
        ("Gummies 10pk 25mg", "edible", "each", (None, False, None, None)),
        ("Drink 5mg", "edible", "each", ("5 mg", True, None, None)),
        ("Sour Gummies 100mg", "edible", "each", ("100 mg", True, None, 30_000)),
        ("Grinder 4g", "accessory", "each", (None, False, None, None)),
        ("Gelato 1g", "flower", "3.5g", ("3.5 g", False, 85_714, None)),
    ],
)
def test_sizes_are_read_from_names_where_menus_give_none(
    name: str, category: str, option: str, expected: tuple[Any, ...]
) -> None:
    (one,) = read_options([{"option": option, "price_rec": 30}], name=name, category=category, in_stock=True)
    assert (one.size, one.from_name, one.per_gram, one.per_dose) == expected


def test_an_implausible_price_per_gram_is_left_out() -> None:
    variants = [{"option": "N/A", "price_rec": 30}]
    # A hundred grams for $30 are $0.30 a gram, where $8 are usual.
    (one,) = read_options(variants, name="Haze 100g", category="flower", in_stock=True, usual_per_gram=80_000)
    assert (one.size, one.per_gram) == ("100 g", None)


def test_of_a_size_the_option_that_can_be_bought_counts() -> None:
    variants = [
        {"option": "1g", "price_rec": 8, "stock_status": "oos"},
        {"option": "1 g", "price_rec": 0.01, "stock_status": "in_stock"},
        {"option": "1gr", "price_rec": 12, "stock_status": "in_stock"},
    ]
    best = best_of_sizes(read_options(variants, name="Haze", category="flower", in_stock=True))
    assert {size: one.price for size, one in best.items()} == {"1 g": 1200}


async def test_a_size_from_the_name_is_marked(front: Front) -> None:
    await front.crawl(await front.shop.store(), 0, [item("1", "Kpuff Gelato 1g", options=[("N/A", 30, 5)])])
    page = await front.page("/search")
    assert page.all("abbr", title="read from the name")
    assert "* Size read from the name, as the menu gives none." in page.text
    page = await front.page(page.link("Kpuff Gelato").removeprefix("http://menus.example"))
    assert "$30 for 1 g (read from the name)" in page.text


@pytest.mark.parametrize(
    ("name", "brand", "category", "expected"),
    [
        ("Wyld | Raspberry | Sativa Gummies | 100mg", "Wyld", "edible", "Raspberry"),
        ("North Fork - Cherry Pop Live Resin Disposable [1g]", "North Fork Farms", "vaporizer", "Cherry Pop Live Resin Disposable"),
        ("Blue Dream (REC)", None, "flower", "Blue Dream"),
        ("Blue Dream Flower 3.5g", "Acme", "flower", "Blue Dream"),
        ("Papaya Punch by North Fork", "North Fork", "flower", "Papaya Punch"),
        ("Blue Fern by Kiln - Blue Fern by Kiln", "Kiln", "flower", "Blue Fern"),
        ("Wyld", "Wyld", "edible", "Wyld"),
        ("3.5g Flower", "Acme", "flower", "3.5g Flower"),
        ("Peach 2:1 CBD Gummies 100:50mg", "Wyld", "edible", "Peach 2:1 CBD Gummies"),
        ("1:1 Pomegranate Gummies", "Wyld", "edible", "1:1 Pomegranate Gummies"),
        ("Blue Fern - Smalls", None, "flower", "Blue Fern – Smalls"),
        ("|", None, "flower", "|"),
    ],
)  # fmt: skip
def test_titles_leave_out_what_stands_beside_them(name: str, brand: str | None, category: str, expected: str) -> None:
    assert title(name, brand, category) == expected
