"""GET /api/search finds what the dashboard's search finds."""

from __future__ import annotations

from tests.api.shop import Shop


async def test_a_store_is_found_by_name_and_by_number(shop: Shop) -> None:
    number = await shop.store("mm-newark")
    for text in ("newark", "mm-newark", "newrak", str(number)):
        found = (await shop.http.get("/api/search", params={"q": text})).json()["items"]
        assert ("store", str(number)) in [(one["kind"], one["id"]) for one in found], text
    assert (await shop.http.get("/api/search")).status_code == 422
