"""Menus and licences of one shop share a location, whose number stays when the shop moves, is renamed or comes to another platform."""

from __future__ import annotations

from menuwatch.db.pool import Pool
from menuwatch.matching.locations.engine import LocationMatcher, match_locations
from tests.matching.location_rows import HOME, add_licence, add_store, locations, query

ELSEWHERE = {"address": "1713 Juan Tabo Blvd NE", "zipcode": "87112", "latitude": 35.10288, "longitude": -106.51625}


async def test_menus_of_two_platforms_share_a_location_with_the_licence(pool: Pool) -> None:
    first = await add_store(pool)
    second = await add_store(
        pool, "dutchie", name="Green Mesa Dispensary (REC)", address="3300 Central Avenue Southeast, Ste B"
    )
    medical = await add_store(pool, "dutchie", name="Green Mesa - Medical", platform_dispensary_id="med", phone=None)
    other = await add_store(pool, **ELSEWHERE, phone="(505) 555-0142")
    adult, patients = await add_licence(pool), await add_licence(pool, number="MED-7", kind="Medical dispensary")
    grower = await add_licence(pool, number="G-1", kind="Cultivator")
    run = await match_locations(pool)
    placed = await locations(pool)
    shop = placed["menu", first]
    assert placed == {
        ("menu", first): shop, ("menu", second): shop, ("menu", medical): shop, ("licence", adult): shop, ("licence", patients): shop,
        ("menu", other): placed["menu", other],
    }  # fmt: skip
    assert placed["menu", other] != shop
    assert ("licence", grower) not in placed
    assert (run.menus, run.licences, run.linked_licences, run.locations) == (4, 2, 2, 2)


async def test_shops_of_one_building_stay_apart(pool: Pool) -> None:
    one = await add_store(pool, address="1541 Appaloosa Dr Unit 7", name="Old Gods", phone="5755550101")
    two = await add_store(pool, "dutchie", address="1541 Appaloosa Dr", name="R Greenleaf", phone="5755550102")
    three = await add_store(pool, "jane", address="1541 Appaloosa Dr", name="Sky High", phone=None)
    licence = await add_licence(pool, holder="Old Gods Cannabis Inc", address="1541 Appaloosa Unit 7")
    await match_locations(pool)
    placed = await locations(pool)
    assert len({placed["menu", store] for store in (one, two, three)}) == 3
    assert placed["licence", licence] == placed["menu", one]


async def test_a_licence_that_fits_two_shops_alike_goes_to_none(pool: Pool) -> None:
    await add_store(pool, name="Alpha Leaf", phone=None)
    await add_store(pool, name="Beta Bloom", phone=None)
    licence = await add_licence(pool, holder="Rio Ventures LLC")
    await match_locations(pool)
    assert ("licence", licence) not in await locations(pool)


async def test_a_shop_that_moves_keeps_its_number_and_the_old_licence_stays_behind(pool: Pool) -> None:
    store, licence = await add_store(pool), await add_licence(pool)
    await match_locations(pool)
    before = await locations(pool)
    async with pool.connection() as conn:
        await conn.execute(
            "UPDATE dispensaries SET address = %(address)s, zipcode = %(zipcode)s, latitude = %(latitude)s, longitude = %(longitude)s",
            ELSEWHERE,
        )
    await match_locations(pool)
    assert await locations(pool) == {("menu", store): before["menu", store]}
    assert before["licence", licence] == before["menu", store]
    assert await query(pool, "SELECT location_id, kind, before, after FROM location_events") == [
        (
            before["menu", store],
            "moved",
            "3300 Central Ave SE, Albuquerque, NM, 87106",
            "1713 Juan Tabo Blvd NE, Albuquerque, NM, 87112",
        )
    ]


async def test_the_second_platform_may_learn_of_a_move_later(pool: Pool) -> None:
    first, second = await add_store(pool), await add_store(pool, "dutchie")
    await match_locations(pool)
    before = await locations(pool)
    async with pool.connection() as conn:
        await conn.execute(
            "UPDATE dispensaries SET address = %(address)s, zipcode = %(zipcode)s, latitude = %(latitude)s, longitude = %(longitude)s "
            "WHERE id = %(id)s",
            {**ELSEWHERE, "id": first},
        )
    await match_locations(pool)
    assert (
        await locations(pool)
        == before
        == {("menu", first): before["menu", first], ("menu", second): before["menu", first]}
    )


