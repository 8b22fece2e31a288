"""Questions about the recorded market. Expected answers come from the recorded files, by the readers of the tests."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.analytics.reference_stats import plausible, quantile
from tests.mcp.clients import Asking
from tests.mcp.question import Answered, Questions
from tests.mcp.recorded import Recorded, cheapest, offered, paid

QUESTIONS: Questions[Recorded] = Questions("recorded")
ask = QUESTIONS.ask

SANTA_FE = (35.6870, -105.9378)
ALBUQUERQUE = (35.0844, -106.6504)


def miles(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Spherical law of cosines, on the mean radius."""
    la, lb = math.radians(a[0]), math.radians(b[0])
    turn = math.sin(la) * math.sin(lb) + math.cos(la) * math.cos(lb) * math.cos(math.radians(a[1] - b[1]))
    return 6371.0088 * math.acos(min(1.0, turn)) / 1.609344


def _place(listing: dict[str, Any]) -> tuple[float, float]:
    return listing["latitude"], listing["longitude"]


def _near(truth: Recorded, centre: tuple[float, float], radius: float) -> dict[str, float]:
    found = {
        number: miles(centre, _place(one)) for number, one in truth.listings.items() if one["latitude"] is not None
    }
    return {number: far for number, far in found.items() if far <= radius}


def _all(truth: Recorded) -> list[dict[str, Any]]:
    return [*truth.goods.values(), *truth.sweed.values()]


async def _store(asking: Asking, truth: Recorded, listing: str) -> int:
    slug = truth.listings[listing]["slug"]
    rows = await asking.all("search_stores", q=slug)
    return int(next(row["id"] for row in rows if row["slug"] == slug))


def _largest(truth: Recorded) -> str:
    sizes = Counter(store for store, _ in truth.goods if store in truth.listings)
    return min(sizes, key=lambda store: (-sizes[store], int(store)))


def _grams(truth: Recorded, category: str, *, regular: bool) -> list[Fraction]:
    """Prices per gram of goods that are sold by weight, those left out that are far from what is usually paid."""
    fits = plausible([pay for pay, _ in _priced(_all(truth), category)])
    return [whole if regular else pay for pay, whole in _priced(truth.goods.values(), category) if fits(pay)]


def _priced(goods: Iterable[dict[str, Any]], category: str) -> Iterator[tuple[Fraction, Fraction]]:
    """What is paid for a gram, and its regular price."""
    for product in goods:
        for option in offered(product) if product["category_canon"] == category else ():
            whole = option["price_rec"] if option["price_rec"] is not None else option["price_med"]
            if option["weight_g"] and (pay := paid(option)):
                yield Fraction(pay) / Fraction(option["weight_g"]), Fraction(whole) / Fraction(option["weight_g"])


def _four(value: Fraction) -> Decimal:
    return Decimal(f"{float(value):.4f}")


