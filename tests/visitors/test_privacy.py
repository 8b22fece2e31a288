"""Nothing of a visitor is in the database: not the address, not the browser; and what stands for them goes with the day's salt."""

from __future__ import annotations

import asyncio
import ipaddress
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from menuwatch.core.clock import ManualClock
from menuwatch.db.pool import Pool, open_pool
from menuwatch.ops.janitor import Janitor
from menuwatch.visitors import store
from menuwatch.visitors.anonymous_marks import Kind, Visit, marks
from tests.visitors.conftest import CHROME, NOON, PHOENIX, Site, counting, places

DAY = NOON.date()
SIX = "2a02:cf40:1234:5678:9abc:def0:1357:2468"


async def _everything(pool: Pool) -> str:
    """The whole database as text: every row of every table of ours."""
    async with pool.connection() as conn:
        tables = await (
            await conn.execute(
                "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'public'"
            )
        ).fetchall()
        found = []
        for (table,) in tables:
            found += await (await conn.execute(f"SELECT t::text FROM {table} t".encode())).fetchall()
    return "\n".join(row[0] for row in found)


@pytest.mark.parametrize("peer", [PHOENIX, SIX])
async def test_no_address_and_no_browser_is_in_any_table(site: Site, pool: Pool, peer: str) -> None:
    for path in ("/", "/p/blue-dream", "/search?q=my+own+words"):
        await site.look(path, peer=peer, referer="https://where.i.was.example/", cookie="a=b")
    assert len(await site.days()) == 3
    dump = await _everything(pool)
    assert "blue-dream" in dump
    address = ipaddress.ip_address(peer)
    plain = [
        peer,
        str(int(address)),
        address.exploded,
        f"{int(address):x}",
        *([peer.rpartition(":")[0]] if ":" in peer else []),
    ]
    plain.append(peer.encode().hex())
    for trace in (
        *plain,
        CHROME,
        "Chrome/142",
        "Windows NT",
        "AppleWebKit",
        "en-US",
        "my own words",
        "my+own",
        "where.i.was",
        "a=b",
    ):
        assert trace not in dump
        assert trace.encode().hex() not in dump


async def test_no_cookie_is_set_and_nothing_is_said_in_the_log(site: Site) -> None:
    with capture_logs() as lines:
        answer = await site.look("/")
        await site.log.step()
    assert "set-cookie" not in answer.headers
    assert PHOENIX not in str(lines)
    assert CHROME not in str(lines)
    visit = Visit(at=NOON, kind=Kind.HOME, page="", address=ipaddress.ip_address(PHOENIX), agent=CHROME)
    assert PHOENIX not in repr(visit)
    assert CHROME not in repr(visit)


def test_marks_of_one_visitor_cannot_be_told_to_be_of_one() -> None:
    visit = Visit(at=NOON, kind=Kind.PRODUCT, page="a", address=ipaddress.ip_address(PHOENIX), agent=CHROME)
    salt = bytes(32)
    mine = marks(salt, visit)
    assert len(set(mine)) == 3
    assert marks(bytes([1]) * 32, visit) != mine
    assert set(marks(bytes([1]) * 32, visit)).isdisjoint(mine)


async def test_a_salt_and_its_marks_are_gone_before_48_hours_and_the_sums_stay(site: Site, pool: Pool) -> None:
    await site.look("/p/blue-dream")
    await site.log.step()
    midnight = datetime.combine(DAY, datetime.min.time(), NOON.tzinfo)
    site.clock.advance(timedelta(hours=12))
    await site.look("/")  # the next day
    before = await site.days()

    async def run_maintenance(hours: float) -> tuple[list[date], int]:
        async with pool.connection() as conn:
            await conn.execute("DELETE FROM maintenance_runs")  # due again
        await Janitor(pool, clock=ManualClock(midnight + timedelta(hours=hours))).step()
        salts = [row[0] for row in await site.rows("SELECT day FROM visitor_salts ORDER BY day")]
        marked = await site.rows("SELECT day FROM visitor_marks GROUP BY day ORDER BY day")
        assert [row[0] for row in marked] == salts
        return salts, len(before)

    # The day's salt is in use until the day is over, and an hour longer for what waited to be written.
    assert (await run_maintenance(25))[0] == [DAY, DAY + timedelta(days=1)]
    assert (await run_maintenance(47))[0] == [DAY + timedelta(days=1)]
    assert (await run_maintenance(24 + 47))[0] == []
    assert await site.days() == before
    assert len(await site.rows("SELECT FROM visitor_pages")) == 1


async def test_maintenance_comes_often_enough_for_that(pool: Pool) -> None:
    janitor = Janitor(pool)
    latest = store.KEPT + janitor.jobs["visitors"].every + timedelta(seconds=2 * janitor.interval)
    assert latest < timedelta(hours=48)


async def test_views_of_single_pages_are_forgotten_after_their_time(site: Site, pool: Pool) -> None:
    await site.look("/p/blue-dream")
    await site.log.step()
    async with pool.connection() as conn:
        assert await store.forget_pages(conn, NOON + timedelta(days=399)) == 0
        assert await store.forget_pages(conn, NOON + timedelta(days=401)) == 1
    assert len(await site.days()) == 1


async def test_all_servers_get_one_salt_whoever_is_first(database_url: str) -> None:
    async with open_pool(database_url, max_size=8) as one, open_pool(database_url, max_size=8) as other:

        async def ask(pool: Pool) -> bytes:
            async with pool.connection() as conn, conn.transaction():
                return await store.salt_of(conn, DAY)

        salts = await asyncio.gather(*(ask(pool) for _ in range(8) for pool in (one, other)))
    assert len(set(salts)) == 1
    assert len(salts[0]) == 32


async def test_two_servers_count_a_visitor_once(database_url: str, pool: Pool, tmp_path: Path) -> None:
    async with open_pool(database_url) as other:
        geo = places(tmp_path / "places")
        sites = [counting(one, geo, ManualClock(NOON)) for one in (pool, other)]
        for at in range(30):
            for number in range(20):  # each visitor is balanced to both
                await sites[(at + number) % 2].look(f"/p/p{number % 7}", peer=f"93.184.216.{number + 1}")
            await asyncio.gather(*(site.log.step() for site in sites))
    assert await sites[0].days() == [(DAY, "US", "Arizona", "Phoenix", "product", 600, 20, 20)]
    rows = await sites[0].rows("SELECT sum(views), sum(uniques) FROM visitor_pages")
    assert rows == [(600, 20)]


def test_the_log_of_the_web_server_is_off() -> None:
    # uvicorn's own would have the address of every request in it; ours has none (web/request_middleware.py).
    from menuwatch.cli import serving

    text = Path(serving.__file__).read_text(encoding="utf-8")
    assert "access_log=False" in text
    assert "proxy_headers=False" in text
