"""Adding, listing and testing proxies, as a person does."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from menuwatch.config.settings import Settings
from menuwatch.core.encryption import new_key
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Pool
from menuwatch.fetch.classify import Verdict
from menuwatch.proxies import import_file, store
from menuwatch.proxies import passwords as proxy_passwords
from menuwatch.proxies import service as operations
from menuwatch.proxies.health import ProxyOutcome
from menuwatch.proxies.importer import import_proxies
from menuwatch.sim.proxies import ProxyFarm
from tests.fetch.target import Reply, Target
from tests.proxy_reports import befalls, listed_proxies


async def test_added_is_listed_without_its_password(pool: Pool) -> None:
    added = await operations.add(pool, "socks5://me:S3cret@gate.example:1080", state="az", country="us", city="Phoenix")
    assert (added.address, added.created) == ("socks5://me@gate.example:1080", True)
    (row,) = await listed_proxies(pool)
    assert (row.address, row.has_password, row.status) == ("socks5://me@gate.example:1080", True, "active")
    assert (row.state, row.country, row.city) == ("AZ", "US", "Phoenix")
    assert "S3cret" not in f"{added!r} {row!r} {msgspec.json.encode(row)!r}"
    again = await operations.add(pool, "socks5://me:other@gate.example:1080")
    assert (again.id, again.created) == (added.id, False)


async def test_a_wrong_proxy_or_place_is_refused_and_nothing_added(pool: Pool) -> None:
    with pytest.raises(Refused, match="no port"):
        await operations.add(pool, "http://me:S3cret@gate.example")
    with pytest.raises(Refused, match=r"two letters, e\.g\. AZ: got 'Arizona'"):
        await operations.add(pool, "gate.example:80", state="Arizona")
    assert await listed_proxies(pool) == []


async def test_a_start_without_active_proxies_is_refused_with_the_command_that_adds_one(pool: Pool) -> None:
    with pytest.raises(Refused, match=r"^no active proxy. .*menuwatch proxies add"):
        await operations.require_active(pool, Settings())
    added = await operations.add(pool, "gate.example:80")
    assert await operations.require_active(pool, Settings()) == 1
    async with pool.connection() as conn:
        await operations.disable(conn, [added.id], "the bill")
    with pytest.raises(Refused, match=r"^no active proxy: 1 disabled"):
        await operations.require_active(pool, Settings())


async def test_a_test_says_how_each_proxy_is_and_changes_nothing(pool: Pool, farm: ProxyFarm, target: Target) -> None:
    settings = Settings(fetch_timeout_seconds=1, dutchie_base_url=target.url().rstrip("/"))
    ids = [(await operations.add(pool, info.url)).id for info in farm.infos]
    await farm.fault(1, "auth")
    await farm.fault(2, "dead")
    target.script = lambda seen: Reply(403 if seen.proxy == 3 else 200)
    results = await operations.run_tests(pool, settings)
    assert [(result.id, result.ok, result.status, result.verdict) for result in results] == [
        (ids[0], True, 200, Verdict.OK),
        (ids[1], False, None, Verdict.PROXY_CONFIG),
        (ids[2], False, None, Verdict.PROXY_DOWN),
        (ids[3], True, 403, Verdict.BLOCKED),  # the proxy does its part: it is the target that says no
    ]
    assert [result.label for result in results] == ["works", "fails", "fails", "works, but is refused"]
    host = urlsplit(target.url()).netloc
    assert results[0].reason == f"reached {host}: HTTP 200"
    assert results[3].reason == f"reached {host}: refused with HTTP 403"
    assert results[0].elapsed_ms > 0
    assert results[1].reason.startswith("the proxy rejected the credentials")
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
    (result,) = await operations.run_tests(pool, settings, proxy_ids=[first.id], url=target.url("/robots.txt"))
    assert (result.id, result.ok) == (first.id, True)
    assert [seen.path for seen in target.seen] == ["/robots.txt"]
    with pytest.raises(Refused, match="proxy 999 does not exist"):
        await operations.run_tests(pool, settings, proxy_ids=[999])


def _settings(target: Target, **more: Any) -> Settings:
    wide = {"host_rate": 1000.0, "host_burst": 100, **more}
    return Settings(fetch_timeout_seconds=2, dutchie_base_url=target.url().rstrip("/"), **wide)


def _lines(farm: ProxyFarm) -> str:
    return "\n".join(info.url for info in farm.infos)


async def test_each_is_tested_before_it_works(pool: Pool, farm: ProxyFarm, target: Target) -> None:
    await farm.fault(1, "auth")
    await farm.fault(2, "dead")
    target.script = lambda seen: Reply(403 if seen.proxy == 3 else 200)
    given, rejected = import_file.read(_lines(farm) + "\nnonsense\n" + farm.infos[0].url)
    done: list[int] = []
    imported = await import_proxies(pool, _settings(target), given, rejected, on_done=done.append)
    assert (imported.added, imported.updated, imported.failed, imported.disabled) == (4, 0, 3, 0)
    assert ([line.number for line in imported.rejected], imported.repeated, sum(done)) == ([5], [1], 4)
    rows = await listed_proxies(pool)
    by_line = {one.number: next(row for row in rows if row.id == one.id) for one in imported.proxies}
    assert [by_line[number].status for number in (2, 3, 4, 6)] == ["inactive", "inactive", "inactive", "active"]
    for number, why in ((2, "rejected the credentials"), (3, "does not respond"), (4, "HTTP 403")):
        row = by_line[number]
        assert why in str(row.reason)
        assert row.deactivated_at is not None
        assert row.probe_at is not None
        assert 48 <= (row.probe_at - row.deactivated_at).total_seconds() <= 61, "a minute, less some chance"
    assert by_line[6].probe_at is None
    assert not any(info.password in repr((imported, rows)) for info in farm.infos)


async def test_without_a_test_all_work_at_once_and_nobody_is_asked(pool: Pool, farm: ProxyFarm, target: Target) -> None:
    given, _ = import_file.read(_lines(farm))
    imported = await import_proxies(pool, _settings(target), given, test=False)
    assert (imported.added, imported.failed) == (4, 0)
    assert [row.status for row in await listed_proxies(pool)] == ["active"] * 4
    assert target.seen == []
    again = await import_proxies(pool, _settings(target), given, test=False)
    assert (again.added, again.updated) == (0, 4)
    assert [one.id for one in again.proxies] == [one.id for one in imported.proxies]


async def test_a_target_that_is_down_speaks_against_no_proxy(pool: Pool, farm: ProxyFarm, target: Target) -> None:
    target.script = lambda _: Reply(503)
    imported = await import_proxies(pool, _settings(target), import_file.read(_lines(farm))[0])
    assert imported.failed == 0


async def test_the_hosts_budget_is_asked_before_each_test(pool: Pool, farm: ProxyFarm, target: Target) -> None:
    waits = [0.01, None, None, 0.01, None, None]
    asked: list[str] = []

    async def permit(host: str) -> float | None:
        asked.append(host)
        return waits.pop(0)

    await import_proxies(pool, _settings(target), import_file.read(_lines(farm))[0], permit=permit)
    assert waits == []
    assert set(asked) == {f"menus.invalid:{target.port}"}
    assert len(target.seen) == 4


async def test_a_start_tries_proxies_that_are_all_out(pool: Pool, farm: ProxyFarm, target: Target) -> None:
    settings = _settings(target)
    for index in range(4):
        await farm.fault(index, "dead")
    imported = await import_proxies(pool, settings, import_file.read(_lines(farm))[0])
    assert imported.failed == 4
    with pytest.raises(Refused, match=r"^no active proxy: 4 inactive, next probe in \d+ s"):
        await operations.require_active(pool, settings)
    await farm.fault(2, None)
    assert await operations.require_active(pool, settings) == 1
    assert [row.id for row in await listed_proxies(pool, active=True)] == [imported.proxies[2].id]


async def test_while_the_host_wants_to_be_left_alone_nothing_is_tested(
    pool: Pool, farm: ProxyFarm, target: Target
) -> None:
    settings = _settings(target)
    target.script = lambda _: Reply(429, headers={"Retry-After": "900"})
    first, *rest = import_file.read(_lines(farm))[0]
    assert (await import_proxies(pool, settings, [first])).failed == 0
    imported = await import_proxies(pool, settings, rest)
    assert (imported.failed, len(target.seen)) == (3, 1)
    assert imported.proxies[0].reason == f"not tested: requests to menus.invalid:{target.port} are blocked for 15 min"
    with pytest.raises(Refused, match="not tested"):
        await operations.run_tests(pool, settings)
    assert all(row.probe_at is not None for row in await listed_proxies(pool, active=False)), "tried by itself later"


async def test_what_an_operator_took_out_only_an_operator_brings_back(
    pool: Pool, farm: ProxyFarm, target: Target
) -> None:
    settings = _settings(target)
    given, _ = import_file.read(_lines(farm))
    ids = [one.id for one in (await import_proxies(pool, settings, given)).proxies]
    async with pool.connection() as conn:
        (out,) = await operations.disable(conn, [ids[0]], "  the bill is not paid ")
    assert (out.status, out.reason, out.probe_at) == ("disabled", "the bill is not paid", None)
    async with pool.connection() as conn:
        for event in (ProxyOutcome.SUCCESS, *[ProxyOutcome.FAULT] * 6):
            await befalls(conn, ids[0], event, error=None)
        assert await store.take_due(conn, 10, hold=1) == []
    again = await import_proxies(pool, settings, given)
    assert (again.updated, again.disabled, again.failed) == (4, 1, 0)
    assert again.proxies[0].reason == "the bill is not paid"
    (back, other) = await operations.enable(pool, settings, [ids[0], ids[1]])
    assert (back.status, back.failure_count, back.disabled_at, back.disabled_reason) == ("active", 0, None, None)
    assert other.status == "active"


async def test_one_that_fails_its_test_is_not_enabled_but_tried_again(
    pool: Pool, farm: ProxyFarm, target: Target
) -> None:
    settings = _settings(target)
    ids = [one.id for one in (await import_proxies(pool, settings, import_file.read(_lines(farm))[0])).proxies]
    async with pool.connection() as conn:
        await operations.disable(conn, ids[:2])
    await farm.fault(0, "dead")
    dead, fine = await operations.enable(pool, settings, ids[:2])
    assert (dead.status, fine.status) == ("inactive", "active")
    assert "does not respond" in str(dead.reason)
    assert dead.probe_at is not None
    (forced,) = await operations.enable(pool, settings, [ids[0]], force=True)
    assert (forced.status, forced.reason, forced.probe_at) == ("active", None, None)


async def test_numbers_that_do_not_exist_change_nothing(pool: Pool, farm: ProxyFarm, target: Target) -> None:
    added = await operations.add(pool, farm.infos[0].url)
    numbers = [added.id, 998, 999]
    async with pool.connection() as conn:
        with pytest.raises(Refused, match="proxies 998, 999 do not exist"):
            await operations.disable(conn, numbers)
        with pytest.raises(Refused, match="proxies 998, 999 do not exist"):
            await operations.remove(conn, numbers)
    with pytest.raises(Refused, match="proxies 998, 999 do not exist"):
        await operations.enable(pool, _settings(target), numbers)
    assert [row.status for row in await listed_proxies(pool)] == ["active"]
    async with pool.connection() as conn:
        (gone,) = await operations.remove(conn, [added.id])
    assert gone.id == added.id
    assert await listed_proxies(pool) == []


async def _stored(pool: Pool) -> list[str]:
    async with pool.connection() as conn:
        return [proxy.password for proxy in await store.all_of(conn) if proxy.password is not None]


async def test_sealed_passwords_work_and_are_worth_nothing_without_the_key(
    pool: Pool, farm: ProxyFarm, target: Target
) -> None:
    old, new = new_key(), new_key()
    sealed = _settings(target, secret_key=(old,))
    imported = await import_proxies(pool, sealed, import_file.read(_lines(farm))[0])
    assert imported.failed == 0
    stored = await _stored(pool)
    assert all(text.startswith("fernet:") for text in stored)
    assert not any(info.password in "".join(stored) for info in farm.infos)
    assert all(result.ok for result in await operations.run_tests(pool, sealed))
    assert await operations.require_active(pool, sealed) == 4
    for settings, says in (
        (_settings(target), r"encrypted.*, and SECRET_KEY is not set"),
        (_settings(target, secret_key=(new,)), "no key in SECRET_KEY decrypts"),
    ):
        for refused in (
            operations.require_active(pool, settings),
            operations.run_tests(pool, settings),
            operations.enable(pool, settings, [imported.proxies[0].id]),
        ):
            with pytest.raises(Refused, match=says):
                await refused
        assert "the passwords of 4 of 4 proxies are encrypted" in str(
            (await operations.health_report(pool, settings)).locked
        )
    both = _settings(target, secret_key=(new, old))
    assert await proxy_passwords.encrypt_all(pool, both) == (4, 4)
    assert await proxy_passwords.encrypt_all(pool, both) == (0, 4)
    assert all(result.ok for result in await operations.run_tests(pool, _settings(target, secret_key=(new,))))


async def test_passwords_in_clear_are_sealed_on_demand_or_when_they_are_written(
    pool: Pool, farm: ProxyFarm, target: Target
) -> None:
    given, _ = import_file.read(_lines(farm))
    await import_proxies(pool, _settings(target), given, test=False)
    assert await _stored(pool) == [info.password for info in farm.infos]
    with pytest.raises(Refused, match="SECRET_KEY is not set: `menuwatch proxies key` generates a key"):
        await proxy_passwords.encrypt_all(pool, _settings(target))
    settings = _settings(target, secret_key=(new_key(),))
    assert all(result.ok for result in await operations.run_tests(pool, settings)), "those in clear stay readable"
    await import_proxies(pool, settings, given[:1], test=False)
    assert [text.startswith("fernet:") for text in await _stored(pool)] == [True, False, False, False]
    assert await proxy_passwords.encrypt_all(pool, settings) == (3, 4)
    assert all(result.ok for result in await operations.run_tests(pool, settings))


async def test_a_password_of_one_letter_is_shown_nowhere_and_spoils_no_text(
    pool: Pool, farm: ProxyFarm, target: Target
) -> None:
    info = farm.infos[0]
    line = f"{info.protocol}://{info.username}:e@{info.host}:{info.port}"
    imported = await import_proxies(pool, _settings(target), import_file.read(line)[0])
    assert imported.proxies[0].reason is not None
    assert imported.proxies[0].reason.startswith("the proxy rejected the credentials")
    await farm.fault(0, "dead")
    (result,) = await operations.run_tests(pool, _settings(target))
    assert result.reason.startswith("the proxy does not respond: curl: (7) Failed to connect to menus.invalid:")
    assert "***" not in result.reason


async def test_what_is_wrong_with_the_proxies_is_named(pool: Pool, farm: ProxyFarm, target: Target) -> None:
    settings = _settings(target)
    given, _ = import_file.read(_lines(farm))
    ids = [one.id for one in (await import_proxies(pool, settings, given, test=False)).proxies]
    async with pool.connection() as conn:
        for event in [ProxyOutcome.FAULT] * 5:
            await befalls(conn, ids[0], event, error="the proxy does not respond")
        for event in [ProxyOutcome.REFUSED] * 3:
            await befalls(conn, ids[1], event, error="refused with HTTP 403")
        await operations.disable(conn, [ids[2]])
    found = await operations.health_report(pool, settings)
    standing = found.counts
    assert (standing.active, standing.inactive, standing.disabled, standing.failing) == (2, 1, 1, 1)
    assert standing.next_probe_seconds is not None
    assert 45 < standing.next_probe_seconds <= 60
    assert found.failing == f"proxy {ids[1]} (refused with HTTP 403)"
    assert found.locked is None


async def test_one_that_could_not_be_tested_stays_as_it_was(pool: Pool, farm: ProxyFarm, target: Target) -> None:
    settings = _settings(target)
    given, _ = import_file.read(_lines(farm))
    await import_proxies(pool, settings, given[:2], test=False)

    async def closed(host: str) -> float | None:
        return 3600.0

    again = await import_proxies(pool, settings, given[:3], permit=closed)
    assert target.seen == []
    rows = sorted(await listed_proxies(pool), key=lambda row: row.id)
    assert [row.status for row in rows] == ["active", "active", "untested"], "only the new one waits for a probe"
    assert (again.updated, again.added) == (2, 1)
    assert "not tested" in str(rows[2].reason)

    async def reason() -> tuple[str, str | None, str | None]:
        row = next(row for row in await listed_proxies(pool) if row.id == rows[2].id)
        return row.status, row.reason, row.last_error

    await farm.fault(2, "dead")
    await operations.run_tests(pool, settings, proxy_ids=[rows[2].id])
    assert (await reason())[0] == "inactive", "a test puts nothing to work"
    assert str((await reason())[1]).startswith("the proxy does not respond")
    await operations.enable(pool, settings, [rows[2].id], permit=closed)
    assert str((await reason())[1]).startswith("not tested: ")
    await farm.fault(2, None)
    await operations.run_tests(pool, settings, proxy_ids=[rows[2].id])
    status, why, _ = await reason()
    assert (status, str(why).partition(" (")[0]) == ("inactive", "a test succeeded")
    assert f"`menuwatch proxies enable {rows[2].id}`" in str(why)


async def test_that_one_could_not_be_tested_is_forgotten_once_it_works(
    pool: Pool, farm: ProxyFarm, target: Target
) -> None:
    settings = _settings(target)
    given, _ = import_file.read(_lines(farm))

    async def closed(host: str) -> float | None:
        return 3600.0

    async def state() -> tuple[str, str | None]:
        (row,) = await listed_proxies(pool)
        return row.status, row.last_error

    imported = await import_proxies(pool, settings, given[:1], permit=closed)
    number = imported.proxies[0].id
    assert (await state())[1] == imported.proxies[0].reason
    async with pool.connection() as conn:
        await store.reactivate(conn, number)
    assert await state() == ("active", None)
    await operations.enable(pool, settings, [number], permit=closed)
    assert str((await state())[1]).startswith("not tested: ")
    await operations.enable(pool, settings, [number])
    assert await state() == ("active", None)
    await operations.enable(pool, settings, [number], permit=closed)
    await import_proxies(pool, settings, given[:1], test=False)
    assert await state() == ("active", None)
    async with pool.connection() as conn:
        await befalls(conn, number, ProxyOutcome.FAULT, error="the proxy does not respond")
    await operations.enable(pool, settings, [number], force=True)
    assert await state() == ("active", "the proxy does not respond"), "what went wrong stays on record"


async def test_a_password_under_a_lost_key_is_named_with_the_way_out(
    pool: Pool, farm: ProxyFarm, target: Target
) -> None:
    given, _ = import_file.read(_lines(farm))
    await import_proxies(pool, _settings(target), given[1:], test=False)
    lost, ours = _settings(target, secret_key=(new_key(),)), _settings(target, secret_key=(new_key(),))
    (locked,) = (await import_proxies(pool, lost, given[:1], test=False)).proxies
    with pytest.raises(Refused) as caught:
        await operations.require_active(pool, ours)
    assert str(caught.value) == (
        f"the password of proxy {locked.id} ({locked.address}) is encrypted, and no key in SECRET_KEY decrypts it: add the key "
        "that it was encrypted with. If the key is lost, enter the proxy again with `menuwatch proxies add`, or remove it with "
        f"`menuwatch proxies remove {locked.id}`"
    )
    async with pool.connection() as conn:
        await operations.remove(conn, [locked.id])
    assert await operations.require_active(pool, ours) == 3
    await import_proxies(pool, lost, given, test=False)
    with pytest.raises(
        Refused, match=r"passwords of 4 of 4 proxies are encrypted \(proxy 1 .*, proxy 3 .*, 1 more\), and"
    ):
        await operations.require_active(pool, ours)
    await import_proxies(pool, ours, given, test=False)
    assert await operations.require_active(pool, ours) == 4
