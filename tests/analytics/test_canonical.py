"""Distribution, price dispersion and cheapest quarter of random menus, against what the menus themselves say."""

from __future__ import annotations

import random
import statistics
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest

from menuwatch.analytics.refresh import refresh
from menuwatch.matching.engine import match_all
from tests.analytics.reference_stats import near, quantile
from tests.api.shop import Shop, at, item
from tests.matching_rows import add_brand, add_location, add_product, listing, match

SIZES = {"1g": "1 g", "1/8oz": "3.5 g", "3.5g": "3.5 g", "N/A": None}
STATES = ["AZ"] * 6 + ["NM"] * 5
KINDS = {"Flower": "flower", "Concentrate": "concentrate"}


@dataclass(frozen=True, kw_only=True)
class Good:
    """A listing: `product` is None for one that is matched to nothing. `crawled` orders the menus."""

    store: int
    crawled: int
    place: str
    state: str
    product: int | None
    kind: str
    options: tuple[tuple[str, int, int], ...]

    @property
    def in_stock(self) -> bool:
        return any(quantity > 0 for _, _, quantity in self.options)


@dataclass(kw_only=True)
class Market:
    goods: list[Good] = field(default_factory=list)
    products: dict[int, tuple[str, int | None, str]] = field(default_factory=dict)
    """Name, brand and category of each canonical product."""
    brands: dict[int, str] = field(default_factory=dict)
    locations: dict[str, int] = field(default_factory=dict)
    stores: dict[str, int] = field(default_factory=dict)


@pytest.fixture
async def market(shop: Shop) -> Market:
    """Eleven menus of ten places: `store-0` and `store-1` are one shop, whose second menu is fresher."""
    rng, made = random.Random(19), Market()
    async with shop.pool.connection() as conn:
        for name in ("Acme", "Zen"):
            made.brands[await add_brand(conn, name)] = name
        merged = await add_brand(conn, "Acme Inc", merged_into=next(iter(made.brands)))
        owners = [*made.brands, None, merged]
        for n in range(12):
            brand, category = owners[n % 4], rng.choice([*KINDS.values()])
            number = await add_product(conn, f"Thing {n}", brand, category=category)
            live = next(iter(made.brands)) if brand == merged else brand
            made.products[number] = (f"Thing {n}", live, category)
    listings: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for n, state in enumerate(STATES):
        store = await shop.store(f"store-{n}", state=state)
        place = "store-0" if n == 1 else f"store-{n}"
        made.stores.setdefault(place, store)
        menu = []
        for product, (_, _, category) in made.products.items():
            # Twice now and then: a store may list one product under two names.
            for twin in range(rng.choice((0, 1, 1, 1, 2))):
                sizes = rng.sample(sorted(SIZES), rng.randint(1, 3))
                options = tuple((size, rng.randint(5, 12), rng.choice((0, 3, 7))) for size in sizes)
                kind = next(word for word, canon in KINDS.items() if canon == category)
                made.goods.append(
                    Good(
                        store=store,
                        crawled=n,
                        place=place,
                        state=state,
                        product=product,
                        kind=category,
                        options=options,
                    )
                )
                menu.append(item(f"{product}-{twin}", f"Thing {product} {twin}", options=options, type=kind))
                listings[product].append((store, f"{product}-{twin}"))
        if n % 3:
            made.goods.append(
                Good(
                    store=store,
                    crawled=n,
                    place=place,
                    state=state,
                    product=None,
                    kind="edible",
                    options=(("1g", 9, 1),),
                )
            )
            menu.append(item("other", options=[("1g", 9, 1)], type="Edible"))
        await shop.crawl(store, 1 + n / 10, menu)
    async with shop.pool.connection() as conn:
        for product, places in listings.items():
            await match(conn, product, *[await listing(conn, *one) for one in places])
        stores = list(dict.fromkeys(good.store for good in made.goods))
        made.locations["store-0"] = await add_location(conn, "Zero", *stores[:2], state="AZ")
        old = await add_location(
            conn, "Five (old)", stores[5], merged_into=await add_location(conn, "Five", state="AZ")
        )
        made.locations["store-5"] = old - 1
    await refresh(shop.pool, window=timedelta(days=2), now=at(3))
    return made


Scope = tuple[bool, str | None]


def _scopes(state: str) -> tuple[Scope, Scope]:
    return (True, None), (False, state)


def _scope(row: dict[str, Any]) -> Scope:
    return row["all_states"], row["state"]


def _fresher(goods: list[Good]) -> list[Good]:
    """Those of the newest menu among them."""
    newest = max(good.crawled for good in goods)
    return [good for good in goods if good.crawled == newest]