@ask("How many stores of New Mexico are known, and of how many is there a menu?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    (row,) = (await asking("get_coverage", state="NM"))["items"]
    return (row["known_stores"], row["crawled_stores"]), (len(truth.known()), len(truth.crawled))


@ask("How many stores does a list of products of New Mexico cover, and how many of their menus are partial?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    coverage = (await asking("search_products", state="NM", limit=1))["coverage"]
    report = (await asking("list_price_per_gram", state="NM", limit=1))["coverage"]
    expected = (len(truth.crawled), len(truth.partial), len(truth.known()))
    names = ("stores", "partial", "known_stores")
    return [tuple(one[name] for name in names) for one in (coverage, report)], [expected, expected]


@ask("What is the address of the store with the most products?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    listing = truth.listings[number := _largest(truth)]
    store = (await asking("get_store", store_id=await _store(asking, truth, number)))["store"]
    expected = (listing["city"], listing["zip_code"], listing["latitude"], listing["longitude"])
    return (store["city"], store["zipcode"], float(store["latitude"]), float(store["longitude"])), expected


@ask("How many products did the last menu of that store have?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    number = _largest(truth)
    store = (await asking("get_store", store_id=await _store(asking, truth, number)))["store"]
    return store["product_count"], len(truth.menu(number))


@ask("How many stores have Santa Fe in their name, city or slug?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    rows = await asking.all("search_stores", q="santa fe")
    names = [(one["name"], one["city"] or "", one["slug"]) for one in truth.listings.values()]
    return len(rows), sum(any("santa fe" in text.lower() for text in one) for one in names)


@ask("How many stores are within 10 miles of the middle of Albuquerque?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    rows = await asking.all("search_stores", near="35.0844,-106.6504", miles=10)
    return len(rows), len(_near(truth, ALBUQUERQUE, 10))


@ask("Which five stores are nearest to the middle of Santa Fe, and how far are they?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    rows = (await asking("search_stores", near="35.6870,-105.9378", miles=50, limit=5))["items"]
    nearest = sorted((round(far, 1), far, number) for number, far in _near(truth, SANTA_FE, 50).items())[:5]
    expected = [(truth.listings[number]["slug"], Decimal(f"{far:.1f}")) for _, far, number in nearest]
    return [(row["slug"], row["miles"]) for row in rows], expected


@ask("How many stores of New Mexico have never been crawled?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    rows = await asking.all("search_stores", state="NM")
    return sum(row["last_crawled_at"] is None for row in rows), len(truth.known() - truth.crawled)


@ask("What does each size of the item with the most sizes cost?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    (listing, item), product = max(
        ((key, one) for key, one in truth.goods.items() if key[0] in truth.listings and one["price_rec"] is not None),
        key=lambda pair: (len(pair[1]["variants"]), pair[0]),
    )
    rows = await asking.all("search_products", store_id=await _store(asking, truth, listing), q=product["name"][:100])
    found = []
    for row in rows:
        detail = (await asking("get_product", product_id=row["id"]))["product"]
        if detail["provider_product_id"] == item:
            found = sorted((one["option"], one.get("price_rec"), one.get("special_rec")) for one in detail["variants"])
    return found, sorted((one["option"], one["price_rec"], one["special_rec"]) for one in product["variants"])


@ask("What does the cheapest flower in stock in New Mexico cost?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    (row,) = (await asking("search_products", state="NM", category="flower", in_stock=True, order="price", limit=1))[
        "items"
    ]
    prices = [
        price
        for one in truth.goods.values()
        if one["category_canon"] == "flower"
        and one["stock_status"] == "in_stock"
        and (price := cheapest(one)) is not None
    ]
    return row["price"], min(prices)


@ask("What does the dearest product in New Mexico cost?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    (row,) = (await asking("search_products", state="NM", order="-price", limit=1))["items"]
    return row["price"], max(price for one in truth.goods.values() if (price := cheapest(one)) is not None)


@ask("How many listings of WYLD are there?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    rows = await asking.all("search_products", brand="wyld")
    return len(rows), sum((one["brand_name"] or "").lower() == "wyld" for one in _all(truth))


@ask("At how many stores of New Mexico is there anything of WYLD?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    rows = await asking.all("search_products", brand="WYLD", state="NM")
    having = {store for (store, _), one in truth.goods.items() if (one["brand_name"] or "").lower() == "wyld"}
    return len({row["dispensary_id"] for row in rows}), len(having)


@ask("How many edibles of New Mexico are in stock?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    rows = await asking.all("search_products", state="NM", category="edible", in_stock=True)
    goods = truth.goods.values()
    return len(rows), sum(one["category_canon"] == "edible" and one["stock_status"] == "in_stock" for one in goods)


@ask("Which listings are out of stock?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    rows = await asking.all("search_products", in_stock=False)
    return sorted(row["name"] for row in rows), sorted(
        one["name"] for one in _all(truth) if one["stock_status"] == "oos"
    )


@ask("How many prerolls cost at most $5?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    rows = await asking.all("search_products", category="preroll", price_max=5)
    return len(rows), sum(
        one["category_canon"] == "preroll" and (price := cheapest(one)) is not None and price <= 5
        for one in _all(truth)
    )


@ask("How many listings have Blue Dream in their name?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    rows = await asking.all("search_products", q="Blue Dream")
    return len(rows), sum("blue dream" in one["name"].lower() for one in _all(truth))


@ask("How potent are the listings with Blue Dream in their name?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    rows = await asking.all("search_products", q="Blue Dream", state="NM")
    found = [None if row["thc"] is None else row["thc"]["hi"] for row in rows]
    expected = [one["thc_hi"] for one in truth.goods.values() if "blue dream" in one["name"].lower()]
    return Counter(found), Counter(expected)


@ask("What is the median regular price per gram of flower in New Mexico?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    (row,) = (await asking("list_price_per_gram", state="NM", category="flower"))["items"]
    return row["regular"]["median"], _four(quantile(_grams(truth, "flower", regular=True), Fraction(1, 2)))


@ask("What do nine of ten pay at most for a gram of concentrate in New Mexico?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    (row,) = (await asking("list_price_per_gram", state="NM", category="concentrate"))["items"]
    return row["effective"]["p90"], _four(quantile(_grams(truth, "concentrate", regular=False), Fraction(9, 10)))


@ask("On how many sizes is the price per gram of flower based?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    (row,) = (await asking("list_price_per_gram", state="NM", category="flower"))["items"]
    return (row["options"], row["effective"]["n"]), (len(values := _grams(truth, "flower", regular=False)), len(values))


def _reduced(product: dict[str, Any]) -> bool:
    return any(
        (option[f"special_{kind}"] or regular) < regular
        for option in offered(product)
        for kind in ("rec", "med")
        if (regular := option[f"price_{kind}"]) is not None
    )


@ask("How many products of New Mexico are on special?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    (row,) = (await asking("list_discounts", state="NM", category="all"))["items"]
    return row["on_special"], sum(map(_reduced, truth.goods.values()))


@ask("How many edibles of New Mexico are on special?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    (row,) = (await asking("list_discounts", state="NM", category="edible"))["items"]
    return row["on_special"], sum(_reduced(one) for one in truth.goods.values() if one["category_canon"] == "edible")


def _eighths(
    truth: Recorded, category: str, grams: Decimal, centre: tuple[float, float], radius: float
) -> list[Decimal]:
    """By store, the lowest price of that size, not for patients; slips of a menu are left out."""
    best: dict[str, Decimal] = {}
    for (store, _), product in truth.goods.items():
        if product["category_canon"] != category or store not in _near(truth, centre, radius):
            continue
        for option in offered(product):
            price = paid(option, medical=False)
            if option["weight_g"] == grams and price:
                best[store] = min(best.get(store, price), price)
    usual = quantile([Fraction(price) for price in best.values()], Fraction(1, 2))
    return [price for price in best.values() if len(best) < 3 or price * 5 >= usual]


@ask("Where near Albuquerque does 3.5 g of flower cost least?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    answer = await asking("find_cheapest_basket", items=["flower:3.5 g"], near="35.0844,-106.6504", miles=15)
    return answer["basket"]["one_store"]["cost"], min(_eighths(truth, "flower", Decimal("3.5"), ALBUQUERQUE, 15))


@ask("What do two eighths of flower and 1 g of concentrate cost over any stores near Albuquerque?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    items = ["flower:3.5 g*2", "concentrate:1 g"]
    answer = await asking("find_cheapest_basket", items=items, near="35.0844,-106.6504", miles=15)
    flower, other = (
        min(_eighths(truth, category, grams, ALBUQUERQUE, 15))
        for category, grams in (("flower", Decimal("3.5")), ("concentrate", Decimal(1)))
    )
    return answer["basket"]["any_stores"]["cost"], 2 * flower + other


@ask("Which three edibles within 15 miles of Albuquerque cost least?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    rows = (await asking("list_offers_near", near="35.0844,-106.6504", miles=15, category="edible", limit=3))["items"]
    near = _near(truth, ALBUQUERQUE, 15)
    prices = sorted(
        price
        for (store, _), one in truth.goods.items()
        if store in near and one["category_canon"] == "edible" and one["stock_status"] != "oos"
        and (price := cheapest(one)) is not None
    )  # fmt: skip
    return [row["price"] for row in rows], prices[:3]


@ask("How many listings does the recorded Sweed store have, of which brands?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    rows = await asking.all("search_products", state="MD")
    expected = Counter(one["brand_name"] for one in truth.sweed.values())
    return Counter(row["brand_name"] for row in rows), expected


@ask("What do the listings of the recorded Sweed store cost?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    rows = await asking.all("search_products", state="MD", order="price")
    return [row["price"] for row in rows], sorted(price for one in truth.sweed.values() if (price := cheapest(one)))


@ask("Of how many stores was the data quality measured?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    summary = (await asking("list_quality_scores", limit=1))["summary"]
    return summary["checked"], len(truth.crawled) + 1


@ask("What changed within 24 hours?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    rows = await asking.all("list_changes", since="24h")
    return [row for row in rows if row["type"] == "product"], []  # every store was crawled once


@ask("What is the history of the dearest edible?")
async def _(asking: Asking, truth: Recorded) -> Answered:
    (row,) = (await asking("search_products", state="NM", category="edible", order="-price", limit=1))["items"]
    states = (await asking("get_price_history", product_id=row["id"]))["items"]
    edibles = [one for one in truth.goods.values() if one["category_canon"] == "edible"]
    return [one["price"] for one in states], [max(price for one in edibles if (price := cheapest(one)) is not None)]
