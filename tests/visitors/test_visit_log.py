"""The way to the sums: bounded, in batches, patient with the database, and nothing that one visit can spoil for the others."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import psycopg
import pytest
from structlog.testing import capture_logs

from menuwatch.core.clock import ManualClock
from menuwatch.db.pool import Pool
from menuwatch.web import visit_log
from tests.visitors.conftest import NOON, Site, counting
from tests.workers.waiting import until


async def test_a_full_queue_drops_and_counts_what_it_drops(pool: Pool) -> None:
    site = counting(pool, None, ManualClock(NOON), room=3)
    for _ in range(5):
        assert (await site.look("/")).status_code == 200
    assert site.log.waiting == 3
    assert [row[5] for row in await site.days()] == [3]
    assert (site.log.noted("counted"), site.log.noted("lost")) == (3, 2)
    assert site.log.waiting == 0


async def test_many_batches_are_all_written(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visit_log, "BATCH", 10)
    site = counting(pool, None, ManualClock(NOON))
    for number in range(35):
        await site.look("/", peer=f"8.8.{number}.8")
    assert [row[5:] for row in await site.days()] == [(35, 35, 35)]


async def test_visits_wait_while_the_database_is_away_but_not_for_ever(site: Site, pool: Pool) -> None:
    await site.look("/")
    async with pool.connection() as conn:
        await conn.execute(
            "CREATE FUNCTION away() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no' USING ERRCODE = '57P01'; END $$"
        )
        await conn.execute("CREATE TRIGGER away BEFORE INSERT ON visitor_salts FOR EACH ROW EXECUTE FUNCTION away()")
    with pytest.raises(psycopg.OperationalError):
        await site.log.step()
    assert site.log.waiting == 1
    site.clock.advance(timedelta(minutes=59))
    await site.look("/")
    with pytest.raises(psycopg.OperationalError):
        await site.log.step()
    assert site.log.waiting == 2
    site.clock.advance(timedelta(minutes=2))
    async with pool.connection() as conn:
        await conn.execute("DROP TRIGGER away ON visitor_salts")
    assert [row[5] for row in await site.days()] == [1]
    assert (site.log.noted("counted"), site.log.noted("lost")) == (1, 1)


async def test_a_visit_that_cannot_be_written_is_lost_alone(site: Site, pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute("ALTER TABLE visitor_pages ADD CHECK (page <> 'poison')")
    for page in ("good", "poison", "better"):
        await site.look(f"/p/{page}")
    with capture_logs() as lines:
        await site.log.step()
    assert [(line["action"], line["id"]) for line in lines] == [("item_failed", "poison")]
    assert [row[5] for row in await site.days()] == [2]
    assert (site.log.noted("counted"), site.log.noted("lost")) == (2, 1)


async def test_a_salt_that_was_taken_away_is_made_anew(site: Site, pool: Pool) -> None:
    await site.look("/")
    await site.log.step()
    async with pool.connection() as conn:
        await conn.execute("DELETE FROM visitor_salts")
    await site.look("/")
    await site.log.step()  # its mark has no salt to belong to: lost
    await site.look("/")
    assert [row[5] for row in await site.days()] == [2]


async def test_the_loop_writes_by_itself_and_at_its_end(pool: Pool) -> None:
    site = counting(pool, None, ManualClock(NOON), interval=0.05)
    task = asyncio.create_task(site.log.run())
    await site.look("/")

    async def written() -> bool:
        return site.log.noted("counted") == 1

    await until(written)
    await site.look("/")
    site.log.stop()
    await task
    assert site.log.waiting == 0
    assert [row[5] for row in await site.days()] == [2]