async def test_a_renamed_shop_keeps_its_number(pool: Pool) -> None:
    store = await add_store(pool)
    await match_locations(pool)
    before = await locations(pool)
    async with pool.connection() as conn:
        await conn.execute("UPDATE dispensaries SET name = 'Blue Butte'")
    await match_locations(pool)
    assert await locations(pool) == before
    assert await query(pool, "SELECT kind, before, after FROM location_events") == [
        ("renamed", "Green Mesa", "Blue Butte")
    ]
    assert before["menu", store]


async def test_locations_that_turn_out_to_be_one_merge_into_one_that_redirects(pool: Pool) -> None:
    first = await add_store(pool)
    second = await add_store(
        pool, "dutchie", address=None, zipcode=None, city=None, phone=None, latitude=None, longitude=None
    )
    await match_locations(pool)
    apart = await locations(pool)
    assert apart["menu", first] != apart["menu", second]
    async with pool.connection() as conn:
        await conn.execute(
            "UPDATE dispensaries SET address = '3300 Central Avenue SE', zipcode = '87106' WHERE id = %s", [second]
        )
    await match_locations(pool)
    shop = apart["menu", first]
    assert await locations(pool) == {("menu", first): shop, ("menu", second): shop}
    assert await query(pool, "SELECT id, merged_into FROM locations ORDER BY id") == [
        (shop, None),
        (apart["menu", second], shop),
    ]
    assert await query(pool, "SELECT location_id, kind, other_id FROM location_events") == [
        (shop, "merged", apart["menu", second])
    ]


async def test_matching_again_changes_nothing_and_the_order_of_arrival_does_not_matter(pool: Pool) -> None:
    for platform in ("weedmaps", "dutchie", "jane"):
        await add_store(pool, platform)
        await add_store(pool, platform, **ELSEWHERE, name="Green Mesa - Juan Tabo", phone="(505) 555-0142")
        await match_locations(pool)
    placed = await locations(pool)
    assert len(set(placed.values())) == 2
    assert (await match_locations(pool)).changed == 0
    assert await locations(pool) == placed
    assert await query(pool, "SELECT DISTINCT chain FROM locations WHERE merged_into IS NULL") == [("Green Mesa",)]


async def test_the_loop_works_only_after_a_change(pool: Pool) -> None:
    matcher = LocationMatcher(pool)
    store = await add_store(pool)
    await matcher.step()
    shop = (await locations(pool))["menu", store]
    async with pool.connection() as conn:
        await conn.execute("UPDATE locations SET name = 'as it is'")
        await conn.execute("UPDATE dispensaries SET last_attempt_at = now()")
    await matcher.step()  # a crawl is no change
    assert await query(pool, "SELECT name FROM locations") == [("as it is",)]
    async with pool.connection() as conn:
        await conn.execute("UPDATE dispensaries SET name = 'Blue Butte'")
    await matcher.step()
    assert await query(pool, "SELECT id, name FROM locations") == [(shop, "Blue Butte")]


async def test_the_preferred_menu_is_the_fresher_one_with_products(pool: Pool) -> None:
    stores = [await add_store(pool, platform) for platform in ("weedmaps", "dutchie", "jane")]
    await match_locations(pool)
    times = ["2026-11-20T08:00Z", "2026-11-20T12:00Z", "2026-11-20T16:00Z"]
    async with pool.connection() as conn:
        for store, at, products in zip(stores, times, (40, 30, 0), strict=True):
            await conn.execute(
                "UPDATE dispensaries SET last_crawled_at = %s, product_count = %s WHERE id = %s", [at, products, store]
            )
    menus = "SELECT dispensary_id FROM location_menus WHERE preferred"
    assert await query(pool, menus) == [(stores[1],)]
    async with pool.connection() as conn:
        await conn.execute("UPDATE dispensaries SET crawl_enabled = false WHERE id = %s", [stores[1]])
    assert await query(pool, menus) == [(stores[0],)]


async def test_a_shop_without_an_address_is_a_location_of_its_own(pool: Pool) -> None:
    unknown = dict.fromkeys(HOME) | {"name": "green-mesa"}
    stores = [await add_store(pool, platform, **unknown) for platform in ("dutchie", "jane")]
    await match_locations(pool)
    placed = await locations(pool)
    assert len({placed["menu", store] for store in stores}) == 2
