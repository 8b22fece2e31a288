"""One row for one shop, however it became known."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from psycopg import AsyncConnection

from menuwatch.core.errors import Refused
from menuwatch.db.pool import Pool
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details

GREEN = Details(
    platform_dispensary_id="5f00000000000000000000bb", slug="green", name="Green", name_raw="Green ", city="Ajax"
)


async def _rows(conn: AsyncConnection[Any]) -> list[tuple[Any, ...]]:
    cursor = await conn.execute("SELECT id, platform_dispensary_id, slug, name FROM dispensaries ORDER BY id")
    return await cursor.fetchall()


async def test_a_store_added_by_its_address_is_the_one_that_is_found(pool: Pool) -> None:
    async with pool.connection() as conn:
        added = await stores.add_by_url(
            conn, platform="dutchie", slug="green", menu_url="https://dutchie.com/dispensary/green"
        )
        assert await stores.promote(conn, "dutchie", GREEN) == (added.id, True), "its first crawl is still to be made"
        assert await stores.promote(conn, "dutchie", GREEN) == (added.id, False)
        assert await _rows(conn) == [(added.id, GREEN.platform_dispensary_id, "green", "Green")]
        found = await stores.get(conn, added.id)
        assert found is not None
        assert (found.menu_url, found.city) == ("https://dutchie.com/dispensary/green", "Ajax")


async def test_a_store_that_may_not_be_crawled_stays_so_when_it_is_found(pool: Pool) -> None:
    async with pool.connection() as conn:
        added = await stores.add_by_url(conn, platform="dutchie", slug="green")
        await stores.set_crawl_enabled(conn, added.id, False)
        assert await stores.promote(conn, "dutchie", GREEN) == (added.id, False)
        found = await stores.get(conn, added.id)
        assert found is not None
        assert not found.crawl_enabled


async def test_a_slug_that_changed_hands_is_not_adopted_by_a_store_that_is_known(pool: Pool) -> None:
    """The shop had its row under another name before somebody added its new address: both rows stay, one is resolved later."""
    async with pool.connection() as conn:
        known, _ = await stores.promote(conn, "dutchie", Details(**{**GREEN.values(), "slug": "verdant"}))
        added = await stores.add_by_url(conn, platform="dutchie", slug="green")
        assert await stores.promote(conn, "dutchie", GREEN) == (known, False)
        assert [(i, p) for i, p, *_ in await _rows(conn)] == [(known, GREEN.platform_dispensary_id), (added.id, None)]


async def test_finding_and_adding_at_once_leaves_one_row(pool: Pool) -> None:
    async def find() -> None:
        async with pool.connection() as conn, conn.transaction():
            await stores.promote(conn, "dutchie", GREEN)

    async with pool.connection() as conn:
        await stores.add_by_url(conn, platform="dutchie", slug="green")
    await asyncio.gather(*(find() for _ in range(6)))
    async with pool.connection() as conn:
        assert [row[1:3] for row in await _rows(conn)] == [(GREEN.platform_dispensary_id, "green")]


async def test_adding_one_address_many_times_at_once_adds_one(pool: Pool) -> None:
    async def add() -> int:
        async with pool.connection() as conn:
            return (await stores.add_by_url(conn, platform="dutchie", slug="green")).id

    ended = await asyncio.gather(*(add() for _ in range(6)), return_exceptions=True)
    assert [type(end) for end in ended if not isinstance(end, int)] == [Refused] * 5
    async with pool.connection() as conn:
        assert len(await _rows(conn)) == 1
        with pytest.raises(Refused, match="already exists, with id"):
            await stores.add_by_url(conn, platform="dutchie", slug="green")


async def test_what_a_recording_says_fills_what_is_empty_and_overwrites_nothing(pool: Pool) -> None:
    async with pool.connection() as conn:
        store_id, _ = await stores.promote(conn, "dutchie", GREEN)
        said = replace(GREEN, slug="other", name="Other", city="Elsewhere", state="ON", is_medical=True)
        await stores.fill_in(conn, store_id, said)
        found = await stores.get(conn, store_id)
        assert found is not None
        assert (found.slug, found.name, found.city, found.state, found.is_medical) == (
            "green",
            "Green",
            "Ajax",
            "ON",
            True,
        )
        await conn.commit()
        await stores.fill_in(conn, store_id, replace(said, state="AB", is_medical=False))
        assert await stores.get(conn, store_id) == found, "not even the time of its last change moved"


async def test_two_platforms_may_know_different_shops_by_one_id(pool: Pool) -> None:
    async with pool.connection() as conn:
        for platform, name in (("dutchie", "Green"), ("weedmaps", "Blue"), ("dutchie", "Green & Co")):
            details = replace(GREEN, platform_dispensary_id="7", name=name)
            await stores.record_location(conn, platform, details, raw={}, dispensary_id=None, rejected=None)
        cursor = await conn.execute(
            "SELECT platform, platform_dispensary_id, name FROM dutchie_discovery_locations ORDER BY 1"
        )
        assert await cursor.fetchall() == [("dutchie", "7", "Green & Co"), ("weedmaps", "7", "Blue")]


async def test_a_name_that_is_on_two_platforms(pool: Pool) -> None:
    async with pool.connection() as conn:
        numbers = [
            (await stores.promote(conn, platform, replace(GREEN, platform_dispensary_id=key)))[0]
            for platform, key in (("dutchie", "5f00000000000000000000bb"), ("weedmaps", "305566"))
        ]
        for number, platform in zip(numbers, ("dutchie", "weedmaps"), strict=True):
            found = await stores.find(conn, "green", platform)
            assert found is not None
            assert (found.id, found.platform) == (number, platform)
        with pytest.raises(Refused, match=f"several platforms.*{numbers[0]} on dutchie, {numbers[1]} on weedmaps"):
            await stores.find(conn, "green")
        for text, number in (
            (str(numbers[1]), numbers[1]),
            ("305566", numbers[1]),
            (GREEN.platform_dispensary_id, numbers[0]),
        ):
            found = await stores.find(conn, text)
            assert found is not None
            assert found.id == number
        assert await stores.find(conn, "grün") is None
        blue = await stores.add_by_url(conn, platform="weedmaps", slug="blue")
        assert (await stores.add_by_url(conn, platform="dutchie", slug="blue")).id != blue.id, "another shop"
        with pytest.raises(Refused, match=f"already exists, with id {blue.id}"):
            await stores.add_by_url(conn, platform="weedmaps", slug="blue")


async def test_a_slug_comes_before_a_number_and_a_number_before_a_platforms_id(pool: Pool) -> None:
    async with pool.connection() as conn:
        first = (await stores.promote(conn, "dutchie", GREEN))[0]
        second = (await stores.promote(conn, "weedmaps", replace(GREEN, slug="b", platform_dispensary_id=str(first))))[
            0
        ]
        found = await stores.find(conn, str(first))
        assert found is not None
        assert found.id == first
        await stores.promote(conn, "weedmaps", replace(GREEN, slug=str(first), platform_dispensary_id=str(first)))
        found = await stores.find(conn, str(first))
        assert found is not None
        assert found.id == second


async def test_a_store_is_found_by_the_name_that_screens_show(pool: Pool) -> None:
    named = replace(GREEN, slug="green-lantern-mt", name="Green Lantern Phoenix Midtown")
    async with pool.connection() as conn:
        number = (await stores.promote(conn, "dutchie", named))[0]
        for text in (
            named.name,
            " green lantern  PHOENIX midtown ",
            "Green-Lantern-MT",
            "green-lantern-mt",
            str(number),
        ):
            assert (await stores.resolve(conn, text)).id == number
        assert await stores.find(conn, named.name, by_name=False) is None
        with pytest.raises(Refused, match="Green Lantern Phoenix Midtown"):
            await stores.resolve(conn, "green lantern phenix midtown")
        with pytest.raises(Refused, match="'Acme' does not exist: enter its name, slug or ID"):
            await stores.resolve(conn, "Acme")


async def test_a_name_of_several_stores_lists_them_with_their_slugs(pool: Pool) -> None:
    async with pool.connection() as conn:
        numbers = [
            (
                await stores.promote(
                    conn, "dutchie", replace(GREEN, slug=slug, name="Twin", platform_dispensary_id=slug)
                )
            )[0]
            for slug in ("twin-mesa", "twin-tempe")
        ]
        with pytest.raises(Refused) as refused:
            await stores.resolve(conn, "twin")
        for slug, number in zip(("twin-mesa", "twin-tempe"), numbers, strict=True):
            assert f"{slug} (ID {number}" in str(refused.value)
        assert (await stores.resolve(conn, "twin-tempe")).id == numbers[1]


async def test_only_the_code_of_a_state_replaces_a_state(pool: Pool) -> None:
    """Earlier releases stored Weedmaps' names of states: the next discovery mends them."""
    async with pool.connection() as conn:

        async def state(number: int) -> str | None:
            store = await stores.get(conn, number)
            assert store is not None
            return store.state

        number, _ = await stores.promote(conn, "weedmaps", replace(GREEN, state="New Mexico"))
        assert await state(number) == "New Mexico"
        await stores.fill_in(conn, number, replace(GREEN, state="Bavaria"))
        assert await state(number) == "New Mexico"
        await stores.promote(conn, "weedmaps", replace(GREEN, state="NM"))
        for unknown in ("Bavaria", "New Mexico", None):
            await stores.promote(conn, "weedmaps", replace(GREEN, state=unknown))
            await stores.update_details(conn, number, replace(GREEN, state=unknown))
        assert await state(number) == "NM"
        await stores.fill_in(conn, number, replace(GREEN, state="AZ"))
        assert await state(number) == "NM"
        await stores.update_details(conn, number, replace(GREEN, state="AZ"))
        assert await state(number) == "AZ"
        other, _ = await stores.promote(
            conn, "weedmaps", replace(GREEN, platform_dispensary_id="2", state="New Mexico")
        )
        await stores.fill_in(conn, other, replace(GREEN, state="NM"))
        assert await state(other) == "NM"
