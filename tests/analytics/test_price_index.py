"""The price index against a simulated market whose true prices are known, and its rules one by one."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import math
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from menuwatch.analytics import price_index
from menuwatch.analytics.price_index import PriceIndex, PriceIndexDay, read_price_index
from menuwatch.analytics.refresh import refresh
from menuwatch.core.errors import InvalidField
from menuwatch.db.pool import Pool, open_pool
from tests import market
from tests.analytics.price_market import Faults, Item, PriceMarket, day_of
from tests.api.shop import Shop
from tests.api.shop import item as dutchie_item
from tests.commands import run_here


def _computable(day: int) -> datetime:
    """When that day of the market can be computed: some hours after its end."""
    return market.START.replace(hour=0) + timedelta(days=day + 1) + price_index.DELAY


async def _compute(pool: Pool, last_day: int) -> int:
    async with pool.connection() as conn:
        return await price_index.compute(conn, _computable(last_day))


async def _read(pool: Pool, state: str = "all", category: str = "all", **span: Any) -> PriceIndex:
    async with pool.connection() as conn:
        return await read_price_index(conn, state=state, category=category, **span)


async def _whole(pool: Pool, days: int, state: str = "all", category: str = "all") -> PriceIndex:
    return await _read(pool, state, category, first=day_of(0), last=day_of(days - 1))


class _Stores:
    """Stores with menus of items by name and price; a price of None is out of stock."""

    def __init__(self, pool: Pool, count: int = 2) -> None:
        self.pool, self.count = pool, count
        self.ids: list[int] = []

    async def crawl(
        self, day: float, *menus: Mapping[str, float | str | None] | None, category: str | None = "flower"
    ) -> None:
        """Crawls the stores on that day at noon; those with None are not crawled."""
        async with self.pool.connection() as conn:
            for month in range(3):
                at = market.START + timedelta(days=31 * month)
                await conn.execute("SELECT ensure_product_history_partition(%s)", [at])
            while len(self.ids) < len(menus):
                self.ids.append(await market.add_store(conn, f"store-{len(self.ids)}"))
            for store_id, menu in zip(self.ids, menus, strict=True):
                if menu is not None:
                    await market.crawl(conn, store_id, day * 24, self._items(menu, category), trusted=True)  # type: ignore[arg-type]

    def _items(self, menu: Mapping[str, float | str | None], category: str | None) -> list[bytes]:
        return [
            market.item(name, price=str(price or 1), qty=0 if price is None else 5, category_canon=category)
            for name, price in menu.items()
        ]


def _menu(factor: float = 1.0, **other: float | str | None) -> dict[str, float | str | None]:
    """Four items; two stores with it are enough for an index."""
    return {**{name: 10.0 * n * factor for n, name in enumerate("abcd", 1)}, **other}


def _indices(found: PriceIndex) -> list[float | None]:
    return [None if one.index is None else float(one.index) for one in found.items]


@pytest.mark.parametrize(("specials", "allowed", "part_allowed"), [(0.0, 0.2, 0.3), (0.1, 0.4, 1.0)])
async def test_the_true_index_is_found_under_churn_missing_crawls_and_faults(
    pool: Pool, specials: float, allowed: float, part_allowed: float
) -> None:
    """720 items at 12 stores for 60 days. Each week 5 % of items leave and dearer ones enter, 20 % of crawls are missing, items are
    out of stock for days, a store is silent for ten days, and one has prices in cents for two. With specials of a fifth off, those
    that no crawl saw are the larger error: no index can know them."""
    real = PriceMarket(1, specials=specials)
    silent = frozenset((3, day) for day in range(20, 30))
    await real.crawl(pool, Faults(silent=silent, factors={(5, 33): 100.0, (5, 34): 100.0}))
    assert await _compute(pool, real.days - 1) == real.days
    groups = [("all", "all"), ("CO", "all"), ("all", "flower"), ("AZ", "edible"), ("CO", "vaporizer")]
    for state, category in groups:

        def is_of(item: Item, state: str = state, category: str = category) -> bool:
            return state in ("all", item.state) and category in ("all", item.category)

        truth = real.true_index(is_of)
        found = await _whole(pool, real.days, state, category)
        assert found.base == day_of(0)
        errors = [float(one.index) - truth[n] for n, one in enumerate(found.items) if one.index is not None]
        assert len(errors) == real.days
        largest = max(map(abs, errors))
        if (state, category) == ("all", "all"):
            assert abs(errors[-1]) <= 0.2
            assert largest <= allowed
        assert largest <= part_allowed, (state, category)
        for n, one in enumerate(found.items):
            assert one.low is not None
            assert one.high is not None
            assert float(one.low) <= truth[n] <= float(one.high)
    assert sum(one.outliers for one in (await _whole(pool, real.days)).items) > 100


_FACTORS = st.lists(st.floats(0.75, 1.3), min_size=6, max_size=6)
"""Less than a factor of five in five days."""
_SOLD = st.lists(st.lists(st.booleans(), min_size=18, max_size=18), min_size=6, max_size=6)
_CRAWLED = st.lists(st.lists(st.sampled_from([True, True, False]), min_size=3, max_size=3), min_size=6, max_size=6)


@settings(
    max_examples=12, deadline=None, derandomize=True, phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(factors=_FACTORS, sold=_SOLD, crawled=_CRAWLED)
def test_a_common_factor_moves_the_index_by_that_factor_whatever_comes_and_goes(
    database_url: str, factors: list[float], sold: list[list[bool]], crawled: list[list[bool]]
) -> None:
    """Every price is multiplied by the factor of the day; which items are sold and which stores are crawled is of no effect."""

    async def run() -> PriceIndex:
        async with open_pool(database_url) as pool:
            async with pool.connection() as conn:
                await conn.execute("DELETE FROM dispensaries")
                await conn.execute("TRUNCATE price_index_days, price_index_stores, price_index_items")
            stores = _Stores(pool)
            for day in range(6):
                level = math.prod(factors[1 : day + 1])
                menus = [
                    {f"i{n}": 5.0 * (n + 1) * level for n in range(18) if n % 3 == store and (sold[day][n] or not day)}
                    if crawled[day][store] or not day
                    else None
                    for store in range(3)
                ]
                await stores.crawl(day, *menus)
            await _compute(pool, 5)
            return await _whole(pool, 6)

    found = asyncio.run(run())
    assert found.base in (day_of(0), None)
    for day, one in enumerate(found.items):
        if one.index is not None:
            assert float(one.index) == pytest.approx(100 * math.prod(factors[1 : day + 1]), rel=1e-6)


async def test_what_enters_and_leaves_has_no_effect(pool: Pool) -> None:
    stores = _Stores(pool)
    await stores.crawl(0, _menu(), _menu())
    await stores.crawl(1, _menu(new=1000.0), _menu())
    await stores.crawl(2, _menu(new=1000.0), {"a": 10.0, "b": 20.0})
    await stores.crawl(3, _menu(new=1000.0), {"a": 10.0, "b": 20.0, "c": 30.0, "d": 40.0})
    assert await _compute(pool, 3) == 4
    found = await _whole(pool, 4)
    assert _indices(found) == [100, 100, 100, 100]
    counts = [(one.matched, one.entered, one.carried) for one in found.items]
    assert counts == [(0, 8, 0), (8, 1, 0), (7, 0, 2), (9, 0, 0)]


async def test_an_item_that_returns_brings_its_whole_change(pool: Pool) -> None:
    """Out of stock, off the menu and of a store that is not crawled alike: the level is then that of all items' own changes."""
    stores = _Stores(pool)
    await stores.crawl(0, _menu(), _menu())
    await stores.crawl(1, _menu(1.1, a=None), None)
    await stores.crawl(2, {"b": 24.2, "c": 36.3, "d": 48.4}, None)
    await stores.crawl(3, _menu(1.21), _menu(1.0))
    await _compute(pool, 3)
    found = await _whole(pool, 4)
    # Three items of one store are too few for an index; what the days add is repaired by the last one.
    assert [one.reason for one in found.items] == [None, "too_few_observed", "too_few_observed", None]
    assert found.items[3].index is not None
    assert float(found.items[3].index) == pytest.approx(100 * math.sqrt(1.21), abs=1e-4)
    assert [one.change for one in found.items[:3]] == [None, None, None]


