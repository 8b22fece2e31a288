"""Items of the site are canonical products: they follow what matching says of listings, and so do their addresses and alerts.

What the matcher says is given by the tests here, so that they know it.
"""

from __future__ import annotations

from typing import Any

import pytest

from menuwatch.storefront.indexer import index_all_stores
from tests.api.shop import item
from tests.market import add_canonical_product, match_listings
from tests.site.shop_pages import Front
from tests.site.test_watches import feed, news

STORES = "SELECT stores FROM storefront_items WHERE id = %s"


async def crawl(front: Front, store_id: int, hours: float, items: list[dict[str, Any]]) -> None:
    await front.shop.crawl(store_id, hours, items)
    await front.index(match_listings)


async def listing(front: Front, slug: str, name: str, price: float = 40, *, hours: float = 0, **more: Any) -> int:
    """A store with one product of its own spelling; returns its item's number."""
    found = await front.rows("SELECT id FROM dispensaries WHERE slug = %s", slug)
    store = found[0][0] if found else await front.shop.store(slug, city="Phoenix", state="AZ")
    await crawl(front, store, hours, [item(f"of-{slug}", name, options=[("1/8oz", price, 5)], **more)])
    ((number,),) = await front.rows("SELECT item_id FROM storefront_offers WHERE store_id = %s", store)
    return int(number)


async def move(front: Front, old: int, new: int, *, merged: bool) -> None:
    """What the matcher does with the listings of a number, in one transaction."""
    async with front.shop.pool.connection() as conn, conn.transaction():
        for table in ("product_matches", "match_signatures"):
            await conn.execute(
                f"UPDATE {table} SET canonical_product_id = %s WHERE canonical_product_id = %s".encode(), [new, old]
            )
        if merged:
            await conn.execute("UPDATE canonical_products SET merged_into = %s WHERE id = %s", [new, old])
        await conn.execute(
            "INSERT INTO match_events (kind, from_id, to_id, listings, cause) VALUES (%s, %s, %s, 1, 'menu')",
            ["merged" if merged else "split", old, new],
        )
    await front.index(match_listings)


async def moved_to(front: Front, path: str) -> str:
    answer = await front.http.get(path)
    assert answer.status_code == 301, answer.text[:300]
    return answer.headers["location"]


async def test_a_listing_is_shown_once_it_is_matched(front: Front) -> None:
    store = await front.shop.store()
    await front.shop.crawl(store, 0, [item("1")])
    assert await index_all_stores(front.shop.pool) == 1
    assert (await front.page("/search")).names == []
    assert await front.index(match_listings) == 1
    assert (await front.page("/search")).names == ["Blue Dream"]
    assert await front.rows("SELECT i.id = m.canonical_product_id FROM storefront_items i, product_matches m") == [
        (True,)
    ]


async def test_an_offer_keeps_its_item_while_its_listing_is_matched_again(front: Front) -> None:
    number = await listing(front, "a", "Blue Dream")
    await front.shop.execute("UPDATE product_matches SET canonical_product_id = NULL")
    await front.shop.crawl(1, 4, [item("of-a", "Blue Dream", options=[("1/8oz", 35, 5)])])
    await index_all_stores(front.shop.pool)
    assert await front.rows("SELECT item_id, price FROM storefront_offers") == [(number, 3500)]


async def test_a_merged_product_has_the_offers_of_both_and_its_address_leads_there(front: Front) -> None:
    old = await listing(front, "a", "BD Eighth", 35)
    new = await listing(front, "b", "Blue Dream", 40)
    await move(front, old, new, merged=True)
    assert await front.rows("SELECT id, stores, price FROM storefront_items") == [(new, 2, 3500)]
    assert await moved_to(front, f"/p/{old}-bd-eighth?near=85004") == f"/p/{new}-blue-dream?near=85004"
    page = await front.page(f"/p/{new}-blue-dream")
    assert "2 stores" in page.text
    assert "Listed as “BD Eighth”" in page.text
    assert "Listed as “Blue Dream”" not in page.text


async def test_a_chain_of_merges_leads_to_its_end(front: Front) -> None:
    numbers = [await listing(front, slug, f"Name {slug}") for slug in "abc"]
    await move(front, numbers[0], numbers[1], merged=True)
    await move(front, numbers[1], numbers[2], merged=True)
    assert await moved_to(front, f"/p/{numbers[0]}") == f"/p/{numbers[2]}-name-c"
    assert await front.rows("SELECT id, stores FROM storefront_items") == [(numbers[2], 3)]


async def test_the_address_of_a_product_without_listings_leads_where_they_went(front: Front) -> None:
    old = await listing(front, "a", "Blue Dream")
    async with front.shop.pool.connection() as conn:
        new = await add_canonical_product(conn, "Blue Dream Smalls", "Acme")
    await move(front, old, new, merged=False)
    assert await moved_to(front, f"/p/{old}-blue-dream") == f"/p/{new}-blue-dream-smalls"
    assert await front.rows("SELECT item_id FROM storefront_offers") == [(new,)]


