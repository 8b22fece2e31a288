"""What people say about locations holds against the matcher, and against another person until it is withdrawn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from menuwatch.accounts import audit
from menuwatch.core.errors import Conflict, InvalidField, NotFound
from menuwatch.db.pool import Connection, Pool
from menuwatch.matching.locations import service
from menuwatch.matching.locations.engine import match_locations
from menuwatch.matching.locations.model import LocationFilter, Subject
from tests.matching.location_rows import add_licence, add_store, locations, query

FAR = {
    "address": "9800 Montgomery Blvd NE",
    "zipcode": "87110",
    "latitude": 35.1,
    "longitude": -106.5,
    "phone": "5055550188",
}


async def _as(pool: Pool, act: Callable[[Connection], Awaitable[Any]], name: str = "ann") -> Any:
    with audit.actor_context(audit.Actor(name=name, kind="user", via="api")):
        async with pool.connection() as conn, conn.transaction():
            return await act(conn)


async def test_a_linked_store_stays_where_a_person_put_it(pool: Pool) -> None:
    first, second = await add_store(pool), await add_store(pool, "dutchie", **FAR)
    await match_locations(pool)
    before = await locations(pool)
    shop, old = before["menu", first], before["menu", second]
    await _as(pool, lambda conn: service.link(conn, Subject(store_id=second), shop))
    for _ in range(2):
        await match_locations(pool)
        assert await locations(pool) == {("menu", first): shop, ("menu", second): shop}
    assert await query(pool, "SELECT id, merged_into FROM locations WHERE merged_into IS NOT NULL") == [(old, shop)]
    async with pool.connection() as conn:
        detail = await service.get_location(conn, old)
    assert detail.id == shop, "the former number leads to it"
    assert [(menu.store_id, menu.decided_by) for menu in detail.stores] == [(first, None), (second, "ann")]
    with pytest.raises(Conflict, match=r"ann put store \d+ into location \d+ on .*: release that decision first"):
        await _as(pool, lambda conn: service.unlink(conn, Subject(store_id=second), shop), "bob")
    await _as(pool, lambda conn: service.release(conn, Subject(store_id=second)))
    await match_locations(pool)
    assert len(set((await locations(pool)).values())) == 2


async def test_an_unlinked_store_stays_apart(pool: Pool) -> None:
    first, second = await add_store(pool), await add_store(pool, "dutchie")
    await match_locations(pool)
    shop = (await locations(pool))["menu", first]
    await _as(pool, lambda conn: service.unlink(conn, Subject(store_id=second), shop))
    for _ in range(2):
        await match_locations(pool)
        after = await locations(pool)
        assert after["menu", first] == shop != after["menu", second]
    other = after["menu", second]
    with pytest.raises(
        Conflict, match=rf"ann decided on .* that store {second} does not belong to location {shop}: release"
    ):
        await _as(pool, lambda conn: service.link(conn, Subject(store_id=second), shop), "bob")
    for old, into in ((other, shop), (shop, other)):
        with pytest.raises(
            Conflict, match=rf"ann decided on .* that store {second} does not belong to location {shop}: release"
        ):
            await _as(pool, lambda conn, old=old, into=into: service.merge(conn, old, into), "bob")
    await _as(pool, lambda conn: service.release(conn, Subject(store_id=second)))
    await match_locations(pool)
    assert len(set((await locations(pool)).values())) == 1


async def test_a_licence_is_unlinked_and_linked(pool: Pool) -> None:
    first, second, licence = await add_store(pool), await add_store(pool, "dutchie", **FAR), await add_licence(pool)
    await match_locations(pool)
    placed = await locations(pool)
    assert placed["licence", licence] == placed["menu", first]
    await _as(pool, lambda conn: service.unlink(conn, Subject(licence_id=licence), placed["menu", first]))
    await match_locations(pool)
    assert ("licence", licence) not in await locations(pool)
    await _as(pool, lambda conn: service.link(conn, Subject(licence_id=licence), placed["menu", second]))
    await match_locations(pool)
    assert (await locations(pool))["licence", licence] == placed["menu", second]


async def test_merged_locations_stay_merged_and_it_is_on_record(pool: Pool) -> None:
    first, second = await add_store(pool), await add_store(pool, "dutchie", **FAR)
    await match_locations(pool)
    placed = await locations(pool)
    a, b = placed["menu", first], placed["menu", second]
    assert await _as(pool, lambda conn: service.merge(conn, b, a)) == a
    for _ in range(2):
        await match_locations(pool)
        assert set((await locations(pool)).values()) == {a}
    assert await query(pool, "SELECT kind, location_id, other_id, made_by FROM location_events") == [
        ("merged", a, b, "ann")
    ]
    assert await query(pool, "SELECT actor, action, subject_id FROM audit_log") == [("ann", "locations_merged", str(b))]
    with pytest.raises(InvalidField, match="are already one"):
        await _as(pool, lambda conn: service.merge(conn, b, a))


async def test_what_does_not_exist_or_cannot_be_taken_out(pool: Pool) -> None:
    store = await add_store(pool)
    await match_locations(pool)
    shop = (await locations(pool))["menu", store]
    with pytest.raises(Conflict, match="is the only menu of location"):
        await _as(pool, lambda conn: service.unlink(conn, Subject(store_id=store), shop))
    with pytest.raises(Conflict, match="there is no decision about store"):
        await _as(pool, lambda conn: service.release(conn, Subject(store_id=store)))
    for subject in (Subject(store_id=999), Subject(licence_id=999)):
        with pytest.raises(NotFound, match="999 does not exist"):
            await _as(pool, lambda conn, subject=subject: service.link(conn, subject, shop))
    with pytest.raises(NotFound, match="location 999 does not exist"):
        await _as(pool, lambda conn: service.link(conn, Subject(store_id=store), 999))
    with pytest.raises(InvalidField, match="either a store or a licence"):
        Subject()


async def test_the_status_says_what_menus_and_licences_show(pool: Pool) -> None:
    await add_store(pool)
    await add_licence(pool, expires_on="2099-01-01")
    await match_locations(pool)

    async def status() -> str:
        async with pool.connection() as conn:
            (location,) = await service.list_locations(conn, LocationFilter())
        return str(location.status)

    assert await status() == "no_menu"
    for change, expected in (
        ("UPDATE dispensaries SET last_crawled_at = now() - interval '1 day', product_count = 12", "open"),
        ("UPDATE licences SET expires_on = '2020-01-01'", "licence_ended"),
        ("UPDATE dispensaries SET crawl_enabled = false", "closed"),
        ("UPDATE licences SET expires_on = NULL, gone_at = now()", "closed"),
        ("UPDATE licences SET gone_at = NULL, status = 'Active'", "no_menu"),
        ("UPDATE licences SET status = 'Inactive'", "closed"),
    ):
        async with pool.connection() as conn:
            await conn.execute(change)
        assert await status() == expected, change
