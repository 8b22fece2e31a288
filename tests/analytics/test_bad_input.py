"""What cannot be asked is refused, with the name of the value and what is allowed."""

from __future__ import annotations

import pytest

from tests.api.shop import Shop

# fmt: off
BAD = [
    ("price-per-gram?state=ZZ", "state", "unknown state 'ZZ': use two letters such as AZ or ON"),
    ("price-per-gram?state=Arizona", "state", "or `all` for all states together, or `unknown`"),
    ("price-per-gram?state=", "state", "two letters"),
    ("price-per-gram?state=N%00", "state", "NUL"),
    ("price-per-gram?category=weed", "category", "flower, preroll, vaporizer"),
    ("price-per-gram?category=all", "category", "flower"),
    ("price-per-gram?colour=red", "colour", "unknown; the parameters are"),
    ("price-per-gram?limit=0", "limit", "at least 1"),
    ("brands?limit=201", "limit", "at most 200"),
    ("categories?category=weed", "category", "flower"),
    ("categories?brand=x", "brand", "unknown; the parameters are"),
    ("brands?category=flower", "category", "unknown; the parameters are"),
    ("discounts?category=sale", "category", "all"),
    ("out-of-stock?by=brand", "by", "all, category, state, state_category, store, store_category"),
    ("out-of-stock?state=all", "state", "two letters"),
    ("out-of-stock?store=0", "store", "at least 1"),
    ("out-of-stock/products?product=x", "product", "whole number"),
    ("new-and-gone?by=week", "by", "all, state, store"),
    ("new-and-gone?since=yesterday", "since", "is not a valid date: write it as 2026-11-20"),
    ("stores?stale=perhaps", "stale", "true or false"),
    ("coverage?state=XX", "state", "unknown state 'XX'"),
    ("coverage?limit=3", "limit", "unknown; the parameters are"),
]
# fmt: on


@pytest.mark.parametrize(("path", "parameter", "said"), BAD)
async def test_what_cannot_be_asked(shop: Shop, path: str, parameter: str, said: str) -> None:
    problem = await shop.refused(f"/api/analytics/{path}", 422)
    (error,) = problem["errors"]
    assert error["parameter"].split(".")[0] == parameter
    assert said in error["detail"]


async def test_cursors_belong_to_their_list(shop: Shop) -> None:
    for path in ("analytics/brands", "analytics/stores", "analytics/new-and-gone", "changes/feed"):
        problem = await shop.refused(f"/api/{path}?cursor=nonsense", 400)
        assert problem["type"] == "/problems/bad-cursor"
    cursor = (await shop.ask("/api/changes/feed"))["next"]
    assert "another list" in (await shop.refused(f"/api/changes/feed?kind=price&cursor={cursor}", 400))["detail"]
