"""The ten jobs of an analyst: one call each, with freshness, coverage and limits in every answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from menuwatch.db.pool import Pool
from menuwatch.mcp.answer import MAX_CHARACTERS
from tests.mcp.clients import LEGACY, Asking, Failed, context, endpoint, over_http
from tests.mcp.proof import Market
from tests.users_fixture import bearer

JOBS: dict[str, tuple[str, dict[str, Any]]] = {
    "price per gram by category and state": ("list_price_per_gram", {}),
    "top brands by distribution": ("list_brands_by_distribution", {}),
    "discount depth over time": ("list_discount_depth", {"state": "NM"}),
    "what went out of stock last week": ("list_stock_outs", {}),
    "one product's history": ("get_price_history", {"product_id": 1}),
    "all changes since yesterday": ("list_changes", {"since": "2d"}),
    "the index of a state": ("get_price_index", {"state": "NM"}),
    "the cheapest basket": ("find_cheapest_basket", {"items": ["flower:3.5 g", "preroll:1 g"], "near": "Santa Fe, NM"}),
    "coverage of a state": ("get_coverage", {"state": "NM"}),
    "price dispersion of a product": ("list_price_dispersion", {"state": "NM"}),
}


async def test_ten_jobs_take_one_call_each(simulated_market: Market) -> None:
    headers = await bearer(simulated_market.pool, role="viewer", scopes=["read"])
    async with (
        endpoint(context(simulated_market.pool, simulated_market.folder)) as port,
        over_http(port, headers) as asking,
    ):
        for job, (tool, arguments) in JOBS.items():
            answer = await asking(tool, **arguments)
            assert answer["items"] if "items" in answer else answer["basket"]["any_stores"], job
            freshness, coverage, limits = (answer[name] for name in ("freshness", "coverage", "limits"))
            assert freshness["oldest_observed_at"] <= freshness["newest_observed_at"], job
            assert 0 < coverage["stores"] <= coverage["known_stores"], job
            assert limits["max_characters"] == MAX_CHARACTERS, job
            assert limits["is_cut"] == (limits["next"] is not None) == (limits["how_to_get_more"] is not None), job
        assert asking.calls == len(JOBS)


async def test_answers_are_cut_by_rows_and_by_characters(simulated_market: Market) -> None:
    headers = await bearer(simulated_market.pool, role="viewer", scopes=["read"])
    async with (
        endpoint(context(simulated_market.pool, simulated_market.folder)) as port,
        over_http(port, headers, mode=LEGACY) as asking,
    ):
        await _cut_by_rows(asking)
        whole = await asking("list_changes", since="30d", limit=200)
        limits = whole["limits"]
        assert (limits["is_cut"], limits["cut_by"]) == (True, "characters")
        assert 0 < limits["rows"] < limits["max_rows"] == 200
        one_by_one = await asking.all("list_changes", since="30d", limit=7)
        at_once = await asking.all("list_changes", since="30d")
        assert one_by_one == at_once
        assert len(one_by_one) > limits["rows"]


async def _cut_by_rows(asking: Asking) -> None:
    first = await asking("search_products", limit=2)
    assert (first["limits"]["rows"], first["limits"]["is_cut"], first["limits"]["cut_by"]) == (2, True, "rows")
    second = await asking("search_products", limit=2, cursor=first["limits"]["next"])
    ids = [row["id"] for row in first["items"] + second["items"]]
    assert ids == [row["id"] for row in (await asking("search_products", limit=4))["items"]]


async def test_answers_say_why_there_is_nothing(pool: Pool, tmp_path: Path) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO dispensaries (platform_dispensary_id, slug, name, name_raw, state, last_crawled_at, first_crawled_at)"
            " VALUES ('a', 'a', 'A', 'A', 'NM', now(), now())"
        )
        await conn.execute(
            "INSERT INTO store_crawls (dispensary_id, crawled_at, products, new_products, changed, unchanged, returned, missing,"
            " out_of_stock, price_changes, stock_changes) SELECT id, last_crawled_at, 1, 1, 0, 0, 0, 0, 0, 0, 0 FROM dispensaries"
        )
    async with endpoint(context(pool, tmp_path)) as port, over_http(port, await bearer(pool)) as asking:
        for tool in ("list_changes", "list_stock_outs"):
            assert (await asking(tool))["notice"] == "No changes yet: a store must be crawled twice first."
        assert (await asking("list_changes", state="TX"))["notice"] == "No known stores: Texas."
        assert (await asking("search_stores", state="TX"))["notice"] == "No known stores: Texas."
        unknown = await asking("get_price_index", state="unknown")
        assert unknown["coverage"] == {
            "scope": "stores without a known state", "stores": 0, "partial": 0, "known_stores": 0,
        }  # fmt: skip
        assert unknown["freshness"]["newest_observed_at"] is None
        near = await asking("list_offers_near", near="35.08,-106.65")
        assert near["notice"].startswith("None of the 1 stores with a menu has a position: `menuwatch stores place")
        assert "The first crawl was on" in (await asking("get_price_index", state="NM"))["notice"]


async def test_a_period_that_starts_in_the_future_is_refused(pool: Pool, tmp_path: Path) -> None:
    async with endpoint(context(pool, tmp_path)) as port, over_http(port, await bearer(pool)) as asking:
        for tool, argument, others in (
            ("list_changes", "since", {}),
            ("list_stock_outs", "since", {}),
            ("get_price_history", "since", {"product_id": 1}),
            ("get_price_index", "since", {}),
            ("list_discount_depth", "since", {}),
            ("search_products", "new_since", {}),
        ):
            said = f"{argument}: the time '2999-01-01T10:00' is in the future: give a time no later than now, 20"
            with pytest.raises(Failed) as refused:
                await asking(tool, **{argument: "2999-01-01T10:00"}, **others)
            assert said in str(refused.value), tool
        # The end of a period may be later.
        assert (await asking("list_changes", until="2999-01-01"))["items"] == []