async def test_after_28_days_an_item_enters_as_new(pool: Pool) -> None:
    stores = _Stores(pool)
    for day in range(31):
        # x is missed for 28 days, y for 29.
        other = {"x": 50.0, "y": 50.0} if day == 0 else {"x": 100.0} if day == 28 else {"y": 100.0} if day == 29 else {}
        await stores.crawl(day, _menu(**other), _menu())
    await _compute(pool, 30)
    found = await _whole(pool, 31)
    indices = _indices(found)
    assert indices[27] == 100
    assert indices[28] == indices[30] == pytest.approx(100 * 2 ** (1 / 9), abs=1e-4)
    assert [(one.entered, one.expired) for one in found.items[27:30]] == [(0, 0), (0, 0), (1, 0)]


async def test_a_price_beyond_the_factor_is_not_taken_and_its_correction_counts(pool: Pool) -> None:
    """A store in cents for two days, an item that costs more than five times as much for one, and one that stays so dear."""
    stores = _Stores(pool)
    await stores.crawl(0, _menu(), _menu(x=7.0, y=7.0))
    await stores.crawl(1, _menu(100), _menu(1.1, x=7.0, y=70.0))
    await stores.crawl(2, _menu(100), _menu(1.1, x=36.0, y=70.0))
    await stores.crawl(3, _menu(1.1), _menu(1.1, x=7.7, y=70.0))
    for day in range(4, 31):
        await stores.crawl(day, _menu(1.1), _menu(1.1, x=7.7, y=70.0))
    await _compute(pool, 30)
    found = await _whole(pool, 31)
    assert [one.outliers for one in found.items[:5]] == [0, 5, 6, 1, 1]
    assert [one.matched for one in found.items[:5]] == [0, 5, 4, 9, 9]
    assert [one.carried for one in found.items[:5]] == [0, 5, 6, 1, 1]
    assert _indices(found)[1:3] == [None, None]
    assert _indices(found)[3] == pytest.approx(110, abs=1e-3)
    assert [(one.outliers, one.entered) for one in found.items[28:]] == [(1, 0), (0, 1), (0, 0)]
    assert _indices(found)[30] == _indices(found)[3]


