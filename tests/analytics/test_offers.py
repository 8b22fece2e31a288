"""Prices per gram, brands and discounts of random menus, against what the menus themselves say."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest

from menuwatch.analytics.refresh import refresh
from tests.analytics.reference_stats import near, plausible, quantile, spread
from tests.api.shop import Shop, at, item

KINDS = {"Flower": "flower", "Pre-Rolls": "preroll", "Concentrate": "concentrate", "Mystery": None}
SIZES = {"1g": 1, "3.5g": Fraction(7, 2), "7g": 7, "28g": 28, "N/A": None}
BRANDS = ["Acme", "ACME", "Acme", "Green & Co", "Über", None]
STATES = ["AZ", "AZ", "NM", "NM", "NM", None, "ON"]
CANADA = {"ON"}


@dataclass(frozen=True, kw_only=True)
class Good:
    """One product as it is put on a menu."""

    store: int
    state: str | None
    kind: str
    brand: str | None
    options: tuple[tuple[str, int, int], ...]
    """Size, price and quantity."""
    special: tuple[int, ...]
    named: bool

    def offered(self) -> list[tuple[str, int, int]]:
        """(size, price, price to pay) of the options that are there."""
        paid = self.special or tuple(price for _, price, _ in self.options)
        return [(size, price, pay) for (size, price, n), pay in zip(self.options, paid, strict=True) if n > 0]


@dataclass(kw_only=True)
class Market:
    goods: list[Good] = field(default_factory=list)
    stores: dict[int, str | None] = field(default_factory=dict)


@pytest.fixture
async def market(shop: Shop) -> Market:
    """Seven stores with 25 products each, one with none, and one that was never seen."""
    rng, made = random.Random(15), Market()
    for number, state in enumerate(STATES):
        store = await shop.store(f"store-{number}", state=state)
        made.stores[store] = state
        menu = []
        for n in range(25):
            sizes = rng.sample(sorted(SIZES), rng.randint(1, 3))
            options = tuple((size, rng.randint(5, 90), rng.choice((0, 1, 7))) for size in sizes)
            cheaper = tuple(max(1, price - rng.randint(1, 30)) for _, price, _ in options)
            good = Good(
                store=store,
                state=state,
                kind=rng.choice(sorted(KINDS)),
                brand=rng.choice(BRANDS),
                options=options,
                special=cheaper if rng.random() < 0.4 else (),
                named=rng.random() < 0.2,
            )
            made.goods.append(good)
            named = {"specialData": {"bogoSpecials": [{"specialName": "2 for 1", "specialType": "bogo"}]}}
            menu.append(
                item(
                    f"{store}-{n}",
                    options=[(size, price, quantity) for size, price, quantity in options],
                    special=good.special,
                    type=good.kind,
                    brandName=good.brand,
                    **(named if good.named else {}),
                )
            )
        await shop.crawl(store, 1, menu)
    for slug, state in (("never-seen", "NM"), ("another", "TX")):
        made.stores[await shop.store(slug, state=state)] = state
    await refresh(shop.pool, window=timedelta(days=2), now=at(2))
    return made


def _scopes(state: str | None) -> tuple[tuple[bool, str | None], ...]:
    return (True, None), (False, state)


def _known(market: Market, scope: tuple[bool, str | None], currency: str | None = None) -> int:
    there = [state for state in market.stores.values() if currency is None or _currency(state) == currency]
    return sum(scope[0] or state == scope[1] for state in there)


def _currency(state: str | None) -> str:
    return "CAD" if state in CANADA else "USD"


async def test_price_per_gram(shop: Shop, market: Market) -> None:
    rows = await shop.walk("/api/analytics/price-per-gram", limit=3)
    usual: dict[Any, list[Fraction]] = defaultdict(list)
    for good in market.goods:
        for size, _, pay in good.offered():
            if (grams := SIZES[size]) is not None and KINDS[good.kind]:
                usual[_currency(good.state), good.kind].append(Fraction(pay) / grams)
    is_plausible = {key: plausible(values) for key, values in usual.items()}
    regular: dict[Any, list[Fraction]] = defaultdict(list)
    paid: dict[Any, list[Fraction]] = defaultdict(list)
    implausible: dict[Any, int] = defaultdict(int)
    weightless: dict[Any, int] = defaultdict(int)
    products: dict[Any, set[int]] = defaultdict(set)
    stores: dict[Any, set[int]] = defaultdict(set)
    for number, good in enumerate(market.goods):
        for size, price, pay in good.offered():
            for scope in _scopes(good.state):
                key = (*scope, _currency(good.state), KINDS[good.kind])
                grams = SIZES[size]
                weightless[key] += grams is None
                if grams is None:
                    continue
                fits = is_plausible.get((_currency(good.state), good.kind))
                if fits is not None and not fits(Fraction(pay) / grams):
                    implausible[key] += 1
                else:
                    regular[key].append(Fraction(price) / grams)
                    paid[key].append(Fraction(pay) / grams)
                    products[key].add(number)
                    stores[key].add(good.store)
    assert {(r["all_states"], r["state"], r["currency"], r["category"]) for r in rows} == weightless.keys()
    for row in rows:
        key = (row["all_states"], row["state"], row["currency"], row["category"])
        assert row["regular"] == spread(regular[key]), key
        assert row["effective"] == spread(paid[key]), key
        assert (row["options"], row["without_weight"], row["without_price"]) == (len(paid[key]), weightless[key], 0)
        assert row["implausible"] == implausible[key], key
        assert row["products"] == len(products[key])
        covered = row["coverage"]
        assert (covered["stores"], covered["known_stores"]) == (len(stores[key]), _known(market, key[:2], key[2]))
    assert sum(implausible.values()), "the market has none"
    assert [r["all_states"] for r in rows] == sorted((r["all_states"] for r in rows), reverse=True)
    one = await shop.walk("/api/analytics/price-per-gram", state="nm", category="flower")
    assert one == [r for r in rows if (r["state"], r["category"]) == ("NM", "flower")]
    unknown = await shop.walk("/api/analytics/price-per-gram", state="unknown", category="unknown")
    assert unknown == [r for r in rows if (r["all_states"], r["state"], r["category"]) == (False, None, None)]


async def test_brands(shop: Shop, market: Market) -> None:
    rows = await shop.walk("/api/analytics/brands", limit=4)
    listed: dict[Any, int] = defaultdict(int)
    there: dict[Any, int] = defaultdict(int)
    stores: dict[Any, set[int]] = defaultdict(set)
    for good in market.goods:
        for scope in _scopes(good.state):
            for key in ((*scope, good.brand.lower() if good.brand else None), scope):
                listed[key] += 1
                there[key] += bool(good.offered())
                stores[key].add(good.store)
    assert len(rows) == sum(len(key) == 3 for key in listed)
    for row in rows:
        scope = (row["all_states"], row["state"])
        key = (*scope, row["brand"].lower() if row["brand"] else None)
        assert (row["products"], row["in_stock"]) == (listed[key], there[key])
        assert (row["of_products"], row["of_stores"]) == (listed[scope], len(stores[scope]))
        assert row["share"] == pytest.approx(listed[key] / listed[scope], abs=1e-6)
        assert row["store_share"] == pytest.approx(len(stores[key]) / len(stores[scope]), abs=1e-6)
        assert (row["coverage"]["stores"], row["coverage"]["known_stores"]) == (
            len(stores[key]),
            _known(market, scope),
        )
    spelled = [good.brand for good in market.goods if good.brand and good.brand.lower() == "acme"]
    most = max(sorted(set(spelled)), key=spelled.count)
    assert {r["brand"] for r in rows if r["brand"] and r["brand"].lower() == "acme"} == {most}
    for state in ("all", "AZ"):
        some = await shop.walk("/api/analytics/brands", state=state)
        assert [r["products"] for r in some] == sorted((r["products"] for r in some), reverse=True)
    assert len(await shop.walk("/api/analytics/brands", brand="aCmE", state="NM")) == 1


async def test_discounts(shop: Shop, market: Market) -> None:
    rows = await shop.walk("/api/analytics/discounts", limit=5)
    counted: dict[Any, int] = defaultdict(int)
    named: dict[Any, int] = defaultdict(int)
    depths: dict[Any, list[Fraction]] = defaultdict(list)
    for good in market.goods:
        offered = good.offered()
        if not offered:
            continue
        cuts = [1 - Fraction(pay, price) for _, price, pay in offered if pay < price]
        for scope in _scopes(good.state):
            for key in ((*scope, True, None), (*scope, False, KINDS[good.kind])):
                counted[key] += 1
                named[key] += good.named and not cuts
                if cuts:
                    depths[key].append(max(cuts))
    assert len(rows) == len(counted)
    for row in rows:
        key = (row["all_states"], row["state"], row["all_categories"], row["category"])
        cuts = depths[key]
        assert (row["products"], row["on_special"], row["named_only"]) == (counted[key], len(cuts), named[key])
        assert row["special_share"] == pytest.approx(len(cuts) / counted[key], abs=0.000051)
        if cuts:
            assert row["depth_median"] == near(quantile(cuts, Fraction(1, 2)))
            assert row["depth_p90"] == near(quantile(cuts, Fraction(9, 10)))
            assert row["depth_mean"] == near(sum(cuts, Fraction()) / len(cuts))
    assert any(r["named_only"] for r in rows)
    (whole,) = await shop.walk("/api/analytics/discounts", state="all", category="all")
    assert (whole["coverage"]["stores"], whole["coverage"]["known_stores"]) == (7, 9)


async def test_what_was_missing_is_not_on_offer(shop: Shop) -> None:
    store = await shop.store(state="AZ")
    await shop.crawl(store, 1, [item("a", options=[("1g", 10, 3)]), item("b", options=[("1g", 30, 3)])])
    await shop.crawl(store, 5, [item("a", options=[("1g", 12, 3)])])
    await refresh(shop.pool, window=timedelta(days=1), now=at(6))
    (row,) = await shop.walk("/api/analytics/price-per-gram", state="AZ")
    assert (row["effective"]["n"], row["effective"]["median"]) == (1, 12)
    (brand,) = await shop.walk("/api/analytics/brands", state="AZ")
    assert brand["products"] == 1


async def test_implausible_sizes_are_left_out(shop: Shop) -> None:
    """Ten options at 8 to 12 a gram, of which the median is 10: 80 and 1.25 are within its limits, the next cents are not."""
    store = await shop.store(state="AZ")
    menu = [item(f"i{n}", options=[("1g", price, 3)]) for n, price in enumerate((8, 9, 9, 10, 10, 10, 10, 11, 12, 12))]
    for name, price in (("high", 80), ("low", 1.25), ("above", 80.01), ("below", 1.24)):
        menu.append(item(name, options=[("1g", price, 3)]))
    menu.append(item("cartridge", options=[("0.01g", 45, 3)]))
    menu.append(item("gummies", options=[("0.01g", 45, 3)], type="Mystery"))
    await shop.crawl(store, 1, menu)
    await refresh(shop.pool, window=timedelta(days=1), now=at(2))
    flower, unknown = await shop.walk("/api/analytics/price-per-gram", state="AZ")
    assert (flower["products"], flower["options"], flower["implausible"]) == (12, 12, 3)
    paid = flower["effective"]
    assert (paid["n"], paid["median"], paid["mean"]) == (12, 10, pytest.approx((101 + 80 + 1.25) / 12, abs=0.00005))
    assert flower["regular"] == paid
    # What is not sold by weight is never compared.
    assert (unknown["category"], unknown["options"], unknown["implausible"]) == (None, 1, 0)


async def test_few_options_are_all_plausible(shop: Shop) -> None:
    store = await shop.store(state="AZ")
    menu = [item(f"i{n}", options=[("1g", 10, 3)]) for n in range(8)]
    await shop.crawl(store, 1, [*menu, item("cartridge", options=[("0.01g", 45, 3)])])
    await refresh(shop.pool, window=timedelta(days=1), now=at(2))
    (row,) = await shop.walk("/api/analytics/price-per-gram", state="AZ")
    assert (row["options"], row["implausible"], row["effective"]["mean"]) == (
        9,
        0,
        pytest.approx(4580 / 9, abs=0.00005),
    )


async def test_what_the_last_crawl_lacks_without_a_miss_is_not_on_offer(shop: Shop) -> None:
    """An item whose id cannot be read may be any product: no miss is counted, and yet nobody saw that one."""
    store = await shop.store(state="AZ")
    others = [item(f"o{n}", options=[("1g", 10, 3)]) for n in range(8)]
    await shop.crawl(store, 0, [*others, item("a", options=[("1g", 90, 3)])])
    nameless = {key: value for key, value in item("zz").items() if key not in ("_id", "id")}
    await shop.crawl(store, 4, [*others, nameless])
    await refresh(shop.pool, window=timedelta(hours=5), now=at(5))
    async with shop.pool.connection() as conn:
        misses = await conn.execute("SELECT consecutive_misses FROM catalog_products WHERE provider_product_id = 'a'")
        assert await misses.fetchone() == (0,)
    (brand,) = await shop.walk("/api/analytics/brands", state="AZ")
    assert (brand["products"], brand["of_products"]) == (8, 8)
    (price,) = await shop.walk("/api/analytics/price-per-gram", state="AZ")
    assert (price["products"], price["effective"]["n"], price["effective"]["mean"]) == (8, 8, 10)


async def test_a_recreational_special_beside_a_medical_price_has_no_regular_one(shop: Shop) -> None:
    """The regular price is of the menu that the one to pay is of: 8 beside a medical 20 is no discount."""
    store = await shop.store(state="AZ")
    await shop.crawl(store, 1, [item("a", options=[("1g", 10, 3)]), item("b", options=[("1g", 30, 3)])])
    await shop.execute(
        "UPDATE catalog_products SET variants = jsonb_set(variants, '{0}', variants -> 0"
        """ || '{"price_rec": null, "special_rec": 8, "price_med": 20, "special_med": null}')"""
        " WHERE provider_product_id = 'a'"
    )
    await refresh(shop.pool, window=timedelta(hours=1), now=at(2))
    (price,) = await shop.walk("/api/analytics/price-per-gram", state="AZ")
    assert (price["effective"]["n"], price["effective"]["mean"]) == (2, 19)
    assert (price["regular"]["n"], price["regular"]["mean"]) == (1, 30)
    (whole,) = await shop.walk("/api/analytics/discounts", state="all", category="all")
    assert (whole["products"], whole["on_special"]) == (1, 0)
