"""Time out of stock, and new and gone products, of random stories of stores, added up crawl by crawl from the story itself."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

import psycopg
import pytest

from menuwatch.analytics.refresh import refresh
from tests.api.shop import Shop, at, item

INTERVAL = 4.0
"""Hours between crawls; after more than twice of that nothing is known of a store."""
SINCE, UNTIL = 40.0, 88.0

Seen = Literal["in", "out", "absent"]
KINDS = {"Flower": "flower", "Concentrate": "concentrate"}


@dataclass(kw_only=True)
class Story:
    """A store's crawls by the hour, and what each of them saw of each product."""

    hours: list[float]
    seen: dict[str, list[Seen]]
    kinds: dict[str, str]

    def times(self, product: str) -> Counter[str]:
        """Hours of the window by what the product was, and how often it `went` out."""
        found: Counter[str] = Counter()
        seen = self.seen[product]
        first = next(i for i, what in enumerate(seen) if what != "absent")
        for i in range(first, len(seen)):
            last = i == len(seen) - 1
            end = UNTIL if last else self.hours[i + 1]
            if end - self.hours[i] <= 2 * INTERVAL:
                # What it was until the next crawl is known where that one still saw it.
                known = seen[i] != "absent" and (last or seen[i + 1] != "absent")
                found[seen[i] if known else "absent"] += max(0.0, end - max(self.hours[i], SINCE))
            before = [what for what in seen[first:i] if what != "absent"]
            found["went"] += (
                self.hours[i] >= SINCE and seen[i] == "out" and before[-1:] == ["in"] and not self.gone(product, i)
            )
        return found

    def gone(self, product: str, i: int) -> bool:
        """Whether it had missed three crawls or more right before the i-th."""
        return i >= 3 and self.seen[product][i - 3 : i] == ["absent"] * 3


@dataclass(kw_only=True)
class Market:
    stories: dict[int, Story] = field(default_factory=dict)
    states: dict[int, str] = field(default_factory=dict)


def _story(rng: random.Random) -> Story:
    hours, hour = [], 0.0
    while hour < UNTIL - 1:
        hours.append(hour)
        # Sometimes nobody comes for a day.
        hour += rng.choice((3.5, 4, 4, 4, 5, 7.5, 8, 8.5, 20))
    seen: dict[str, list[Seen]] = {}
    for n in range(12):
        what: list[Seen] = []
        now: Seen = rng.choice(("in", "out", "absent", "in"))
        for _ in hours:
            if rng.random() < 0.25:
                now = rng.choice(("in", "out", "absent"))
            what.append(now)
        if set(what) != {"absent"}:
            seen[f"p{n}"] = what
    return Story(hours=hours, seen=seen, kinds={name: rng.choice(sorted(KINDS)) for name in seen})


@pytest.fixture(params=[1, 4, 5, 6, 7, 9])
async def market(request: pytest.FixtureRequest, shop: Shop) -> Market:
    rng, made = random.Random(request.param), Market()
    for number, state in enumerate(("AZ", "AZ", "NM")):
        store = await shop.store(f"s{number}", state=state)
        story = _story(rng)
        made.stories[store], made.states[store] = story, state
        for i, hour in enumerate(story.hours):
            await shop.crawl(store, hour, _menu(story, {name: seen[i] for name, seen in story.seen.items()}))
        story.seen["always"] = ["in"] * len(story.hours)
        story.kinds["always"] = "Flower"
    await refresh(shop.pool, window=timedelta(hours=UNTIL - SINCE), now=at(UNTIL))
    return made


def _menu(story: Story, seen: dict[str, Seen]) -> list[dict[str, Any]]:
    return [item("always", options=[("1g", 10, 5)], type="Flower")] + [
        item(name, options=[("1g", 10, 5 if what == "in" else 0)], type=story.kinds[name])
        for name, what in seen.items()
        if what != "absent"
    ]


def _hours(row: dict[str, Any]) -> tuple[float, float, float]:
    return row["in_hours"], row["out_hours"], row["absent_hours"]


