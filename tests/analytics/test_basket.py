"""The cheapest basket, against sums that are done by hand and against all pairs of stores."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import random
import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from menuwatch.analytics.basket import cheapest_pair, parse_item
from menuwatch.core.errors import InvalidField
from tests.api.shop import Shop, item
from tests.commands import run_here
from tests.matching_rows import add_brand, add_location, add_product, listing, match

NEAR = {"near": "35.0,-106.0", "miles": 30}
EIGHTH, GRAM = "1/8oz", "1g"


async def fill(shop: Shop, menus: dict[str, dict[str, list[tuple[str, float | str, int]]]]) -> dict[str, int]:
    """Stores with these menus, each a mile north of the one before; products by name. Returns all ids by name."""
    ids: dict[str, int] = {}
    for n, (name, goods) in enumerate(menus.items()):
        ids[name] = await shop.store(name, state="NM", latitude=35.0 + n / 69, longitude=-106.0)
        await shop.crawl(ids[name], 1 + n / 10, [item(key, key, options=options) for key, options in goods.items()])
    async with shop.pool.connection() as conn:
        # The menus are of another year, and stay fresh.
        await conn.execute("UPDATE dispensaries SET crawl_interval_hours = 99999")
        brand = await add_brand(conn, "Acme")
        for key in dict.fromkeys(key for goods in menus.values() for key in goods):
            ids[key] = await add_product(conn, key, brand)
            listings = [await listing(conn, ids[store], key) for store, goods in menus.items() if key in goods]
            await match(conn, ids[key], *listings)
    return ids


async def find(shop: Shop, *items: str, **more: Any) -> Any:
    return await shop.ask("/api/analytics/cheapest-basket", params={"item": items, **NEAR, **more})


@pytest.fixture
async def ids(shop: Shop) -> dict[str, int]:
    """Three products at three stores: `far` has everything and is dear, `near` and `mid` lack something."""
    return await fill(
        shop,
        {
            "near": {"Kush": [(EIGHTH, 30, 5), (GRAM, 10, 5)], "Haze": [(EIGHTH, 50, 5)]},
            "mid": {"Haze": [(EIGHTH, 20, 5)], "Skunk": [(EIGHTH, 25, 5)]},
            "far": {"Kush": [(EIGHTH, 35, 5)], "Haze": [(EIGHTH, 40, 5)], "Skunk": [(EIGHTH, 45, 5)]},
            "sold-out": {"Skunk": [(EIGHTH, 1, 0)]},
        },
    )


async def test_one_two_and_any_stores(shop: Shop, ids: dict[str, int]) -> None:
    kush, haze, skunk = (f"{ids[name]}:3.5 g" for name in ("Kush", "Haze", "Skunk"))
    found = await find(shop, f"{kush}*2", haze, skunk)
    # far: 2 x 35 + 40 + 45 = 155, the only one with all. near and mid: 2 x 30 + 20 + 25 = 105.
    assert (found["one_store"]["cost"], [stop["store"] for stop in found["one_store"]["stops"]]) == (155, ["Far"])
    for name in ("two_stores", "any_stores"):
        basket = found[name]
        assert (basket["cost"], basket["missing"]) == (105, [])
        assert [
            (stop["store"], stop["cost"], [line["item"] for line in stop["lines"]]) for stop in basket["stops"]
        ] == [
            ("Near", 60, [f"{kush}*2"]),
            ("Mid", 45, [haze, skunk]),
        ]
    (line,) = found["two_stores"]["stops"][0]["lines"]
    assert (line["price"], line["quantity"], line["cost"], line["size"]) == (30, 2, 60, "3.5 g")
    assert line["crawled_at"] == "2026-03-01T13:00:00Z"
    assert [(one["store"], one["items"], one["cost"], one["missing"]) for one in found["stores"]] == [
        ("Far", 3, 155, []),
        ("Mid", 2, 45, [f"{kush}*2"]),
        ("Near", 2, 110, [skunk]),
    ]
    assert [(one["name"], one["stores"], one["lowest"]) for one in found["items"]] == [
        ("Kush", 2, 30), ("Haze", 3, 20), ("Skunk", 2, 25),
    ]  # fmt: skip
    assert (found["compared_stores"], found["currency"], found["notice"]) == (4, "USD", None)


async def test_nobody_has_all(shop: Shop, ids: dict[str, int]) -> None:
    gram, skunk = f"{ids['Kush']}:1g", f"{ids['Skunk']}:3.5g"
    found = await find(shop, gram, skunk, f"{ids['Haze']}:1 g")
    assert found["one_store"] is None
    assert (found["two_stores"]["cost"], found["two_stores"]["missing"]) == (35, [f"{ids['Haze']}:1 g"])
    assert found["items"][2]["stores"] == 0
    assert found["items"][2]["lowest"] is None
    nothing = await find(shop, f"{ids['Haze']}:1 g")
    assert (nothing["two_stores"], nothing["notice"]) == (
        None,
        "No store in this circle offers any of these items now.",
    )
    nowhere = await find(shop, gram, near="10,10")
    assert (nowhere["any_stores"], nowhere["currency"]) == (None, None)
    assert "No store with a position" in nowhere["notice"]


async def test_all_prices_are_in_one_currency(shop: Shop, ids: dict[str, int]) -> None:
    await shop.execute("UPDATE dispensaries SET state = 'ON' WHERE id = %s", [ids["near"]])
    items = (f"{ids['Kush']}:3.5 g", f"{ids['Haze']}:3.5 g")
    names = ("currency", "compared_stores", "stale_stores", "other_currency_stores")
    # The nearest store, in Ontario: 30 + 50. Three menus are in US dollars.
    found = await find(shop, *items)
    assert [found[name] for name in names] == ["CAD", 1, 0, 3]
    assert found["one_store"]["cost"] == 80
    # Its menu is stale: those of New Mexico count, 35 + 40 at one store.
    await shop.execute("UPDATE dispensaries SET crawl_interval_hours = 1 WHERE id = %s", [ids["near"]])
    found = await find(shop, *items)
    assert [found[name] for name in names] == ["USD", 3, 1, 0]
    assert found["one_store"]["cost"] == 75


async def test_a_category_takes_any_product_of_the_size(shop: Shop, ids: dict[str, int]) -> None:
    found = await find(shop, "flower:3.5 g", "Flower:1 g")
    lines = [line for stop in found["any_stores"]["stops"] for line in stop["lines"]]
    assert [(line["name"], line["price"]) for line in lines] == [("Kush", 10), ("Haze", 20)]
    assert lines[0]["canonical_product_id"] == ids["Kush"]
    assert found["items"][0]["canonical_product_id"] is None


async def test_stale_menus_and_slips_are_left_out_and_counted(shop: Shop) -> None:
    menus: Any = {f"s{n}": {"Kush": [(EIGHTH, price, 5)]} for n, price in enumerate((30, 31, 32, 6.01, 4))}
    ids = await fill(shop, menus)
    async with shop.pool.connection() as conn:
        await conn.execute("UPDATE dispensaries SET crawl_interval_hours = 1 WHERE id = %s", [ids["s0"]])
    # Of 31, 32, 6.01 and 4 the median is 18.505, a fifth of which is 3.70: nothing is a slip. With s0 it is 30, a fifth 6.
    found = await find(shop, str(ids["Kush"]))
    assert (found["stale_stores"], found["any_stores"]["cost"], found["items"][0]["implausible"]) == (1, 4, 0)
    async with shop.pool.connection() as conn:
        await conn.execute("UPDATE dispensaries SET crawl_interval_hours = 99999")
    found = await find(shop, str(ids["Kush"]))
    assert (found["stale_stores"], found["any_stores"]["cost"], found["items"][0]["implausible"]) == (0, 6.01, 1)


async def test_a_shop_on_two_platforms_is_one_place(shop: Shop) -> None:
    ids = await fill(shop, {"old": {"Kush": [(EIGHTH, 20, 5)]}, "new": {"Kush": [(EIGHTH, 25, 5)]}})
    async with shop.pool.connection() as conn:
        await add_location(conn, "One", ids["old"], ids["new"], state="NM")
        merged = await add_product(conn, "Gone", merged_into=ids["Kush"])
    found = await find(shop, str(merged))
    assert (found["compared_stores"], found["one_store"]["cost"]) == (1, 25)
    assert found["items"][0]["canonical_product_id"] == ids["Kush"]


async def test_prices_for_patients_only_on_request(shop: Shop) -> None:
    ids = await fill(shop, {"one": {"Kush": [(EIGHTH, 40, 5)]}})
    more = item("p", "Kush", options=[(EIGHTH, 40, 5)], recPrices=[], medicalPrices=[25])
    await shop.crawl(ids["one"], 2, [item("Kush", "Kush", options=[(EIGHTH, 40, 5)]), more])
    async with shop.pool.connection() as conn:
        await match(conn, ids["Kush"], await listing(conn, ids["one"], "p"))
    assert (await find(shop, str(ids["Kush"])))["one_store"]["cost"] == 40
    found = await find(shop, str(ids["Kush"]), medical=True)
    assert found["one_store"]["cost"] == 25
    assert found["one_store"]["stops"][0]["lines"][0]["medical"]


@pytest.mark.parametrize(
    ("items", "said"),
    [
        (["999999"], "canonical product 999999 does not exist"),
        (["weed:3.5 g"], "'weed' is neither the id of a canonical product nor one of accessory"),
        (["flower"], "needs a size, such as flower:3.5 g"),
        (["flower:3.5 g*0"], "the quantity must be from 1 to 100"),
        (["flower:3.5 g", "flower:1/8oz"], "is in the basket twice"),
        (["::"], "is not an item: write PRODUCT:SIZE"),
    ],
)
async def test_what_is_refused(shop: Shop, items: list[str], said: str) -> None:
    problem = await shop.refused("/api/analytics/cheapest-basket", 400, params={"item": items, **NEAR})
    assert said in json.dumps(problem)


async def test_a_product_in_several_sizes_needs_one(shop: Shop, ids: dict[str, int]) -> None:
    params = {"item": [str(ids["Kush"])], **NEAR}
    problem = await shop.refused("/api/analytics/cheapest-basket", 400, params=params)
    assert "needs a size, one of: 1 g, 3.5 g" in json.dumps(problem)
    problem = await shop.refused("/api/analytics/cheapest-basket", 422, params={**params, "near": "91,0"})
    assert "unknown place '91,0': give a city with its state" in json.dumps(problem)


def test_items_are_read_as_they_are_written() -> None:
    want = parse_item(" 12 : 100MG * 3 ")
    assert (want.product, want.size, want.quantity) == (12, "100 mg", 3)
    assert parse_item("12:each").size == ""
    with pytest.raises(InvalidField):
        parse_item("12:")


def test_the_best_pair_is_that_of_all_pairs() -> None:
    rng = random.Random(7)
    for _ in range(300):
        rows = [[rng.choice((rng.randint(1, 50), 10**6)) for _ in range(4)] for _ in range(rng.randint(1, 9))]

        def cost(some: Sequence[int], rows: Sequence[Sequence[int]] = rows) -> int:
            return sum(min(rows[n][column] for n in some) for column in range(4))

        best = min(cost(pair) for size in (1, 2) for pair in combinations(range(len(rows)), min(size, len(rows))))
        assert cost(cheapest_pair(rows)) == best


async def test_the_screen_and_the_file(
    shop: Shop, ids: dict[str, int], database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("MENUWATCH_HOME", str(tmp_path))
    words = [f"{ids['Kush']}:3.5 g*2", f"{ids['Haze']}:3.5 g", f"{ids['Skunk']}:3.5 g"]
    command = ["analytics", "cheapest-basket", *words, "--near", NEAR["near"]]

    def run(*more: str) -> Any:
        return run_here([*map(str, command), *more])

    shown = await asyncio.to_thread(run)
    assert "At one store: $155.00" in shown.stdout
    assert "At two stores at most: $105.00" in shown.stdout
    assert "Compared: 4 stores." in shown.stderr
    as_csv = await asyncio.to_thread(run, "--csv")
    rows = list(csv.DictReader(io.StringIO(as_csv.stdout)))
    assert [(row["basket"], row["store"], row["cost"], row["currency"]) for row in rows][:3] == [
        ("one_store", "Far", "70", "USD"), ("one_store", "Far", "40", "USD"), ("one_store", "Far", "45", "USD"),
    ]  # fmt: skip
    amounts = [re.findall(r"\S*\$\S+", line) for line in shown.stdout.splitlines() if line.startswith("Far")]
    # Price and cost of each item at the one store.
    assert amounts == [["$35.00", "$70.00"], ["$40.00", "$40.00"], ["$45.00", "$45.00"]]
    as_json = json.loads((await asyncio.to_thread(run, "--json")).stdout)
    assert as_json == await find(shop, *words, miles=25)
    refused = await asyncio.to_thread(lambda: run_here(["analytics", "cheapest-basket", "1", "--near", "here"]))
    assert "--near: unknown place 'here': give a city with its state" in str(refused.exception)