async def test_a_price_of_nothing_is_none(pool: Pool) -> None:
    stores = _Stores(pool)
    await stores.crawl(0, _menu(x="0"), _menu())
    await stores.crawl(1, _menu(x="5", a="0"), _menu())
    await _compute(pool, 1)
    found = await _whole(pool, 2)
    assert [(one.matched, one.entered, one.carried) for one in found.items] == [(0, 8, 0), (7, 1, 1)]
    assert _indices(found) == [100, 100]


async def test_a_menu_that_is_applied_late_counts_on_the_next_day(pool: Pool) -> None:
    stores = _Stores(pool)
    await stores.crawl(0, _menu(), _menu())
    await stores.crawl(1, _menu(), None)
    await _compute(pool, 1)
    before = await _whole(pool, 2)
    await stores.crawl(1, None, _menu(1.2))
    assert await _compute(pool, 1) == 0
    assert await _whole(pool, 2) == before
    await stores.crawl(2, _menu(), None)
    assert await _compute(pool, 2) == 1
    last = (await _whole(pool, 3)).items[2]
    assert (last.matched, last.stores) == (8, 2)
    assert float(last.index or 0) == pytest.approx(100 * math.sqrt(1.2), abs=1e-4)


async def test_a_day_is_computed_hours_after_its_end_and_so_many_at_once(pool: Pool) -> None:
    stores = _Stores(pool)
    for day in range(5):
        await stores.crawl(day, _menu(), _menu())
    async with pool.connection() as conn:
        early = _computable(2) - timedelta(seconds=1)
        assert await price_index.compute(conn, early) == 2
        assert await price_index.compute(conn, _computable(4), most=2) == 2
        assert await price_index.compute(conn, _computable(4), most=2) == 1
        assert await price_index.compute(conn, _computable(4)) == 0


