"""Proxies for people: look at them, test them, take them out and put them back. No answer of these holds a password."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from menuwatch.core.clock import Clock
from menuwatch.core.errors import Refused
from menuwatch.core.settings import Settings
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Connection, Pool
from menuwatch.fetch.probe import Finding, Permit, Probed, finding
from menuwatch.operations import audit
from menuwatch.operations.proxy_passwords import check_open
from menuwatch.operations.proxy_trial import TESTS_AT_ONCE, Tested, Tester
from menuwatch.operations.refusals import NotFound
from menuwatch.proxies import store
from menuwatch.proxies.health import probing
from menuwatch.proxies.model import UNTESTED, NewProxy, NoProxy, Proxy, Standing
from menuwatch.proxies.parse import parse_line
from menuwatch.proxies.sheet import placed
from menuwatch.proxies.vault import Locked, Vault, is_sealed

log = get_logger(__name__)

_TRIED_AT_START = 8

DISABLED = "taken out by an operator"
"""The reason where none was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyView:
    """A proxy as people see it. `address` is all of it but the password; `status` is `active`, `inactive` (out for its health: it is
    tried again at `probe_at`) or `disabled` (by an operator). `reason` says why it is not active."""

    id: int
    address: str
    protocol: str
    host: str
    port: int
    username: str | None
    has_password: bool
    password_sealed: bool
    status: str
    reason: str | None
    city: str | None
    state: str | None
    country: str | None
    timezone: str | None
    success_count: int
    failure_count: int
    consecutive_403_count: int
    avg_response_time_ms: float | None
    last_used_at: datetime | None
    last_failure_at: datetime | None
    last_error: str | None
    deactivated_at: datetime | None
    disabled_at: datetime | None
    disabled_reason: str | None
    probe_at: datetime | None
    probe_failures: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What became of one proxy that was given: `created` is false for one that was known and got its new password and place."""

    id: int
    address: str
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """How the proxies are. `failing` names some of the active ones that fail, with why; `locked`: passwords cannot be opened."""

    standing: Standing
    failing: str
    locked: Locked | None


def view(proxy: Proxy) -> ProxyView:
    """The proxy without its password."""
    shared = {spec.name for spec in dataclasses.fields(ProxyView)} & {spec.name for spec in dataclasses.fields(Proxy)}
    out = None if proxy.is_active else proxy.disabled_reason or proxy.last_error or "it was taken out"
    return ProxyView(
        address=proxy.address,
        has_password=bool(proxy.password),
        password_sealed=is_sealed(proxy.password),
        status="active" if proxy.is_active else "inactive" if proxy.disabled_at is None else "disabled",
        reason=out,
        **{name: getattr(proxy, name) for name in shared},
    )


async def add(
    pool: Pool,
    line: str | NewProxy,
    *,
    city: str | None = None,
    state: str | None = None,
    country: str | None = None,
    timezone: str | None = None,
    vault: Vault | None = None,
) -> Added:
    """Adds one proxy without a test, given as a line (see `proxies.parse`) or as a value. Raises Refused saying what is wrong."""
    proxy = parse_line(line) if isinstance(line, str) else line
    proxy = placed(proxy, city=city, state=state, country=country, timezone=timezone)
    sealed = dataclasses.replace(proxy, password=(vault or Vault()).seal(proxy.password))
    async with pool.connection() as conn, conn.transaction():
        proxy_id, created = await store.add(conn, sealed)
        await audit.record(conn, "proxy_added", ("proxy", proxy_id), address=proxy.address, created=created)
    return Added(id=proxy_id, address=proxy.address, created=created)


async def listed(pool: Pool, *, active: bool | None = None) -> list[ProxyView]:
    """Proxies by id: all, or only the active or the others."""
    async with pool.connection() as conn:
        return await page(conn, active=active)


async def page(
    conn: Connection, *, active: bool | None = None, after: int = 0, limit: int | None = None
) -> list[ProxyView]:
    """At most `limit` proxies with ids above `after`, by id."""
    return [view(proxy) for proxy in await store.all_of(conn, active=active, after=after, limit=limit)]


async def one(conn: Connection, proxy_id: int) -> ProxyView:
    """That proxy; raises NotFound."""
    return view((await _known(conn, [proxy_id]))[0])


async def require_active(pool: Pool, settings: Settings, *, permit: Permit | None = None) -> int:
    """How many proxies are active. Where all are out for their health, some are tried on the spot: they may have come back.

    Raises Refused, with the command that adds one, when none is; and Locked where the keys of `settings` do not open their passwords.
    """
    async with pool.connection() as conn:
        standing = await store.standing(conn)
        stored = await store.all_of(conn, active=True if standing.active else None)
    check_open(Vault.from_settings(settings), stored)
    if standing.active == 0 and standing.inactive:
        await _try_some(pool, settings, permit)
        async with pool.connection() as conn:
            standing = await store.standing(conn)
    if standing.active == 0:
        raise Refused(str(NoProxy(standing)))
    return standing.active


async def _try_some(pool: Pool, settings: Settings, permit: Permit | None) -> None:
    """Puts to work those of a few inactive proxies that get through. The others are probed when they are due, as before."""
    async with pool.connection() as conn:
        chosen = await store.inactive(conn, _TRIED_AT_START)
    check = Tester(pool, settings, permit=permit)
    troubles = await asyncio.gather(*(check.trouble(proxy) for proxy in chosen))
    for proxy, trouble in zip(chosen, troubles, strict=True):
        if trouble is None:
            async with pool.connection() as conn:
                back = await store.reactivate(conn, proxy.id)
            if back:
                log.info("proxy works again", action="proxy_reactivated", proxy_id=proxy.id, address=proxy.address)


_NAMED = 3
"""Failing proxies that are named one by one."""


async def examine(pool: Pool, settings: Settings) -> Examined:
    """What a person should know of the proxies."""
    async with pool.connection() as conn:
        standing = await store.standing(conn)
        failing = await store.failing(conn, _NAMED)
        stored = await store.all_of(conn)
    named = [f"proxy {proxy.id} ({proxy.last_error or 'no reason is known'})" for proxy in failing]
    more = [f"{standing.failing - len(failing):,} more"] if standing.failing > len(failing) else []
    locked: Locked | None = None
    try:
        check_open(Vault.from_settings(settings), stored)
    except Locked as error:
        locked = error
    return Examined(standing=standing, failing=", ".join([*named, *more]), locked=locked)


async def test(
    pool: Pool,
    settings: Settings,
    *,
    proxy_ids: Sequence[int] = (),  # noqa: PT028 - a command's name, not a test of pytest
    url: str | None = None,  # noqa: PT028
    clock: Clock | None = None,  # noqa: PT028
    ca_file: str | None = None,  # noqa: PT028
    permit: Permit | None = None,  # noqa: PT028
    on_tested: Callable[[], object] = lambda: None,  # noqa: PT028
) -> list[Tested]:
    """Asks for `url` (default: the platform's base address) once through each of these proxies, or through all of them.

    Counts nothing for the proxy: a test says how it is, it does not change what is known of it, unless that is that it could not be
    tested. `permit` is the host's budget, the one
    in the database where none is given. Raises NotFound for an unknown id, Locked where a password cannot be opened.
    """
    async with pool.connection() as conn:
        chosen = await _known(conn, proxy_ids) if proxy_ids else await store.all_of(conn)
    check = Tester(pool, settings, url=url, clock=clock, ca_file=ca_file, permit=permit)
    check_open(check.vault, chosen)
    gate = asyncio.Semaphore(TESTS_AT_ONCE)
    async with pool.connection() as conn:
        await audit.record(conn, "proxies_tested", proxies=[proxy.id for proxy in chosen])

    async def one(proxy: Proxy) -> Tested:
        async with gate:
            probed = await check(proxy)
        await _note(pool, proxy, probed)
        on_tested()
        return Tested.of(proxy, probed)

    return list(await asyncio.gather(*(one(proxy) for proxy in chosen)))


async def _note(pool: Pool, proxy: Proxy, probed: Probed) -> None:
    """One that is out because it could not be tested has been tested now."""
    if proxy.is_active or not (proxy.last_error or "").startswith(UNTESTED):
        return
    reason = probed.judgement.reason
    if finding(probed) is Finding.WORKS:
        reason = (
            f"a test got through ({reason}): its next probe puts it to work, or `menuwatch proxies enable {proxy.id}`"
        )
    async with pool.connection() as conn:
        await store.tested(conn, proxy.id, reason)


async def enable(
    pool: Pool,
    settings: Settings,
    proxy_ids: Sequence[int],
    *,
    force: bool = False,
    url: str | None = None,
    clock: Clock | None = None,
    ca_file: str | None = None,
    permit: Permit | None = None,
) -> list[ProxyView]:
    """Puts proxies to work with their counters cleared.

    Each is tested first, unless `force`: one that fails is no longer disabled, but stays inactive and is tried again by itself.
    Raises NotFound, and changes nothing, for an unknown id.
    """
    numbers = list(dict.fromkeys(proxy_ids))
    async with pool.connection() as conn:
        chosen = await _known(conn, numbers)
    failed: dict[int, str] = {}
    if not force:
        check = Tester(pool, settings, url=url, clock=clock, ca_file=ca_file, permit=permit)
        check_open(check.vault, chosen)
        gate = asyncio.Semaphore(TESTS_AT_ONCE)

        async def try_one(proxy: Proxy) -> None:
            async with gate:
                if (reason := await check.trouble(proxy)) is not None:
                    failed[proxy.id] = reason

        await asyncio.gather(*(try_one(proxy) for proxy in chosen))
    async with pool.connection() as conn, conn.transaction():
        await store.enable(conn, numbers, failed=failed, probing=probing(settings.proxy_probe_seconds))
        found = [view(proxy) for proxy in await _known(conn, numbers)]
        for proxy in found:
            await audit.record(
                conn, "proxy_enabled", ("proxy", proxy.id), status=proxy.status, reason=proxy.reason, forced=force
            )
    return found


async def disable(conn: Connection, proxy_ids: Iterable[int], reason: str | None = None) -> list[ProxyView]:
    """Takes proxies out until somebody enables them, in the caller's transaction. Raises NotFound, and changes nothing, for an unknown
    id."""
    numbers = list(dict.fromkeys(proxy_ids))
    await _known(conn, numbers)
    said = (reason or "").strip() or DISABLED
    await store.disable(conn, numbers, said)
    for number in numbers:
        await audit.record(conn, "proxy_disabled", ("proxy", number), reason=said)
    return [view(proxy) for proxy in await _known(conn, numbers)]


async def remove(conn: Connection, proxy_ids: Iterable[int]) -> list[ProxyView]:
    """Deletes proxies, in the caller's transaction; returns what they were. Raises NotFound, and changes nothing, for an unknown
    id."""
    numbers = list(dict.fromkeys(proxy_ids))
    found = [view(proxy) for proxy in await _known(conn, numbers)]
    await store.remove(conn, numbers)
    for proxy in found:
        await audit.record(conn, "proxy_removed", ("proxy", proxy.id), address=proxy.address)
    return found


async def _known(conn: Connection, proxy_ids: Sequence[int]) -> list[Proxy]:
    """These proxies in the order of their numbers as given; raises NotFound."""
    found = await store.some(conn, proxy_ids)
    if missing := [str(number) for number in proxy_ids if number not in found]:
        raise NotFound(f"no proxy has the number {', '.join(missing)}: `menuwatch proxies list` shows them")
    return [found[number] for number in proxy_ids]