async def test_a_product_that_keeps_a_listing_keeps_its_page(front: Front) -> None:
    number = await listing(front, "a", "Blue Dream")
    assert await listing(front, "b", "Blue Dream") == number
    async with front.shop.pool.connection() as conn:
        other = await add_canonical_product(conn, "Blue Dream Smalls", "Acme")
        await conn.execute("UPDATE product_matches SET canonical_product_id = %s WHERE dispensary_id = 2", [other])
    await front.index(match_listings)
    assert await front.rows("SELECT id, stores FROM storefront_items ORDER BY id") == [(number, 1), (other, 1)]
    await front.page(f"/p/{number}-blue-dream")
    # Its listing is on no menu now, but it is still its own.
    await crawl(front, 1, 4, [item("x", "Something else")])
    await front.page(f"/p/{number}-blue-dream")


async def test_a_renamed_product_is_shown_and_found_by_its_new_name(front: Front) -> None:
    number = await listing(front, "a", "Blue Dream")
    await front.shop.execute(
        "UPDATE canonical_products SET name = 'Azure Vision', category = 'preroll', strain = 'sativa'"
    )
    await front.index(match_listings)
    for query in ("q=azure", "category=preroll", "strain=sativa", "category=preroll&near=85004"):
        assert (await front.page(f"/search?{query}")).names == (["Azure Vision"] if "near" not in query else []), query
    assert await front.rows("SELECT category, strain FROM storefront_offers") == [("preroll", "sativa")]
    assert await moved_to(front, f"/p/{number}-blue-dream") == f"/p/{number}-azure-vision"


async def test_a_product_that_cannot_be_written_hinders_no_other(front: Front) -> None:
    numbers = [await listing(front, slug, f"Name {slug}") for slug in "abc"]
    await front.shop.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$"
    )
    await front.shop.execute(
        "CREATE TRIGGER refuse BEFORE UPDATE ON storefront_items FOR EACH ROW WHEN (NEW.name = 'New b') EXECUTE FUNCTION refuse()"
    )
    await front.shop.execute("UPDATE canonical_products SET name = replace(name, 'Name', 'New')")
    await crawl(front, 3, 4, [item("of-c", "Name c", options=[("1/8oz", 33, 5)])])
    assert await front.rows("SELECT id, name, price FROM storefront_items ORDER BY id") == [
        (numbers[0], "New a", 4000),
        (numbers[1], "Name b", 4000),
        (numbers[2], "New c", 3300),
    ]


async def test_a_product_is_found_by_what_other_stores_call_it(front: Front) -> None:
    old = await listing(front, "a", "GSC 3.5g", brandName="Akme")
    new = await listing(front, "b", "Girl Scout Cookies", brandName="Acme")
    await move(front, old, new, merged=True)
    for text in ("gsc", "girl+scout", "akme+gsc", "acme+cookies", "cokies"):
        assert (await front.page(f"/search?q={text}")).names == ["Girl Scout Cookies"], text
    # A third store's words are added to the item that is there.
    third = await front.shop.store("c")
    await front.shop.crawl(third, 0, [item("of-c", "Thin Mint Cut")])
    await front.shop.execute(
        "INSERT INTO product_matches (product_id, dispensary_id, source_version, signature_id, canonical_product_id)"
        " SELECT p.id, p.dispensary_id, 0, m.signature_id, m.canonical_product_id FROM catalog_products p, product_matches m"
        " WHERE p.dispensary_id = %s AND m.dispensary_id = 1",
        [third],
    )
    await front.index(match_listings)
    assert (await front.page("/search?q=mint")).names == ["Girl Scout Cookies"]