async def test_computing_again_gives_the_same_rows(pool: Pool) -> None:
    """Once day by day, as crawls come in, and once all days at the end."""
    real = PriceMarket(2, stores=4, items=20, days=12, specials=0.1)
    await real.crawl(pool, Faults())
    query = (
        "SELECT state, category, day, stores, known_stores, matched, carried, entered, expired, outliers,"
        " round(change::numeric, 12), round(level::numeric, 12) FROM price_index_days ORDER BY 1, 2, 3"
    )
    rows = []
    for pace in (1, real.days):
        for day in range(pace - 1, real.days, pace):
            assert await _compute(pool, day) == pace
        async with pool.connection() as conn:
            rows.append(await (await conn.execute(query)).fetchall())
            await conn.execute("TRUNCATE price_index_days, price_index_stores, price_index_items")
    assert rows[0] == rows[1]
    assert len({row[:2] for row in rows[0]}) == 3 * 4


async def test_a_chain_that_breaks_begins_again_behind(pool: Pool) -> None:
    """Nothing is crawled for longer than a price is kept: what was before cannot be compared with what is after."""
    stores = _Stores(pool)
    await stores.crawl(0, _menu(), _menu())
    await stores.crawl(1, _menu(1.5), _menu(1.5))
    await stores.crawl(33, _menu(2), _menu(2))
    await stores.crawl(34, _menu(2.2), _menu(2.2))
    await _compute(pool, 34)
    found = await _whole(pool, 35)
    assert found.base == day_of(33)
    assert [one.reason for one in found.items[:2]] == ["too_few_items", "before_base"]
    assert {one.reason for one in found.items[2:30]} == {"too_few_observed"}
    assert {one.reason for one in found.items[30:33]} == {"too_few_items"}
    assert _indices(found)[33:] == [100, pytest.approx(110)]
    earlier = await _read(pool, first=day_of(0), last=day_of(20))
    assert earlier.base == day_of(0)
    assert _indices(earlier)[:2] == [100, pytest.approx(150)]


