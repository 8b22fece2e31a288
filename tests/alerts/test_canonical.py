"""Rules about a canonical product: anywhere, in a state, or within miles of a place."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from psycopg import AsyncConnection

from menuwatch.alerts import service as alerts
from menuwatch.alerts.validate import AlertSettings
from menuwatch.core.encryption import SecretBox
from menuwatch.core.errors import InvalidField, InvalidFields
from menuwatch.db.pool import Pool
from tests.alerts.rule_factory import add_rule, rows
from tests.alerts.test_evaluate import NOW, crawl
from tests.market import add_store, item
from tests.matching_rows import add_product, listing, match

# Albuquerque, Santa Fe (55 miles away as the crow flies) and Phoenix.
PLACES = {"abq": ("NM", 35.0844, -106.6504), "fe": ("NM", 35.6870, -105.9378), "phx": ("AZ", 33.4484, -112.0740)}


async def _stores(conn: AsyncConnection[Any]) -> dict[str, int]:
    stores = {}
    for name, (state, latitude, longitude) in PLACES.items():
        stores[name] = await add_store(conn, name)
        await conn.execute(
            "UPDATE dispensaries SET state = %s, latitude = %s, longitude = %s WHERE id = %s",
            [state, latitude, longitude, stores[name]],
        )
    stores["nowhere"] = await add_store(conn, "nowhere")
    return stores


async def _fired(conn: AsyncConnection[Any]) -> set[tuple[str, str]]:
    query = (
        "SELECT r.name, d.name AS store FROM alert_events e JOIN alert_rules r ON r.id = e.rule_id "
        "JOIN dispensaries d ON d.id = e.dispensary_id"
    )
    found = [(row["name"], row["store"]) for row in await rows(conn, query)]
    assert len(found) == len(set(found))
    return set(found)


async def test_rules_about_a_canonical_product_find_its_listings_anywhere_and_near(pool: Pool) -> None:
    async with pool.connection() as conn:
        stores = await _stores(conn)
        dream, other = await add_product(conn, "Blue Dream"), await add_product(conn, "Haze")
        old = await add_product(conn, "Blu Dream", merged_into=dream)
        for store in stores.values():
            await crawl(
                conn, store, 0, item("a", price="30"), item("b", price="30"), item("c", price="30", name="Rare")
            )
        await match(conn, dream, *[await listing(conn, store, "a") for store in stores.values()])
        await match(conn, other, *[await listing(conn, store, "b") for store in stores.values()])
        near = {"latitude": 35.0844, "longitude": -106.6504}
        scopes: dict[str, dict[str, Any]] = {
            "anywhere": {"canonical_product_id": dream},
            "merged": {"canonical_product_id": old},
            "state": {"canonical_product_id": dream, "state": "NM"},
            "54": {"canonical_product_id": dream, **near, "miles": 54},
            "60": {"canonical_product_id": dream, **near, "miles": 60},
            "haze": {"canonical_product_id": other, "dispensary_id": stores["abq"]},
        }
        for name, scope in scopes.items():
            await add_rule(conn, name, "canonical_product", "price_below", amount=Decimal(25), **scope)
        await add_rule(conn, "rare near", "search", "price_below", search="rare", amount=Decimal(25), **near, miles=10)
        for store in stores.values():
            await crawl(
                conn, store, 1, item("a", price="20"), item("b", price="31"), item("c", price="20", name="Rare")
            )
        assert await _fired(conn) >= {("rare near", "abq")}
        await conn.execute("DELETE FROM alert_rules WHERE name = 'rare near'")
        assert await _fired(conn) == {
            *(("anywhere", store) for store in stores), *(("merged", store) for store in stores), ("state", "abq"), ("state", "fe"),
            ("54", "abq"), ("60", "abq"), ("60", "fe"),
        }  # fmt: skip
        for store in stores.values():
            await crawl(
                conn, store, 2, item("a", price="20"), item("b", price="12"), item("c", price="20", name="Rare")
            )
        assert {one for one in await _fired(conn) if one[0] == "haze"} == {("haze", "abq")}


async def test_new_listing_is_evaluated_with_the_menu_after_it_was_matched(pool: Pool) -> None:
    async with pool.connection() as conn:
        store = await add_store(conn)
        dream = await add_product(conn, "Blue Dream")
        await add_rule(
            conn, "cheap", "canonical_product", "price_below", canonical_product_id=dream, amount=Decimal(25)
        )
        await crawl(conn, store, 0, item("first", price="20"), item("x", price="5"))
        await match(conn, dream, await listing(conn, store, "first"))
        menu = [item("first", price="20"), item("x", price="5"), item("new", price="20"), item("dear", price="40")]
        await crawl(conn, store, 1, *menu)
        await match(conn, dream, *[await listing(conn, store, one) for one in ("new", "dear")])
        assert await _fired(conn) == set(), "it was not matched when it was new, and a first menu is no news"
        # The new one is as it was, the dear one falls in price: both are below now for the first time that the rule sees them.
        changed = [*menu[:3], item("dear", price="19")]
        for hour in (2, 3, 4):
            await crawl(conn, store, hour, *changed)
        events = await rows(
            conn, "SELECT facts #>> '{product,provider_product_id}' AS id, fired_at FROM alert_events ORDER BY 1"
        )
    assert [(row["id"], (row["fired_at"] - NOW).total_seconds() / 3600) for row in events] == [("dear", 2), ("new", 2)]


async def _add(pool: Pool, **wish: Any) -> alerts.CreatedRule:
    settings = AlertSettings(secret_box=SecretBox(), allow_private=False, platforms=["dutchie"])
    async with pool.connection() as conn, conn.transaction():
        return await alerts.add_rule(
            conn, {"name": "r", "condition": "price_below", "amount": Decimal(25), **wish}, settings=settings, now=NOW
        )


@pytest.mark.parametrize(
    ("wish", "field", "words"),
    [
        ({"canonical_product_id": 999}, "canonical_product_id", "canonical product 999 does not exist"),
        ({"latitude": 35.0, "longitude": -106.0, "miles": 5.0}, "product_id", "the rule has no scope"),
        ({"brand": "A", "latitude": 35.0, "miles": 5.0}, "longitude", "longitude is missing"),
        ({"brand": "A", "latitude": 95.0, "longitude": 0.0, "miles": 5.0}, "latitude", "between -90 and 90, not 95"),
        (
            {"brand": "A", "latitude": 35.0, "longitude": 0.0, "miles": 0.0},
            "miles",
            "more than 0 and at most 500, not 0",
        ),
        (
            {"brand": "A", "latitude": 35.0, "longitude": 0.0, "miles": 501.0},
            "miles",
            "more than 0 and at most 500, not 501",
        ),
        (
            {"condition": "new_product", "amount": None, "canonical_product_id": 1},
            "canonical_product_id",
            "new_product",
        ),
        (
            {"condition": "stores_stale", "amount": Decimal(1), "canonical_product_id": 1},
            "canonical_product_id",
            "no scope",
        ),
    ],
)
async def test_what_cannot_be_is_refused(pool: Pool, wish: dict[str, Any], field: str, words: str) -> None:
    async with pool.connection() as conn:
        assert await add_product(conn, "One") == 1
    with pytest.raises((InvalidField, InvalidFields)) as refused:
        await _add(pool, **wish)
    errors = [refused.value] if isinstance(refused.value, InvalidField) else refused.value.errors
    assert any(error.field == field and words in str(error) for error in errors)


async def test_merged_product_is_followed_with_a_warning(pool: Pool) -> None:
    async with pool.connection() as conn:
        dream = await add_product(conn, "Blue Dream")
        old = await add_product(conn, "Blu Dream", merged_into=dream)
        store = await add_store(conn)
        await crawl(conn, store, 0, item("a", price="20"), item("b", price="20"))
        await match(conn, dream, await listing(conn, store, "a"))
    made = await _add(pool, canonical_product_id=old, on_existing="fire")
    assert (made.rule.canonical_product_id, made.rule.canonical_product, made.fired) == (dream, "Blue Dream", 1)
    assert f"canonical product {old} was merged into {dream}, Blue Dream" in made.warnings