async def test_a_product_takes_a_bounded_number_of_words(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("menuwatch.storefront.items.MOST_WORDS", 8)
    await listing(front, "a", "Blue Dream")
    ((before,),) = await front.rows("SELECT length(words) FROM storefront_item_words")
    for hours in (4, 8, 12):
        names = " ".join(f"word{hours}{n}" for n in range(30))
        await front.shop.crawl(1, hours, [item("of-a", f"Blue Dream {names}", options=[("1/8oz", 40 + hours, 5)])])
        await front.index(match_listings)
    ((after,),) = await front.rows("SELECT length(words) FROM storefront_item_words")
    # One listing may bring forty words (taxonomy/text.py), after which there is no more room.
    assert before <= after <= before + 30


async def test_a_brand_alias_finds_and_a_merged_brand_leads_to_the_present_one(front: Front) -> None:
    await listing(front, "a", "Blue Dream", brandName="Acme")
    await listing(front, "b", "Cherry Pie", brandName="Akme")
    ((acme,), (akme,)) = await front.rows("SELECT id FROM brands ORDER BY slug")
    await front.shop.execute(
        "INSERT INTO brand_aliases (alias, spelling, brand_id, origin) VALUES ('zenith', 'Zenith', %s, 'person')",
        [acme],
    )
    await front.shop.execute("UPDATE brands SET merged_into = %s WHERE id = %s", [acme, akme])
    await front.index(match_listings)
    assert await moved_to(front, "/b/akme?near=85004") == "/b/acme?near=85004"
    assert await moved_to(front, "/b/Zenith") == "/b/acme"
    assert sorted((await front.page("/b/acme")).names) == ["Blue Dream", "Cherry Pie"]
    for query in ("brand=akme", "brand=acme", "q=acme"):
        assert sorted((await front.page(f"/search?{query}")).names) == ["Blue Dream", "Cherry Pie"], query
    # The words of a product are those of when it was last described: the merge did so for those of the merged brand.
    assert (await front.page("/search?q=zenith")).names == ["Cherry Pie"]
    sitemap = await front.http.get("/sitemap-pages.xml")
    assert "/b/acme<" in sitemap.text
    assert "/b/akme" not in sitemap.text


class TestWatches:
    async def test_one_moves_with_a_merge_and_keeps_its_state(self, front: Front) -> None:
        old = await listing(front, "a", "BD Eighth", 35)
        new = await listing(front, "b", "Blue Dream", 50)
        token = await feed(front, old, condition="price_below", amount="34")
        await listing(front, "a", "BD Eighth", 30, hours=4)
        assert await news(front, token) == ["BD Eighth is $30.00"]
        await move(front, old, new, merged=True)
        assert await front.rows("SELECT item_id, phase, amount FROM price_watches") == [(new, "fired", 34)]
        await listing(front, "b", "Blue Dream", 49, hours=4)
        assert await news(front, token) == ["Blue Dream is $30.00"]
        # Above it everywhere, it waits again; and now any store of the product may bring it.
        await listing(front, "a", "BD Eighth", 41, hours=8)
        await listing(front, "b", "Blue Dream", 29, hours=8)
        assert await news(front, token) == ["Blue Dream is $29.00", "Blue Dream is $30.00"]

    async def test_one_that_the_other_product_already_meets_fires(self, front: Front) -> None:
        old = await listing(front, "a", "BD Eighth", 35)
        new = await listing(front, "b", "Blue Dream", 20)
        token = await feed(front, old, condition="price_below", amount="25")
        await move(front, old, new, merged=True)
        assert await news(front, token) == ["Blue Dream is $20.00"]

    async def test_one_of_a_split_product_stays_with_the_number(self, front: Front) -> None:
        number = await listing(front, "a", "Blue Dream", 35)
        await listing(front, "b", "Blue Dream", 50)
        token = await feed(front, number, condition="price_below", amount="34")
        async with front.shop.pool.connection() as conn:
            other = await add_canonical_product(conn, "Blue Dream Smalls", "Acme")
            await conn.execute("UPDATE product_matches SET canonical_product_id = %s WHERE dispensary_id = 1", [other])
        await front.index(match_listings)
        await listing(front, "a", "Blue Dream", 20, hours=4)
        assert await front.rows("SELECT item_id FROM price_watches") == [(number,)]
        assert await news(front, token) == []

    async def test_a_merged_product_can_be_watched_under_its_old_number(self, front: Front) -> None:
        old = await listing(front, "a", "BD Eighth", 35)
        new = await listing(front, "b", "Blue Dream", 50)
        await move(front, old, new, merged=True)
        await feed(front, old, condition="any_drop")
        assert await front.rows("SELECT item_id FROM price_watches") == [(new,)]


async def test_near_a_place_any_listing_of_the_product_may_meet_it(front: Front) -> None:
    async def at(slug: str, name: str, price: float, latitude: float, hours: float = 0) -> int:
        found = await front.rows("SELECT id FROM dispensaries WHERE slug = %s", slug)
        store = found[0][0] if found else await front.shop.store(slug, latitude=latitude, longitude=-112.0740)
        await crawl(front, store, hours, [item(f"of-{slug}", name, options=[("1/8oz", price, 5)])])
        ((number,),) = await front.rows("SELECT item_id FROM storefront_offers WHERE store_id = %s", store)
        return int(number)

    old = await at("near", "BD Eighth", 35, 33.4484)
    new = await at("close", "Blue Dream", 50, 33.45)
    await at("far", "Blue Dream", 45, 32.22)
    await move(front, old, new, merged=True)
    token = await feed(front, new, condition="price_below", amount="30", reach="near", near="85004", within="25")
    await at("far", "Blue Dream", 10, 32.22, 4)
    assert await news(front, token) == []
    await at("near", "BD Eighth", 28, 33.4484, 4)
    assert await news(front, token) == ["Blue Dream is $28.00"]