async def test_by_product_and_by_group(shop: Shop, market: Market) -> None:
    by_product = {
        (r["dispensary_id"], r["name"], r["product_id"]): r
        for r in await shop.walk("/api/analytics/out-of-stock/products")
    }
    names: dict[int, tuple[int, str]] = {}
    async with shop.pool.connection() as conn:
        for product, store, name in await (
            await conn.execute("SELECT id, dispensary_id, provider_product_id FROM catalog_products")
        ).fetchall():
            names[product] = (store, name)
    found = {names[product]: row for (_, _, product), row in by_product.items()}
    groups: dict[Any, Counter[str]] = defaultdict(Counter)
    for store, story in market.stories.items():
        for name in story.seen:
            times = story.times(name)
            if times["out"] > 0:
                row = found.pop((store, name))
                assert _hours(row) == pytest.approx((times["in"], times["out"], times["absent"]), abs=0.011), (
                    store,
                    name,
                )
                assert row["times_out"] == times["went"], (store, name)
                assert row["out_share"] == pytest.approx(times["out"] / (times["in"] + times["out"]), abs=0.0001)
            if times["in"] + times["out"] == 0:
                continue  # nothing is known of it in the window but that it was absent
            state, kind = market.states[store], KINDS[story.kinds[name]]
            for key in (
                ("all", None, None, None),
                ("category", None, kind, None),
                ("state", state, None, None),
                ("state_category", state, kind, None),
                ("store", state, None, store),
                ("store_category", state, kind, store),
            ):
                groups[key].update(times)
                groups[key].update(products=1, once=times["out"] > 0)
    assert found == {}, "nothing else was ever out"
    for level in ("all", "category", "state", "state_category", "store", "store_category"):
        rows = await shop.walk("/api/analytics/out-of-stock", by=level, limit=2)
        assert len(rows) == sum(key[0] == level for key in groups)
        for row in rows:
            key = (level, row["state"], row["category"], row["dispensary_id"])
            group = groups[key]
            assert (row["products"], row["out_products"]) == (group["products"], group["once"]), key
            assert _hours(row) == pytest.approx((group["in"], group["out"], group["absent"]), abs=0.011), key
            assert row["unknown_hours"] == 0


async def test_new_and_gone(shop: Shop, market: Market) -> None:
    expected: Counter[Any] = Counter()
    for store, story in market.stories.items():
        days = [at(hour).date().isoformat() for hour in story.hours]
        for day in days:
            expected[store, day, "crawls"] += 1
        for seen in story.seen.values():
            first = next(i for i, what in enumerate(seen) if what != "absent")
            if first > 0:
                expected[store, days[first], "new"] += 1
            last = max(i for i, what in enumerate(seen) if what != "absent")
            if len(seen) - 1 - last >= 3:
                expected[store, days[last], "gone"] += 1
    rows = await shop.walk("/api/analytics/new-and-gone", by="store", limit=2)
    assert [(r["day"], -r["dispensary_id"]) for r in rows] == sorted(
        ((r["day"], -r["dispensary_id"]) for r in rows), reverse=True
    )
    told = Counter(
        {
            (r["dispensary_id"], r["day"], what): r[name]
            for r in rows
            for what, name in (("new", "new_products"), ("gone", "gone_products"), ("crawls", "crawls"))
        }
    )
    assert +told == +expected
    for by, whose in (("state", market.states), ("all", dict.fromkeys(market.states))):
        sums: Counter[Any] = Counter()
        for (store, day, what), n in expected.items():
            sums[whose[store], day, what] += n
        grouped = await shop.walk("/api/analytics/new-and-gone", by=by, limit=1)
        assert +Counter({(r["state"], r["day"], "gone"): r["gone_products"] for r in grouped}) == Counter(
            {key: n for key, n in sums.items() if key[2] == "gone"}
        )
        assert sum(r["new_products"] for r in grouped) == sum(n for key, n in sums.items() if key[2] == "new")
    some = await shop.walk("/api/analytics/new-and-gone", by="all", since="2026-03-03", until="2026-03-04")
    assert [r["day"] for r in some] == ["2026-03-03"]


async def _figures(shop: Shop) -> list[list[dict[str, Any]]]:
    products = await shop.walk("/api/analytics/out-of-stock/products")
    groups = [await shop.walk("/api/analytics/out-of-stock", by=level) for level in ("all", "category", "store")]
    return [[{k: v for k, v in row.items() if k != "coverage"} for row in rows] for rows in (products, *groups)]


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_crawls_after_the_window_change_nothing_in_it(shop: Shop, seed: int) -> None:
    """Their states are there, and are not those of the window: what held at its end is."""
    rng = random.Random(seed)
    store, story = await shop.store(state="AZ"), _story(rng)
    for i, hour in enumerate(story.hours):
        await shop.crawl(store, hour, _menu(story, {name: seen[i] for name, seen in story.seen.items()}))
    window = timedelta(hours=UNTIL - SINCE)
    await refresh(shop.pool, window=window, now=at(UNTIL))
    before = await _figures(shop)
    assert before[0]
    for n in range(9):
        later: dict[str, Seen] = {name: rng.choice(("in", "out", "absent", "absent")) for name in story.seen}
        await shop.crawl(store, UNTIL + 4 * n, _menu(story, later))
        await refresh(shop.pool, window=window, now=at(UNTIL))
        assert await _figures(shop) == before, n


