"""Questions about the simulated market. Expected answers come from its ledger."""

from __future__ import annotations

import statistics
from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from typing import Any

from tests.analytics.reference_stats import quantile
from tests.mcp.clients import Asking
from tests.mcp.operations import FAILED, WAITING
from tests.mcp.question import Answered, Questions
from tests.mcp.simulated import DAYS, GOODS, STORES, Ledger, Seen, by_item

QUESTIONS: Questions[Ledger] = Questions("simulated")
ask = QUESTIONS.ask

LAST = DAYS - 1
SHERBERT = 0
SIZE = "3.5 g"


def _name(store: int) -> str:
    return STORES[store][0]


def _offers(ledger: Ledger, item: int, size: str, state: str) -> dict[str, Decimal]:
    """What stores that have it in stock ask for a size now."""
    return {
        _name(store): seen.paid(size)
        for store, other, seen in ledger.last(state)
        if other == item and seen.in_stock and size in seen.prices
    }


def _sold(ledger: Ledger, state: str) -> list[tuple[int, str, dict[str, Decimal]]]:
    """(item, size, prices by store) of what at least three stores of the state offer."""
    found = [
        (item, size, _offers(ledger, item, size, state))
        for item, (_, _, _, sizes) in enumerate(GOODS)
        for size in sizes
    ]
    return [one for one in found if len(one[2]) >= 3]


def _four(value: Any) -> Decimal:
    return Decimal(f"{float(value):.4f}")


async def _canonical(asking: Asking, item: int) -> int:
    (row,) = (await asking("search_canonical_products", q=GOODS[item][1]))["items"]
    return int(row["id"])


async def _listing(asking: Asking, ledger: Ledger, store: int, item: int, **more: Any) -> int:
    name = GOODS[item][1]
    (row,) = (await asking("search_products", store_id=ledger.store_ids[store], q=name, **more))["items"]
    return int(row["id"])


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _key(row: dict[str, Any]) -> tuple[str, str]:
    return row["store"], row["name"]


def _expected_changes(ledger: Ledger, since: datetime) -> list[tuple[int, int, Seen | None, Seen | None]]:
    return [change[1:] for change in ledger.changes() if change[0] >= since]


def _days_ago(ledger: Ledger, days: float) -> tuple[str, datetime]:
    moment = ledger.now - timedelta(days=days)
    return moment.isoformat(), moment


