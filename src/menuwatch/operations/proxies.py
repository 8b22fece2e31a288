"""Proxies for people: add, list, test. No answer of these holds a password."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.errors import Refused
from menuwatch.core.settings import Settings
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Pool
from menuwatch.fetch.probe import probe
from menuwatch.fetch.verdict import Verdict
from menuwatch.proxies import store
from menuwatch.proxies.model import NewProxy, NoProxy, Proxy
from menuwatch.proxies.parse import Rejected, parse_line, parse_lines
from menuwatch.proxies.vault import Vault

log = get_logger(__name__)

_TESTS_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyView:
    """A proxy as people see it. `address` is all of it but the password; `status` is `active` or `inactive`."""

    id: int
    address: str
    protocol: str
    host: str
    port: int
    username: str | None
    has_password: bool
    status: str
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What became of one proxy that was given: `created` is false for one that was known and got its new password and place."""

    id: int
    address: str
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """One request through one proxy. `ok`: the target answered, whatever it said, so the proxy does its part. `reason` says what
    came of it; `elapsed_ms` from the call to the end."""

    id: int
    address: str
    ok: bool
    verdict: Verdict
    status: int | None
    elapsed_ms: float
    reason: str


def view(proxy: Proxy) -> ProxyView:
    """The proxy without its password."""
    shared = {spec.name for spec in dataclasses.fields(ProxyView)} & {spec.name for spec in dataclasses.fields(Proxy)}
    return ProxyView(
        address=proxy.address,
        has_password=bool(proxy.password),
        status="active" if proxy.is_active else "inactive",
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
) -> Added:
    """Adds one proxy, given as a line (see `proxies.parse`) or as a value. Raises Refused saying what is wrong with it."""
    proxy = parse_line(line) if isinstance(line, str) else line
    proxy = dataclasses.replace(
        proxy,
        city=city or proxy.city,
        state=_code(state, "state") or proxy.state,
        country=_code(country, "country") or proxy.country,
        timezone=timezone or proxy.timezone,
    )
    async with pool.connection() as conn:
        proxy_id, created = await store.add(conn, proxy)
    log.info("proxy added", action="proxy_added", proxy_id=proxy_id, address=proxy.address, created=created)
    return Added(id=proxy_id, address=proxy.address, created=created)


async def add_lines(pool: Pool, lines: Iterable[str]) -> tuple[list[Added], list[Rejected]]:
    """Adds the proxies of a list; lines that are none come back with their number and why."""
    proxies, rejected = parse_lines(lines)
    return [await add(pool, proxy) for proxy in proxies], rejected


async def listed(pool: Pool, *, active: bool | None = None) -> list[ProxyView]:
    """Proxies by id: all, or only the active or the inactive."""
    async with pool.connection() as conn:
        return [view(proxy) for proxy in await store.all_of(conn, active=active)]


async def require_active(pool: Pool) -> int:
    """How many proxies are active; raises Refused, with the command that adds one, when none is."""
    async with pool.connection() as conn:
        count = await store.active_count(conn)
    if count == 0:
        raise Refused(str(NoProxy()))
    return count


async def test(
    pool: Pool,
    settings: Settings,
    *,
    proxy_ids: Sequence[int] = (),  # noqa: PT028 - a command's name, not a test of pytest
    url: str | None = None,  # noqa: PT028
    clock: Clock | None = None,  # noqa: PT028
    ca_file: str | None = None,  # noqa: PT028
) -> list[Tested]:
    """Asks for `url` (default: the platform's base address) once through each of these proxies, or through all of them.

    Counts nothing: a test says how a proxy is, it does not change what is known of it. Raises Refused for an unknown id.
    """
    async with pool.connection() as conn:
        known = {proxy.id: proxy for proxy in await store.all_of(conn)}
    if missing := [str(number) for number in proxy_ids if number not in known]:
        raise Refused(f"no proxy has the number {', '.join(missing)}: `menuwatch proxies list` shows them")
    chosen = [known[number] for number in proxy_ids] or list(known.values())
    vault = Vault.from_settings(settings)
    gate = asyncio.Semaphore(_TESTS_AT_ONCE)

    async def one(proxy: Proxy) -> Tested:
        async with gate:
            return await _check_one(
                proxy, settings, vault, url or settings.dutchie_base_url, clock or SystemClock(), ca_file
            )

    return list(await asyncio.gather(*(one(proxy) for proxy in chosen)))


async def _check_one(
    proxy: Proxy, settings: Settings, vault: Vault, url: str, clock: Clock, ca_file: str | None
) -> Tested:
    probed = await probe(proxy, url, settings, vault, clock=clock, ca_file=ca_file)
    return Tested(
        id=proxy.id,
        address=proxy.address,
        ok=probed.answered,
        verdict=probed.judgement.verdict,
        status=probed.status,
        elapsed_ms=probed.elapsed_ms,
        reason=probed.judgement.reason,
    )


def _code(value: str | None, name: str) -> str | None:
    if value is None:
        return None
    if len(value) != 2 or not value.isascii() or not value.isalpha():
        raise Refused(f"the {name} of a proxy is two letters, as {'AZ' if name == 'state' else 'US'}: got {value!r}")
    return value.upper()