async def test_a_crawl_that_is_taken_in_meanwhile_is_left_to_the_next_refresh(shop: Shop, database_url: str) -> None:
    store = await shop.store(state="AZ")
    there, out = (item("a", options=[("1g", 10, n)]) for n in (5, 0))
    for hour in range(0, 88, 4):
        await shop.crawl(store, hour, [there, item("b")])
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        await other.execute("LOCK TABLE analytics_price_stats IN ACCESS EXCLUSIVE MODE")
        going = asyncio.create_task(refresh(shop.pool, window=timedelta(hours=40), now=at(88)))
        async with asyncio.timeout(20), shop.pool.connection() as conn:
            while not (await (await conn.execute("SELECT FROM pg_locks WHERE NOT granted")).fetchall()):
                await asyncio.sleep(0.01)
        await shop.crawl(store, 87, [out, item("b")])
    await going
    (row,) = await shop.walk("/api/analytics/out-of-stock", by="all")
    assert (row["products"], row["out_products"], *_hours(row)) == (2, 0, 80, 0, 0)
    await refresh(shop.pool, window=timedelta(hours=40), now=at(88))
    (row,) = await shop.walk("/api/analytics/out-of-stock", by="all")
    assert (row["products"], row["out_products"], *_hours(row)) == (2, 1, 79, 1, 0)


async def test_time_before_a_product_was_first_seen_is_not_its_time(shop: Shop) -> None:
    """First seen at 16 h, in stock until 32 h, and sold out since; the window is from 8 h to 48 h."""
    store = await shop.store(state="AZ")
    for hour in range(0, 48, 4):
        new = [item("a", options=[("1g", 10, 5 if hour < 32 else 0)])] if hour >= 16 else []
        await shop.crawl(store, hour, [item("o"), *new])
    await refresh(shop.pool, window=timedelta(hours=40), now=at(48))
    (row,) = await shop.walk("/api/analytics/out-of-stock/products")
    assert (*_hours(row), row["times_out"]) == (16, 16, 0, 1)


async def test_a_turn_that_the_last_crawl_saw_counts_before_any_time_passed(shop: Shop) -> None:
    """Out, in, and out again at a crawl of the window's last moment: two turns."""
    store = await shop.store(state="AZ")
    for hour, n in ((0, 5), (4, 0), (8, 5), (12, 0)):
        await shop.crawl(store, hour, [item("a", options=[("1g", 10, n)]), item("o")])
    # After it the store is observed no longer: the next crawl is far away.
    await refresh(shop.pool, window=timedelta(hours=60), now=at(60))
    (row,) = await shop.walk("/api/analytics/out-of-stock/products")
    assert (*_hours(row), row["times_out"]) == (8, 4, 0, 2)


async def test_products_of_which_only_absence_is_known_are_in_no_group(shop: Shop) -> None:
    """Seen once, and missed by the crawl before and the one after: how long it was there nobody knows."""
    store = await shop.store(state="AZ")
    for hour in range(0, 24, 4):
        await shop.crawl(store, hour, [item("o"), *([item("a", options=[("1g", 10, 0)])] if hour in (8, 16) else [])])
    await refresh(shop.pool, window=timedelta(hours=24), now=at(24))
    (row,) = await shop.walk("/api/analytics/out-of-stock", by="all")
    assert (row["products"], row["out_products"], *_hours(row)) == (1, 0, 24, 0, 0)
    assert await shop.walk("/api/analytics/out-of-stock/products") == []


async def test_what_is_gone_and_cannot_be_read_is_not_out_of_stock(shop: Shop) -> None:
    """Gone since its third miss, and back as an item without a name: that it is there is known, and its stock is not."""
    store = await shop.store(state="AZ")
    others, there = [item(f"o{n}") for n in range(8)], item("a")
    unreadable = {**there, "Name": None, "name": None}
    for hour, menu in enumerate(([there], [there], [], [], [], [unreadable])):
        await shop.crawl(store, 4 * hour, [*others, *menu])
    await refresh(shop.pool, window=timedelta(hours=24), now=at(24))
    (row,) = await shop.walk("/api/analytics/out-of-stock", by="all")
    assert (row["products"], row["out_products"], *_hours(row)) == (9, 0, 8 * 24 + 4, 0, 20)
