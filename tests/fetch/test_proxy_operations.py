"""Adding, listing and testing proxies, as a person does."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from menuwatch.core.errors import Refused
from menuwatch.core.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.fetch.verdict import Verdict
from menuwatch.operations import proxies as operations
from menuwatch.proxies import store
from menuwatch.sim.proxies import ProxyFarm
from tests.fetch.target import Reply, Target


async def test_added_is_listed_without_its_password(pool: Pool) -> None:
    added = await operations.add(pool, "socks5://me:S3cret@gate.example:1080", state="az", country="us", city="Phoenix")
    assert (added.address, added.created) == ("socks5://me@gate.example:1080", True)
    (row,) = await operations.listed(pool)
    assert (row.address, row.has_password, row.status) == ("socks5://me@gate.example:1080", True, "active")
    assert (row.state, row.country, row.city) == ("AZ", "US", "Phoenix")
    assert "S3cret" not in f"{added!r} {row!r} {msgspec.json.encode(dataclasses.asdict(row))!r}"
    again = await operations.add(pool, "socks5://me:other@gate.example:1080")
    assert (again.id, again.created) == (added.id, False)


async def test_a_wrong_proxy_or_place_is_refused_and_nothing_added(pool: Pool) -> None:
    with pytest.raises(Refused, match="no port"):
        await operations.add(pool, "http://me:S3cret@gate.example")
    with pytest.raises(Refused, match="two letters, as AZ: got 'Arizona'"):
        await operations.add(pool, "gate.example:80", state="Arizona")
    assert await operations.listed(pool) == []


async def test_of_a_list_the_good_lines_are_added_and_the_bad_come_back(pool: Pool) -> None:
    added, rejected = await operations.add_lines(pool, ["gate.example:1", "gate.example:x", "gate.example:3:u:p"])
    assert [each.address for each in added] == ["http://gate.example:1", "http://u@gate.example:3"]
    assert [(line.number, "1 to 65535" in line.reason) for line in rejected] == [(2, True)]


async def test_a_start_without_active_proxies_is_refused_with_the_command_that_adds_one(pool: Pool) -> None:
    with pytest.raises(Refused, match="menuwatch proxies add"):
        await operations.require_active(pool)
    await operations.add(pool, "gate.example:80")
    assert await operations.require_active(pool) == 1


async def test_a_test_says_how_each_proxy_is_and_changes_nothing(pool: Pool, farm: ProxyFarm, target: Target) -> None:
    settings = Settings(fetch_timeout_seconds=1, dutchie_base_url=target.url().rstrip("/"))
    ids = [(await operations.add(pool, info.url)).id for info in farm.infos]
    await farm.fault(1, "auth")
    await farm.fault(2, "dead")
    target.script = lambda seen: Reply(403 if seen.proxy == 3 else 200)
    results = await operations.test(pool, settings)
    assert [(result.id, result.ok, result.status, result.verdict) for result in results] == [
        (ids[0], True, 200, Verdict.OK),
        (ids[1], False, None, Verdict.PROXY_CONFIG),
        (ids[2], False, None, Verdict.PROXY_DOWN),
        (ids[3], True, 403, Verdict.BLOCKED),  # the proxy does its part: it is the target that says no
    ]
    assert results[0].elapsed_ms > 0
    assert "user or password" in results[1].reason
    assert not any(info.password in repr(results) for info in farm.infos)
    async with pool.connection() as conn:
        rows = await store.all_of(conn)
    assert {(row.success_count, row.failure_count, row.consecutive_403_count, row.last_used_at) for row in rows} == {
        (0, 0, 0, None)
    }


async def test_a_test_may_name_proxies_and_another_address(pool: Pool, farm: ProxyFarm, target: Target) -> None:
    settings = Settings(fetch_timeout_seconds=1)
    first = await operations.add(pool, farm.infos[0].url)
    await operations.add(pool, farm.infos[1].url)
    (result,) = await operations.test(pool, settings, proxy_ids=[first.id], url=target.url("/robots.txt"))
    assert (result.id, result.ok) == (first.id, True)
    assert [seen.path for seen in target.seen] == ["/robots.txt"]
    with pytest.raises(Refused, match="no proxy has the number 999"):
        await operations.test(pool, settings, proxy_ids=[999])
