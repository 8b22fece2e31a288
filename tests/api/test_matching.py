"""The API of matching: pairs, corrections, brands and canonical products, held to its description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.api.shop import Shop
from tests.matching.match_rows import MatchRows
from tests.users_fixture import bearer


@pytest.fixture
def rows(shop: Shop, database_url: str) -> Iterator[MatchRows]:
    """Two pairs to review; the first one is in one product."""
    with psycopg.connect(database_url, autocommit=True) as conn:

        def run(statement: str, values: Any = None) -> list[tuple[Any, ...]]:
            cursor = conn.execute(statement, values)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

        made = MatchRows(run)
        made.brand("Acme", "Akme")
        product = made.canonical("Blue Dream", brand="Acme")
        made.written("Blue Dream", "Blue Dreem", "Haze", canonical=(product, product, None))
        made.review(
            1,
            2,
            confidence=0.6,
            impact=50,
            together=True,
            reasons=[{"code": "spelling", "detail": "dream", "weight": 2.5}],
        )
        made.review(2, 3, confidence=0.3, impact=4)
        yield made


async def test_pairs_come_in_pages_with_their_number(shop: Shop, rows: MatchRows) -> None:
    first = await shop.ask("/api/matching/reviews", params={"limit": 1})
    (pair,) = first["items"]
    assert (pair["a"]["name"], pair["b"]["name"], pair["together"], pair["impact"]) == (
        "Blue Dream",
        "Blue Dreem",
        True,
        50,
    )
    assert pair["reasons"] == [{"code": "spelling", "detail": "dream", "weight": 2.5}]
    assert first["total"] == 2
    rest = await shop.ask("/api/matching/reviews", params={"limit": 1, "cursor": first["next"]})
    assert ([one["a"]["name"] for one in rest["items"]], rest["next"]) == (["Blue Dreem"], None)
    assert [one["impact"] for one in (await shop.ask("/api/matching/reviews?together=false"))["items"]] == [4]
    assert (await shop.ask("/api/matching/reviews?brand=akme&min_impact=10"))["total"] == 1


async def test_a_correction_is_made_refused_and_withdrawn(shop: Shop, rows: MatchRows) -> None:
    made = await shop.ask(
        "/api/matching/corrections", method="POST", json={"a": 1, "b": 2, "same": False, "note": "other strain"}
    )
    assert (made["outcome"], made["correction"]["made_by"], made["correction"]["state"]) == (
        "recorded",
        "tester",
        "waiting",
    )
    refused = await shop.http.post("/api/matching/corrections", json={"a": 2, "b": 1, "same": True})
    assert (refused.status_code, "correction 1" in refused.json()["detail"]) == (409, True)
    replaced = await shop.ask(
        "/api/matching/corrections", method="POST", json={"a": 2, "b": 1, "same": True, "replace": True}
    )
    assert replaced["outcome"] == "replaced"
    gone = await shop.ask("/api/matching/corrections/2/withdraw", method="POST")
    assert (gone["state"], gone["withdrawn_by"]) == ("withdrawn", "tester")
    listed = await shop.ask("/api/matching/corrections", params={"active": "false", "limit": 1})
    assert [one["id"] for one in listed["items"]] == [2]
    following = {"cursor": listed["next"], "active": "false", "limit": 1}
    assert [one["id"] for one in (await shop.ask("/api/matching/corrections", params=following))["items"]] == [1]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"a": 1, "b": 1, "same": True}, 400),
        ({"a": 1, "b": 999, "same": True}, 404),
        ({"a": 1, "b": 2}, 422),
        ({"a": 1, "b": 2, "same": "yes"}, 422),
        ({"a": 0, "b": 2, "same": True}, 422),
        ({"a": 1, "b": 2, "same": True, "note": "x" * 501}, 422),
        ({"a": 1, "b": 2, "same": True, "other": 1}, 422),
    ],
)
async def test_what_is_no_correction(shop: Shop, rows: MatchRows, body: dict[str, Any], status: int) -> None:
    assert (await shop.http.post("/api/matching/corrections", json=body)).status_code == status
    assert rows.sql("SELECT count(*) FROM match_corrections") == [(0,)]


async def test_brands(shop: Shop, rows: MatchRows) -> None:
    rows.brand("Other")
    (acme, _) = (await shop.ask("/api/matching/brands"))["items"]
    assert (acme["name"], acme["products"], acme["listings"], acme["stores"]) == ("Acme", 1, 2, 2)
    assert [one["spelling"] for one in acme["spellings"]] == ["Acme", "Akme"]
    merged = await shop.ask("/api/matching/brands/1/merge", method="POST", json={"into": 2})
    assert (merged["brand"]["name"], merged["listings"], merged["spellings"]) == ("Other", 3, ["Acme", "Akme"])
    assert (await shop.ask("/api/matching/brands/1"))["merged_into"] == 2
    assert (await shop.ask("/api/matching/brands/1/unmerge", method="POST"))["brand"]["name"] == "Acme"
    moved = await shop.ask(
        "/api/matching/brands/spellings", method="POST", json={"spelling": "Akme", "new_brand": "Akme"}
    )
    assert (moved["brand"]["id"], moved["brand"]["slug"]) == (3, "akme")
    assert (await shop.ask("/api/matching/brands/3", method="PATCH", json={"name": "AKME"}))["brand"]["name"] == "AKME"
    assert (await shop.http.post("/api/matching/brands/3/merge", json={"into": 3})).status_code == 400


async def test_a_canonical_product_with_its_listings_and_history(shop: Shop, rows: MatchRows) -> None:
    old = rows.canonical("Blue Dream old")
    rows.sql("UPDATE canonical_products SET merged_into = 1 WHERE id = %s", [old])
    rows.sql(
        "INSERT INTO match_events (kind, from_id, to_id, listings, cause) VALUES ('merged', %s, 1, 1, 'menu')", [old]
    )
    rows.sql("UPDATE catalog_products SET price_rec = 50 - id")
    rows.sql("UPDATE catalog_products SET price_rec = NULL WHERE id = 2")
    product = await shop.ask("/api/matching/products/1")
    assert (product["name"], product["brand"], product["listings"], product["stores"], product["merged"]) == (
        "Blue Dream", "Acme", 2, 2, [old],
    )  # fmt: skip
    assert (await shop.ask(f"/api/matching/products/{old}"))["merged_into"] == 1
    first = await shop.ask("/api/matching/products/1/listings", params={"limit": 1})
    rest = await shop.ask("/api/matching/products/1/listings", params={"limit": 1, "cursor": first["next"]})
    found = [*first["items"], *rest["items"]]
    assert [(one["product_id"], one["price"], one["other_product_id"]) for one in found] == [(1, 49, 2), (2, None, 1)]
    assert rest["next"] is None
    (event,) = (await shop.ask("/api/matching/products/1/events"))["items"]
    assert (event["kind"], event["from_id"], event["to_id"]) == ("merged", old, 1)
    assert (await shop.http.get("/api/matching/products/999/listings")).status_code == 404


async def test_a_viewer_reads_and_does_not_correct(shop: Shop, rows: MatchRows) -> None:
    viewer = await bearer(shop.pool, name="v", role="viewer", scopes=["read"])
    assert (await shop.http.get("/api/matching/reviews", headers=viewer)).status_code == 200
    answer = await shop.http.post("/api/matching/corrections", json={"a": 1, "b": 2, "same": True}, headers=viewer)
    assert (answer.status_code, answer.json()["permission"]) == (403, "matching:write")