@ask("Which brands have the widest distribution in New Mexico?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = (await asking("list_brands_by_distribution", state="NM"))["items"]
    having: dict[str, set[int]] = {}
    for store, item, seen in ledger.last("NM"):
        if seen.in_stock:
            having.setdefault(GOODS[item][0], set()).add(store)
    return {row["brand"]: (row["in_stock"], row["of_locations"]) for row in rows}, {
        brand: (len(stores), 5) for brand, stores in having.items()
    }


@ask("In which order does the list of brands in Colorado come?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    shares = [row["share"] for row in (await asking("list_brands_by_distribution", state="CO"))["items"]]
    having: dict[str, set[int]] = {}
    for store, item, seen in ledger.last("CO"):
        if seen.in_stock:
            having.setdefault(GOODS[item][0], set()).add(store)
    return [_four(share) for share in shares], [_four(n / 2) for n in sorted(map(len, having.values()), reverse=True)]


@ask("Which share of the stores of New Mexico has Sunset Sherbert in stock?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    number = await _canonical(asking, SHERBERT)
    (row,) = (await asking("list_products_by_distribution", state="NM", canonical_product=number))["items"]
    stores = {store for store, item, seen in ledger.last("NM") if item == SHERBERT and seen.in_stock}
    return (row["in_stock"], _four(row["share"])), (len(stores), _four(len(stores) / 5))


@ask("How do the prices of 3.5 g of Sunset Sherbert spread over New Mexico?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    number = await _canonical(asking, SHERBERT)
    rows = (await asking("list_price_dispersion", state="NM", canonical_product=number))["items"]
    (row,) = [one for one in rows if one["size"] == SIZE]
    prices = list(_offers(ledger, SHERBERT, SIZE, "NM").values())
    exact = [Fraction(price) for price in prices]
    expected = (
        len(prices), min(prices), _four(quantile(exact, Fraction(1, 2))), max(prices),
        _four(statistics.stdev(map(float, prices)) / statistics.fmean(map(float, prices))),
    )  # fmt: skip
    return (row["locations"], row["min"], row["median"], row["max"], _four(row["cv"])), expected


@ask("Where is the widest price gap of New Mexico, and how wide is it?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    (row,) = (await asking("list_widest_gaps", state="NM", limit=1))["items"]
    item, size, prices = max(
        _sold(ledger, "NM"), key=lambda one: Fraction(max(one[2].values())) / Fraction(min(one[2].values()))
    )
    low, high = min(prices.values()), max(prices.values())
    expected = (GOODS[item][1], size, high - low, {name for name, price in prices.items() if price == low})
    return (row["name"], row["size"], row["gap"], {row["cheapest_store"]}), expected


@ask("Which sizes of which products have a price dispersion in New Mexico?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = await asking.all("list_price_dispersion", state="NM")
    expected = {(GOODS[item][1], size, len(prices)) for item, size, prices in _sold(ledger, "NM")}
    return {(row["name"], row["size"], row["locations"]) for row in rows}, expected


@ask("What does each store of New Mexico ask for 3.5 g of Sunset Sherbert?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    answer = await asking("get_canonical_product", canonical_product_id=await _canonical(asking, SHERBERT), state="NM")
    found = {row["store"]: row["price"] for row in answer["items"] if row["size"] == SIZE}
    return found, _offers(ledger, SHERBERT, SIZE, "NM")


@ask("How did the price of Sunset Sherbert at Alpha Greens change?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    states = await asking.all("get_price_history", product_id=await _listing(asking, ledger, 0, SHERBERT))
    expected = [(at, seen.cheapest) for at, seen in ledger.states(0, SHERBERT) if seen is not None]
    return [(_at(row["from"]), row["price"]) for row in states[::-1]], expected


@ask("Which prices of Sunset Sherbert were seen at Alpha Greens within 4 days?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    text, since = _days_ago(ledger, 4)
    states = await asking.all("get_price_history", product_id=await _listing(asking, ledger, 0, SHERBERT), since=text)
    days = [day for day in range(DAYS) if ledger.crawled_at(0, day) >= since]
    expected = [ledger.seen[0, SHERBERT, day].cheapest for day in days]
    return [row["price"] for row in states[::-1]], [price for price, _ in groupby(expected)]


@ask("What was on special at Foxtrot Flower, by the history of its listings?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    found, expected = {}, {}
    for item in range(len(GOODS)):
        if (5, item, 0) not in ledger.seen:
            continue
        states = await asking.all("get_price_history", product_id=await _listing(asking, ledger, 5, item))
        found[item] = [row["price_rec_special"] for row in states[::-1]]
        specials = [
            [special for _, special in seen.prices.values() if special is not None]
            for _, seen in ledger.states(5, item)
            if seen is not None
        ]
        expected[item] = [min(one, default=None) for one in specials]
    return found, expected


@ask("What changed since yesterday?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = [row for row in await asking.all("list_changes", since=_days_ago(ledger, 1)[0]) if row["type"] == "product"]
    found = {_key(row): (row["before"]["price"], row["after"]["price"]) for row in rows}
    expected = {
        (_name(store), GOODS[item][1]): (before.cheapest, after.cheapest)
        for store, item, before, after in _expected_changes(ledger, ledger.now - timedelta(days=1))
        if before is not None and after is not None
    }
    return found, expected


@ask("How many changes of prices and stock were there at each store?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = [row for row in await asking.all("list_changes", since="30d") if row["type"] == "product"]
    expected = Counter(_name(store) for store, _, _, _ in _expected_changes(ledger, ledger.crawled_at(0, 0)))
    return Counter(row["store"] for row in rows), expected


@ask("Which prices fell by 10 % or more within 5 days?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    text, since = _days_ago(ledger, 5)
    rows = await asking.all("list_changes", since=text, kind="price_drop", percent=10)
    expected = [
        (_name(store), GOODS[item][1])
        for store, item, before, after in _expected_changes(ledger, since)
        if before is not None and after is not None and after.cheapest <= before.cheapest * Decimal("0.9")
    ]
    return sorted(map(_key, rows)), sorted(expected)


@ask("How many prices rose in Colorado?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = await asking.all("list_changes", since="30d", kind="price_rise", state="CO")
    changes = _expected_changes(ledger, ledger.crawled_at(0, 0))
    return len(rows), sum(
        STORES[store][2] == "CO" and before is not None and after is not None and after.cheapest > before.cheapest
        for store, _, before, after in changes
    )


def _went_out(before: Seen | None, after: Seen | None) -> bool:
    return before is not None and before.in_stock and (after is None or not after.in_stock)


@ask("What went out of stock last week?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = await asking.all("list_stock_outs", since=_days_ago(ledger, 7)[0])
    changes = _expected_changes(ledger, ledger.now - timedelta(days=7))
    expected = [
        (_name(store), GOODS[item][1], after is not None) for store, item, b, after in changes if _went_out(b, after)
    ]
    return sorted((*_key(row), row["present"]) for row in rows), sorted(expected)


@ask("What went out of stock at Alpha Greens, because it left the menu?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = await asking.all("list_stock_outs", since="30d", store_id=ledger.store_ids[0])
    changes = [change for change in ledger.changes() if change[1] == 0 and change[4] is None]
    found = [(row["name"], _at(row["changed_at"])) for row in rows if not row["present"]]
    return found, [(GOODS[item][1], at) for at, _, item, _, _ in changes]


@ask("What came back into stock?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = await asking.all("list_changes", since="30d", kind="back_in_stock")
    expected = [
        (_name(store), GOODS[item][1])
        for store, item, before, after in _expected_changes(ledger, ledger.crawled_at(0, 0))
        if before is not None and not before.in_stock and after is not None and after.in_stock
    ]
    return sorted(map(_key, rows)), sorted(expected)


def _index_days(ledger: Ledger) -> list[int]:
    """The days whose index is computed: those that ended six hours before the last refresh."""
    return [day for day in range(DAYS) if ledger.day(day) < (ledger.refreshed_at(LAST) - timedelta(hours=6)).date()]


@ask("How did the price index of Colorado move?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    answer = await asking("get_price_index", state="CO")
    found = [(row["day"], row["index"]) for row in answer["items"][::-1]]
    days = _index_days(ledger)
    expected = zip(days, ledger.index("CO", days), strict=True)
    return found, [(ledger.crawled_at(0, day).date().isoformat(), _four(value)) for day, value in expected]


def _market(ledger: Ledger, day: int, state: str, category: str | None = None) -> list[Seen]:
    return [
        seen
        for (store, item, other), seen in ledger.seen.items()
        if other == day and STORES[store][2] == state and category in (None, GOODS[item][2])
    ]


def _depth(seen: Seen) -> Fraction | None:
    """The deepest discount of the item."""
    depths = [
        1 - Fraction(special) / Fraction(regular) for regular, special in seen.prices.values() if special is not None
    ]
    return max(depths, default=None)


@ask("Which share of the products of Colorado was on special on each day?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = await asking.all("list_discount_depth", state="CO")
    found = {row["day"]: (row["priced"], row["on_special"]) for row in rows}
    expected = {}
    for day in range(DAYS):
        goods = [seen for seen in _market(ledger, day, "CO") if seen.in_stock]
        expected[ledger.day(day).isoformat()] = (len(goods), sum(_depth(seen) is not None for seen in goods))
    return found, expected


@ask("How deep were discounts in New Mexico on each day, and since when are days kept?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = await asking.all("list_discount_depth", state="NM")
    kept_since = (await asking("list_discount_depth", state="NM", limit=1))["kept_since"]
    found = {row["day"]: row["depth_median"] for row in rows}
    expected = {}
    for day in range(DAYS):
        depths = [depth for seen in _market(ledger, day, "NM") if seen.in_stock and (depth := _depth(seen)) is not None]
        expected[ledger.day(day).isoformat()] = _four(quantile(depths, Fraction(1, 2))) if depths else None
    depths_found = {day: None if depth is None else _four(depth) for day, depth in found.items()}
    return (depths_found, kept_since), (expected, ledger.day(0).isoformat())


@ask("How many products of New Mexico were out of stock on each day?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = await asking.all("list_discount_depth", state="NM")
    expected = {
        ledger.day(day).isoformat(): sum(not seen.in_stock for seen in _market(ledger, day, "NM"))
        for day in range(DAYS)
    }
    return {row["day"]: row["out_of_stock"] for row in rows}, expected


@ask("What do two products cost together at one store within 30 miles of Santa Fe?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    items = [f"{await _canonical(asking, SHERBERT)}:{SIZE}", "preroll:1 g"]
    answer = await asking("find_cheapest_basket", items=items, near="35.687,-105.9378", miles=30)
    one = answer["basket"]["one_store"]
    costs = [_cost(ledger, store) for store in (0, 1)]
    best = min((cost for cost in costs if cost is not None), default=None)
    return None if one is None else one["cost"], best


def _preroll(ledger: Ledger, store: int) -> Decimal | None:
    return min(
        (
            seen.paid("1 g")
            for item, seen in ledger.menu(store, LAST).items()
            if GOODS[item][2] == "preroll" and "1 g" in seen.prices and seen.in_stock
        ),
        default=None,
    )


def _flower(ledger: Ledger, store: int) -> Decimal | None:
    seen = ledger.menu(store, LAST).get(SHERBERT)
    return seen.paid(SIZE) if seen is not None and seen.in_stock else None


def _cost(ledger: Ledger, store: int) -> Decimal | None:
    flower, preroll = _flower(ledger, store), _preroll(ledger, store)
    return None if flower is None or preroll is None else flower + preroll


@ask("What do the two cost over any stores within 100 miles of Santa Fe?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    items = [f"{await _canonical(asking, SHERBERT)}:{SIZE}", "preroll:1 g"]
    answer = await asking("find_cheapest_basket", items=items, near="35.687,-105.9378", miles=100)
    near = range(4)
    flower = min(price for store in near if (price := _flower(ledger, store)) is not None)
    preroll = min(price for store in near if (price := _preroll(ledger, store)) is not None)
    return answer["basket"]["any_stores"]["cost"], flower + preroll


@ask("What do the two cost over two stores within 100 miles of Santa Fe?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    items = [f"{await _canonical(asking, SHERBERT)}:{SIZE}", "preroll:1 g"]
    answer = await asking("find_cheapest_basket", items=items, near="Santa Fe, NM", miles=100)
    pairs = [(a, b) for a in range(4) for b in range(4)]
    costs = [
        flower + preroll
        for a, b in pairs
        if (flower := _flower(ledger, a)) is not None and (preroll := _preroll(ledger, b)) is not None
    ]
    return answer["basket"]["two_stores"]["cost"], min(costs)


@ask("How many stores of Colorado are known, crawled and stale?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    (row,) = (await asking("get_coverage", state="CO"))["items"]
    return (row["known_stores"], row["crawled_stores"], row["never_crawled"], row["stale_stores"]), (3, 2, 1, 0)


@ask("How old are the oldest and the newest menu of New Mexico that the price per gram is based on?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    freshness = (await asking("list_price_per_gram", state="NM"))["freshness"]
    found = tuple(_at(freshness[name]) for name in ("oldest_observed_at", "newest_observed_at", "refreshed_at"))
    last = [ledger.crawled_at(store, LAST) for store in range(5)]
    return found[:2], (min(last), max(last))


@ask("Which products came to a menu in the last 5 days?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = await asking.all("search_products", new_since=_days_ago(ledger, 5)[0])
    first: dict[tuple[int, int], int] = {}
    for store, item, day in ledger.seen:
        first[store, item] = min(first.get((store, item), DAYS), day)
    since = ledger.now - timedelta(days=5)
    expected = [(s, i) for (s, i), day in first.items() if day > 0 and ledger.crawled_at(s, day) >= since]
    return sorted(map(_key, rows)), sorted((_name(store), GOODS[item][1]) for store, item in expected)


@ask("Which products are on no menu any more?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = await asking.all("search_products", on_menu=False)
    known = {(store, item) for store, item, _ in ledger.seen}
    gone = known - {(store, item) for store, item, _ in ledger.last()}
    return sorted(map(_key, rows)), sorted((_name(store), GOODS[item][1]) for store, item in gone)


@ask("What was the lowest price of 3.5 g of Sunset Sherbert ever, and what is it now?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = (await asking("list_lowest_prices", canonical_product_id=await _canonical(asking, SHERBERT)))["items"]
    (row,) = [one for one in rows if one["size"] == SIZE]
    past = [seen.paid(SIZE) for (_, item, _), seen in ledger.seen.items() if item == SHERBERT and seen.in_stock]
    now = [seen.paid(SIZE) for _, item, seen in ledger.last() if item == SHERBERT and seen.in_stock]
    return (row["lowest_ever"]["price"], row["now"]["price"]), (min(past), min(now))


def _grams(ledger: Ledger, state: str, category: str) -> list[Fraction]:
    return [
        Fraction(seen.paid(size)) / Fraction(size.removesuffix(" g"))
        for seen in _market(ledger, LAST, state, category)
        if seen.in_stock
        for size in seen.prices
    ]


@ask("What is the price per gram by category in Colorado?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = (await asking("list_price_per_gram", state="CO"))["items"]
    found = {row["category"]: (row["options"], row["effective"]["median"]) for row in rows}
    categories = {category for _, _, category, _ in GOODS}
    return found, {
        category: (len(values), _four(quantile(values, Fraction(1, 2))))
        for category in categories
        if (values := _grams(ledger, "CO", category))
    }


@ask("What do cartridges cost within 40 miles of Denver, the cheapest first?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = await asking.all("list_offers_near", near="80202", miles=40, category="vaporizer")
    found = [(row["store"], row["name"], row["price"]) for row in rows]
    expected = [
        (_name(store), GOODS[item][1], seen.cheapest)
        for store, item, seen in ledger.last("CO")
        if GOODS[item][2] == "vaporizer" and seen.in_stock
    ]
    return (sorted(found), [one[2] for one in found]), (sorted(expected), sorted(one[2] for one in expected))


@ask("Which stores sell which products of Luna Labs in New Mexico?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = await asking.all("search_products", brand="luna labs", state="NM")
    offers = by_item([one for one in ledger.last("NM") if GOODS[one[1]][0] == "Luna Labs"])
    return Counter(row["name"] for row in rows), Counter(
        {GOODS[item][1]: len(stores) for item, stores in offers.items()}
    )


@ask("How many tasks of each role wait?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = (await asking("get_queue"))["items"]
    return {row["role"]: row["pending_tasks"] for row in rows if row["pending_tasks"]}, {"payload_fetch": WAITING}


@ask("Which tasks failed within 24 hours, and why?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = (await asking("list_failed_tasks"))["items"]
    return [(row["role"], row["count"], row["stores"]) for row in rows], [("payload_fetch", FAILED, FAILED)]


@ask("Which workers are alive?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = (await asking("list_workers", alive=True))["items"]
    return [row["worker_id"] for row in rows], ["worker-b"]


@ask("Which hosts are paused?")
async def _(asking: Asking, ledger: Ledger) -> Answered:
    rows = (await asking("list_hosts"))["items"]
    return [(row["host"], row["state"]) for row in rows], [("menus.example", "paused")]