async def test_no_index_of_too_few(pool: Pool) -> None:
    """Four items of two stores, and eight of one."""
    stores = _Stores(pool)
    for day in range(3):
        await stores.crawl(day, {"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 2.0}, category="edible")
    await _compute(pool, 2)
    found = await _whole(pool, 3, category="edible")
    assert (found.base, _indices(found)) == (None, [None, None, None])
    assert "at least 5 of 2 stores" in str(found.notice)
    assert [one.matched for one in found.items] == [0, 4, 4]
    nothing = await _whole(pool, 3, "WY")
    assert (nothing.base, len(nothing.items), {one.reason for one in nothing.items}) == (None, 3, {"too_few_items"})


async def test_months_that_were_packed_are_left_out(pool: Pool) -> None:
    """Without the partition of March the index begins in April."""
    stores = _Stores(pool)
    for day in (0, 1, 40):
        await stores.crawl(day, _menu(), _menu())
    async with pool.connection() as conn:
        await conn.execute("DROP TABLE product_history_2026_03")
    await _compute(pool, 40)
    assert (await _read(pool)).first_day == date(2026, 4, 1)
    before = await _read(pool, first=date(2026, 3, 1), last=date(2026, 3, 31))
    assert before.items == []
    assert str(before.notice).startswith(
        "No day in this period is computed. Days are kept since 2026-04-01, up to 2026-04-"
    )


async def test_specials_count_and_medical_prices_only_alone(shop: Shop) -> None:
    def menu(special: float, medical: float) -> list[dict[str, Any]]:
        plain = [dutchie_item(f"p{n}", options=[("1g", 10, 5)]) for n in range(3)]
        return [
            *plain,
            dutchie_item("special", options=[("1g", 10, 5), ("2g", 20, 5)], special=[special, 20], medicalPrices=[medical, 5]),
            dutchie_item("medical", options=[("1g", 10, 5)], recPrices=[], medicalPrices=[medical]),
        ]  # fmt: skip

    ids = [await shop.store(name, state="CO") for name in ("one", "two")]
    for day, (special, medical) in enumerate([(10, 10), (8, 30)]):
        for store in ids:
            await shop.crawl(store, day * 24, menu(special, medical))
    await _compute(shop.pool, 1)
    found = await _whole(shop.pool, 2, "CO", "flower")
    assert (found.items[1].matched, found.items[1].stores) == (12, 2)
    assert float(found.items[1].index or 0) == pytest.approx(100 * (0.8 * 3) ** (1 / 6), abs=1e-4)


# fmt: off
BAD = [
    ("from=yesterday", "from", "is not a valid date: write it as 2026-11-20"),
    ("state=ZZ", "state", "unknown state 'ZZ'"),
    ("category=weed", "category", "flower"),
    ("colour=red", "colour", "unknown; the parameters are"),
]
# fmt: on


@pytest.mark.parametrize(("query", "parameter", "message"), BAD)
async def test_what_cannot_be_asked(shop: Shop, query: str, parameter: str, message: str) -> None:
    problem = await shop.refused(f"/api/analytics/price-index?{query}", 422)
    (error,) = problem["errors"]
    assert error["parameter"].split(".")[0] == parameter
    assert message in error["detail"]


async def test_a_span_that_cannot_be_asked(shop: Shop) -> None:
    for query, message in (
        ("from=2026-03-05&to=2026-03-01", "must not be later than `to`"),
        ("from=2020-03-05&to=2026-03-01", "more than 1100 days"),
    ):
        problem = await shop.refused(f"/api/analytics/price-index?{query}", 400)
        assert message in problem["detail"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from", "2026-03-05", "--to", "2026-03-01"), "must not be later than `to`"),
        (("--from", "soon"), "--from 'soon' is not a date: write it as 2026-11-20"),
        (("--days", "3", "--from", "2026-03-05"), "--days and --from are mutually exclusive"),
        (("--state", "ZZ"), "unknown state 'ZZ'"),
        (("--category", "weed"), "unknown --category 'weed'; use one of: accessory"),
    ],
)
def test_what_the_command_refuses(
    database_url: str, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    assert message in str(run_here(["analytics", "price-index", *words]).exception)


async def test_the_api_and_the_command_agree(shop: Shop, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)

    async def command(*words: str) -> Any:
        arguments = ["analytics", "price-index", *words]
        return await asyncio.to_thread(lambda: run_here(arguments))

    empty = await shop.ask("/api/analytics/price-index")
    assert (empty["items"], empty["base"]) == ([], None)
    assert empty["notice"] == "No day is computed: no store was crawled yet."
    assert "No day is computed: no store was crawled yet." in (await command()).stderr

    stores = _Stores(shop.pool)
    for day in range(5):
        await stores.crawl(day, _menu(1 + day / 100), _menu(1 + day / 50))
    made = await refresh(shop.pool, now=_computable(4))
    assert [step.rows for step in made.steps if step.step == "price_index"] == [5]  # type: ignore[union-attr]

    span = {"from": str(day_of(1)), "to": str(day_of(3))}
    asked = await shop.ask("/api/analytics/price-index", params={"category": "flower", **span})
    printed = await command("--category", "Flower", "--from", span["from"], "--to", span["to"], "--json")
    assert json.loads(printed.stdout) == asked
    assert asked["items"][0]["index"] == 100
    assert asked["items"][2]["index"] == pytest.approx(100 * math.sqrt(1.03 * 1.06 / 1.01 / 1.02), abs=1e-4)
    assert asked["items"][2]["low"] < asked["items"][2]["index"] < asked["items"][2]["high"]
    rows = list(csv.DictReader(io.StringIO((await command("--days", "2", "--csv")).stdout)))
    assert [(row["day"], row["matched"]) for row in rows] == [(str(day_of(n)), "8") for n in (3, 4)]
    table = await command()
    assert table.stdout.splitlines()[0].split()[:5] == ["Day", "Index", "Low", "High", "Change"]
    assert f"The index is 100 on {day_of(0)}" in table.stderr


async def test_a_store_that_is_removed_takes_its_items_along(pool: Pool) -> None:
    stores = _Stores(pool)
    await stores.crawl(0, _menu(), _menu(), _menu())
    await _compute(pool, 0)
    async with pool.connection() as conn:
        await conn.execute("DELETE FROM dispensaries WHERE id = %s", [stores.ids[2]])
    await _compute(pool, 1)
    async with pool.connection() as conn:
        counts = await (await conn.execute("SELECT count(*) FROM price_index_items")).fetchone()
    assert counts == (8,)


async def test_a_span_that_is_none(pool: Pool) -> None:
    with pytest.raises(InvalidField):
        await _read(pool, first=day_of(1), last=day_of(0))


def test_every_field_of_a_day_is_described() -> None:
    schema = msgspec.json.schema(PriceIndexDay)["$defs"]["PriceIndexDay"]["properties"]
    assert [name for name, one in schema.items() if name != "day" and "description" not in one] == []