def _prices(market: Market) -> dict[tuple[int, str], dict[str, tuple[str, int]]]:
    """By product and size: state and price of each place."""
    offers: dict[tuple[int, str, str], list[tuple[int, str, int]]] = defaultdict(list)
    for good in market.goods:
        for option, price, quantity in good.options:
            size = SIZES[option]
            if good.product is not None and size is not None and quantity > 0:
                offers[good.product, size, good.place].append((good.crawled, good.state, price))
    found: dict[tuple[int, str], dict[str, tuple[str, int]]] = defaultdict(dict)
    for (product, size, place), rows in offers.items():
        newest = max(crawled for crawled, _, _ in rows)
        best = min(price for crawled, _, price in rows if crawled == newest)
        found[product, size][place] = (rows[0][1], best)
    return found


async def test_distribution(shop: Shop, market: Market) -> None:
    menus: dict[Scope, set[str]] = defaultdict(set)
    sellers: dict[tuple[Scope, str], set[str]] = defaultdict(set)
    listed: dict[tuple[int, str], list[Good]] = defaultdict(list)
    for good in market.goods:
        for scope in _scopes(good.state):
            menus[scope].add(good.place)
            sellers[scope, good.kind].add(good.place)
        if good.product is not None:
            listed[good.product, good.place].append(good)
    want: dict[tuple[Scope, int], list[int]] = defaultdict(lambda: [0, 0])
    brands: dict[tuple[Scope, int, str | None], dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for (product, place), goods in listed.items():
        there = any(good.in_stock for good in _fresher(goods))
        for scope in _scopes(goods[0].state):
            want[scope, product][0] += 1
            want[scope, product][1] += there
            brand, category = market.products[product][1:]
            if brand is not None:
                for which in (None, category):
                    brands[scope, brand, which][place].append(there)
    rows = await shop.walk("/api/analytics/distribution", limit=7)
    assert {(_scope(row), row["canonical_product_id"]): [row["locations"], row["in_stock"]] for row in rows} == want
    for row in rows:
        name, brand, category = market.products[row["canonical_product_id"]]
        assert (row["name"], row["brand_id"], row["category"]) == (name, brand, category)
        assert row["brand"] == market.brands.get(brand or 0)
        assert (row["of_locations"], row["of_category"]) == (
            len(menus[_scope(row)]),
            len(sellers[_scope(row), category]),
        )
        assert row["share"] == near(Fraction(row["in_stock"], row["of_locations"]))
        assert row["category_share"] == near(Fraction(row["in_stock"], row["of_category"]))
    assert len(menus[True, None]) == 10, "the shop on two menus is one place"
    whole = await shop.walk("/api/analytics/distribution/brands")
    assert all(row["all_categories"] for row in whole)
    for name in market.brands.values():
        whole += [row for row in await shop.walk("/api/analytics/distribution/brands", brand=name) if row["category"]]
    found = {(_scope(row), row["brand_id"], row["category"]): (row["locations"], row["in_stock"]) for row in whole}
    assert found == {key: (len(at), sum(map(any, at.values()))) for key, at in brands.items()}


async def test_price_dispersion_and_gaps(shop: Shop, market: Market) -> None:
    want: dict[tuple[Scope, int, str], list[int]] = defaultdict(list)
    for (product, size), places in _prices(market).items():
        for state, price in places.values():
            for scope in _scopes(state):
                want[scope, product, size].append(price)
    want = {key: prices for key, prices in want.items() if len(prices) >= 3}  # type: ignore[assignment]
    rows = await shop.walk("/api/analytics/price-dispersion", limit=9)
    assert {(_scope(row), row["canonical_product_id"], row["size"]) for row in rows} == want.keys()
    assert len(rows) == len(want) > 20
    for row in rows:
        prices = want[_scope(row), row["canonical_product_id"], row["size"]]
        exact = [Fraction(price) for price in prices]
        assert (row["locations"], row["min"], row["max"]) == (len(prices), min(prices), max(prices))
        for name, share in (("p25", Fraction(1, 4)), ("median", Fraction(1, 2)), ("p75", Fraction(3, 4))):
            assert row[name] == near(quantile(exact, share))
        assert row["cv"] == pytest.approx(statistics.stdev(prices) / statistics.mean(prices), abs=0.000051)
        assert row["gap_share"] == near(Fraction(max(prices) - min(prices), min(prices)))
    gaps = await shop.walk("/api/analytics/widest-gaps", limit=5, state="all")
    assert [row["gap_share"] for row in gaps] == sorted(
        (row["gap_share"] for row in rows if row["all_states"]), reverse=True
    )


@pytest.mark.parametrize("by", ["all", "category", "brand"])
async def test_cheapest_quarter(shop: Shop, market: Market, by: str) -> None:
    tally: dict[tuple[str, Any], list[int]] = defaultdict(lambda: [0, 0])
    for (product, _), places in _prices(market).items():
        _, brand, category = market.products[product]
        group = {"all": None, "category": category, "brand": brand}[by]
        if by == "brand" and brand is None:
            continue
        for state in ("AZ", "NM"):
            there = {place: Fraction(price) for place, (where, price) in places.items() if where == state}
            if len(there) < 3:
                continue
            low, middle = (quantile([*there.values()], share) for share in (Fraction(1, 4), Fraction(1, 2)))
            for place, price in there.items():
                tally[place, group][0] += 1
                tally[place, group][1] += price <= low and price < middle
    want = {key: counts for key, counts in tally.items() if counts[0] >= 5}
    rows = await shop.walk("/api/analytics/cheapest-quarter", limit=3, by=by)
    stores = {good.store: good.place for good in market.goods}
    found = {}
    for row in rows:
        place = stores[row["dispensary_id"]]
        assert row["location_id"] == market.locations.get(place)
        found[place, None if by == "all" else row["category"] if by == "category" else row["brand_id"]] = row
    assert {key: [row["compared"], row["cheapest"]] for key, row in found.items()} == want
    assert len(want) >= 4
    assert any(row["cheapest"] for row in rows)
    shares = [Fraction(row["cheapest"], row["compared"]) for row in rows]
    assert shares == sorted(shares, reverse=True)
    of_zero = await shop.walk("/api/analytics/cheapest-quarter", by=by, store=market.stores["store-0"])
    assert {row["store"] for row in of_zero} <= {"Zero"}, "either menu of a location names it"


async def test_filters_follow_merged_numbers_and_know_names(shop: Shop, market: Market) -> None:
    acme = next(iter(market.brands))
    for path in ("distribution", "distribution/brands", "price-dispersion", "widest-gaps"):
        rows = await shop.walk(f"/api/analytics/{path}", brand="ACME")
        assert rows
        assert {row["brand_id"] for row in rows} == {acme}
        assert await shop.walk(f"/api/analytics/{path}", brand="acme inc") == rows
        assert await shop.walk(f"/api/analytics/{path}", brand_id=acme) == rows
        assert await shop.walk(f"/api/analytics/{path}", brand="Nobody") == []
    one = next(iter(market.products))
    async with shop.pool.connection() as conn:
        gone = await add_product(conn, "Gone", merged_into=one)
    rows = await shop.walk("/api/analytics/price-dispersion", canonical_product=gone, state="AZ")
    assert {(row["canonical_product_id"], row["state"]) for row in rows} == {(one, "AZ")}


async def test_shares_of_brands_are_by_canonical_brand(shop: Shop, market: Market) -> None:
    """The menus write one brand for all products; those that are matched count for the brand they are matched to."""
    rows = await shop.walk("/api/analytics/brands", state="all")
    want: dict[str | None, int] = defaultdict(int)
    for good in market.goods:
        brand = None if good.product is None else market.products[good.product][1]
        # Menus write "Acme" on everything, which is what an unmatched or brandless product falls back on.
        want["Acme" if brand is None else market.brands[brand]] += 1
    assert {row["brand"]: row["products"] for row in rows} == want
    assert {row["brand_id"] for row in rows} == market.brands.keys()


async def test_one_product_with_what_each_store_asks(shop: Shop, market: Market) -> None:
    everything = _prices(market)
    for product, (name, brand, _) in market.products.items():
        for state in (None, "AZ"):
            params = {} if state is None else {"state": state}
            one = await shop.ask(f"/api/canonical-products/{product}", params=params)
            assert (one["id"], one["requested_id"], one["name"], one["brand_id"]) == (product, product, name, brand)
            want = {
                size: [price for where, price in places.values() if state in (None, where)]
                for (number, size), places in everything.items()
                if number == product
            }
            assert {row["size"]: (row["locations"], row["min"], row["max"]) for row in one["sizes"]} == {
                size: (len(prices), min(prices), max(prices)) for size, prices in want.items() if prices
            }
            for row in one["sizes"]:
                exact = [Fraction(price) for price in want[row["size"]]]
                if len(exact) < 3:
                    assert (row["p25"], row["median"], row["cv"]) == (None, None, None)
                    continue
                low, middle = quantile(exact, Fraction(1, 4)), quantile(exact, Fraction(1, 2))
                assert (row["p25"], row["median"]) == (near(low), near(middle))
                cheap = [o for o in one["offers"] if o["size"] == row["size"] and o["cheapest_quarter"]]
                assert len(cheap) == sum(price <= low and price < middle for price in exact)
            there = [good for good in market.goods if good.product == product and state in (None, good.state)]
            assert len(one["offers"]) == sum(quantity > 0 for good in there for _, _, quantity in good.options)


async def test_list_of_canonical_products(shop: Shop, market: Market) -> None:
    rows = await shop.walk("/api/canonical-products", limit=5)
    listed = {number: {good.store for good in market.goods if good.product == number} for number in market.products}
    assert {row["id"]: row["stores"] for row in rows} == {number: len(stores) for number, stores in listed.items()}
    assert [row["stores"] for row in rows] == sorted((row["stores"] for row in rows), reverse=True)
    acme = next(iter(market.brands))
    of_acme = {number for number, (_, brand, _) in market.products.items() if brand == acme}
    for params in ({"brand_id": acme}, {"q": "acme"}, {"q": "ACME thing"}):
        assert {row["id"] for row in await shop.walk("/api/canonical-products", **params)} == of_acme
    first = next(iter(market.products))
    async with shop.pool.connection() as conn:
        gone = await add_product(conn, "Gone", merged_into=first)
    one = await shop.ask(f"/api/canonical-products/{gone}")
    assert (one["id"], one["requested_id"]) == (first, gone)
    await shop.refused("/api/canonical-products/99999999", 404)


async def test_distribution_counts_menus_that_do_not_show_stock(shop: Shop) -> None:
    """Of three stores one does not say whether it has the product, and one has sold out."""
    async with shop.pool.connection() as conn:
        brand = await add_brand(conn, "Acme")
        product = await add_product(conn, "Thing", brand, category="flower")
        numbers = []
        for name, status, there in (("has", "in_stock", True), ("silent", "unknown", None), ("sold-out", "oos", False)):
            store = await shop.store(name, state="AZ")
            await shop.crawl(store, 1, [item("1", options=[("1/8oz", 30, 5)])])
            numbers.append(await listing(conn, store, "1"))
            await conn.execute(
                "UPDATE catalog_products SET stock_status = %s, is_in_stock = %s WHERE id = %s",
                [status, there, numbers[-1]],
            )
        await match(conn, product, *numbers)
    await refresh(shop.pool, window=timedelta(days=2), now=at(3))
    for path in ("distribution", "distribution/brands"):
        (row,) = await shop.walk(f"/api/analytics/{path}", state="AZ")
        assert (row["locations"], row["in_stock"], row["of_locations"]) == (3, 2, 3), path


async def test_an_empty_report_says_why(shop: Shop) -> None:
    async def notice(path: str, **query: Any) -> str | None:
        page = (await shop.http.get(f"/api/analytics/{path}", params=query)).json()
        assert page["items"] == []
        return page["notice"]

    store = await shop.store("only", state="AZ")
    await shop.crawl(store, 1, [item("1", options=[("1/8oz", 30, 5)])])
    await refresh(shop.pool, window=timedelta(days=2), now=at(3))
    assert "`menuwatch match apply`" in str(await notice("price-dispersion"))
    async with shop.pool.connection() as conn:
        product = await add_product(conn, "Thing", None, category="flower")
        await match(conn, product, await listing(conn, store, "1"))
    await refresh(shop.pool, window=timedelta(days=2), now=at(3))
    assert await notice("price-per-gram", state="NM") == "No known stores: New Mexico."
    assert await notice("price-dispersion", canonical_product=999_999) == "Canonical product 999999 does not exist."
    assert await notice("price-dispersion", canonical_product=product) is None
    flower = "Canonical products of the category preroll are listed under flower."
    assert await notice("distribution", category="preroll") == flower
    assert await notice("price-dispersion", category="topical") is None


async def test_matched_products_have_categories_of_the_taxonomy(shop: Shop) -> None:
    """Vaporizers and accessories as the matcher finds them are compared with the menus that have those categories."""
    for slug in ("one", "two", "three"):
        menu = [
            item("k", "Kush Cartridge", type="Vaporizers", subcategory="cartridges"),
            item("g", "Grinder", type="Accessories"),
        ]
        await shop.crawl(await shop.store(slug, state="AZ"), 1, menu if slug != "three" else menu[:1])
    await match_all(shop.pool)
    await refresh(shop.pool, window=timedelta(days=2), now=at(3))
    for category, stores in (("vaporizer", 3), ("accessory", 2)):
        (row,) = await shop.walk("/api/analytics/distribution", state="AZ", category=category)
        assert (row["category"], row["locations"], row["of_category"], row["of_locations"]) == (
            category,
            stores,
            stores,
            3,
        )
        assert row["category_share"] == 1
        (listed,) = await shop.walk("/api/canonical-products", category=category)
        assert listed["id"] == row["canonical_product_id"]
