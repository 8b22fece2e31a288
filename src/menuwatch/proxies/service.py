"""Proxies: list, location, tests, disable, enable, remove. No result holds a password."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, Literal, TypeVar, Unpack

import msgspec
from msgspec import Struct

from menuwatch.accounts import audit
from menuwatch.config.settings import Settings
from menuwatch.core.encryption import ENCRYPTED, DecryptionError, SecretBox, is_encrypted
from menuwatch.core.errors import NotFound, PreconditionFailed, Refused
from menuwatch.core.logging import get_logger
from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection, Pool
from menuwatch.db.query import fetch_structs, like_pattern
from menuwatch.fetch.probe import Permit, ProbeResponse, ProbeResult, probe_result
from menuwatch.hosts.scores import HALF_LIFE, NEGLIGIBLE
from menuwatch.proxies import model, store
from menuwatch.proxies.health import probing
from menuwatch.proxies.location import LOCATION, Location
from menuwatch.proxies.model import NewProxy, NoProxy, ProbeState, Protocol, ProxyCounts, TestFailure
from menuwatch.proxies.parse import parse_line
from menuwatch.proxies.passwords import check_passwords
from menuwatch.proxies.tags import parse_tags
from menuwatch.proxies.testing import CONCURRENT_TESTS, ProxyTest, Tester, TesterOptions

log = get_logger(__name__)
_q = sql.load(__package__)

_PROBED_AT_START = 8
_T = TypeVar("_T")

DISABLED = "disabled by an operator"
"""The default reason."""

Status = Literal["active", "failing", "untested", "inactive", "disabled"]

SORTS = (
    "id", "-id", "address", "-address", "-success", "success", "-failures", "failures", "latency", "-latency", "-used", "used",
)  # fmt: skip
"""Orders of proxies; `failures`: faults or 403 responses in a row, whichever are more; `-` descends."""


class Proxy(Struct, kw_only=True, frozen=True):
    """A proxy and its health, without its password."""

    id: int
    address: Annotated[str, doc("Address without the password.")]
    protocol: Protocol
    host: str
    port: int
    username: str | None
    has_password: bool
    password_sealed: Annotated[bool, doc("Whether the password is stored encrypted (SECRET_KEY).")]
    status: Annotated[
        Literal["active", "untested", "inactive", "disabled"],
        doc(
            "`untested`: not used before its first test, `inactive`: failed its health checks; both are tested next at `probe_at`. "
            "`disabled`: by an operator."
        ),
    ]
    reason: Annotated[str | None, doc("Why it is not active; null if it is.")]
    city: Annotated[str | None, doc("City of the exit IP; null if unknown.")]
    state: Annotated[str | None, doc("State or province of the exit IP (two letters); null if unknown.")]
    country: Annotated[str | None, doc("Country of the exit IP (two letters); null if unknown.")]
    timezone: Annotated[str | None, doc("IANA time zone of the exit IP; null if unknown.")]
    tags: Annotated[list[str], doc("Labels set by operators, sorted.")]
    success_rate: Annotated[
        float | None, doc("Share of recent requests that succeeded, 0 to 1; null if there were none.")
    ]
    success_count: int
    failure_count: Annotated[int, doc("Consecutive failures of the proxy; five deactivate it.")]
    consecutive_403_count: Annotated[int, doc("Consecutive 403 responses; five deactivate it.")]
    avg_response_time_ms: Annotated[float | None, doc("Moving average of the response time, in ms.")]
    last_used_at: Instant | None
    last_failure_at: Instant | None
    last_error: Annotated[str | None, doc("Error of the last failure.")]
    deactivated_at: Annotated[Instant | None, doc("When its health checks deactivated it; null if they did not.")]
    disabled_at: Annotated[Instant | None, doc("When an operator disabled it; null if not disabled.")]
    disabled_reason: Annotated[str | None, doc("Reason given by the operator.")]
    probe_at: Annotated[Instant | None, doc("Time of the next test by a worker; null if none is planned.")]
    probe_failures: Annotated[int, doc("Consecutive failed probes.")]
    created_at: Instant
    updated_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyFilter:
    """Which proxies; None takes all. `failing` is an active proxy with three failures or refusals in a row; `q` is text in address or
    location."""

    ids: Sequence[int] | None = None
    active: bool | None = None
    status: Status | None = None
    tag: str | None = None
    q: str | None = None

    def values(self) -> dict[str, object]:
        """Parameters of the statements."""
        return {
            "ids": None if self.ids is None else list(self.ids),
            "active": self.active,
            "status": self.status,
            "tag": self.tag,
            "q": like_pattern(self.q) if self.q else None,
            "failing": store.FAILING,
        }


class AddedProxy(Struct, frozen=True, kw_only=True):
    """`created` is false for a known proxy, which got the new password and location."""

    id: int
    address: str
    created: bool


class ProxyHealthReport(Struct, frozen=True, kw_only=True):
    """`failing` names some of the active proxies that fail, and why; `locked`: passwords that cannot be decrypted; `in_clear` of the
    `passwords` are not encrypted."""

    counts: ProxyCounts
    failing: str
    locked: DecryptionError | None
    passwords: int
    in_clear: int


async def list_proxies(
    conn: Connection,
    where: ProxyFilter | None = None,
    *,
    after: int = 0,
    limit: int | None = None,
    sort: str = SORTS[0],
    offset: int = 0,
) -> list[Proxy]:
    """Proxies by id, those after the id `after`; or in the order `sort` (one of SORTS), without the first `offset`."""
    values = {**(where or ProxyFilter()).values(), "after": after, "limit": limit, "sort": sort, "offset": offset}
    values |= {"encrypted": ENCRYPTED, "half_life": HALF_LIFE, "negligible": NEGLIGIBLE}
    return await fetch_structs(conn, Proxy, _q.list_proxies, values, prepare=False)


async def get_proxies(conn: Connection, proxy_ids: Sequence[int]) -> list[Proxy]:
    """In the order of the ids; raises NotFound for an unknown one."""
    proxies = {proxy.id: proxy for proxy in await list_proxies(conn, ProxyFilter(ids=proxy_ids))}
    _check_known(proxies, proxy_ids)
    return [proxies[proxy_id] for proxy_id in proxy_ids]


async def get_proxy(conn: Connection, proxy_id: int) -> Proxy:
    """Raises NotFound."""
    return (await get_proxies(conn, [proxy_id]))[0]


async def _stored(conn: Connection, proxy_ids: Sequence[int]) -> list[model.Proxy]:
    """The rows with their passwords, in the order of the ids; raises NotFound."""
    rows = await store.some(conn, proxy_ids)
    _check_known(rows, proxy_ids)
    return [rows[proxy_id] for proxy_id in proxy_ids]


def _check_known(known: Mapping[int, object], proxy_ids: Sequence[int]) -> None:
    if missing := [str(proxy_id) for proxy_id in proxy_ids if proxy_id not in known]:
        does = "proxy {} does" if len(missing) == 1 else "proxies {} do"
        raise NotFound(f"{does.format(', '.join(missing))} not exist: see `menuwatch proxies list`")


def details_etag(proxy: Proxy) -> str:
    """Changes with the proxy's location and tags."""
    details = [getattr(proxy, name) for name in (*LOCATION, "tags")]
    return blake2b(msgspec.json.encode(details), digest_size=6).hexdigest()


async def set_details(
    conn: Connection,
    proxy_id: int,
    location: Mapping[str, str | None],
    *,
    tags: Iterable[str] | None = None,
    etag: str | None = None,
) -> Proxy:
    """Sets the given ones of `city`, `state`, `country`, `timezone` (None: unknown), and the tags, in the caller's transaction.
    Raises NotFound, InvalidField, and PreconditionFailed if the details are no longer those of `etag`."""
    await store.lock(conn, [proxy_id])
    before = await get_proxy(conn, proxy_id)
    if etag is not None and details_etag(before) != etag:
        raise PreconditionFailed(f"proxy {proxy_id} was changed in the meantime")
    new = Location.parse(**{name: getattr(before, name) for name in LOCATION} | dict(location))
    new_tags = before.tags if tags is None else parse_tags(tags)
    await store.save_details(conn, proxy_id, new, new_tags)
    changes = msgspec.structs.asdict(new) | ({} if tags is None else {"tags": new_tags})
    await audit.record(conn, "proxy_placed", ("proxy", proxy_id), **changes)
    return await get_proxy(conn, proxy_id)


async def add(
    pool: Pool, line: str | NewProxy, *, secret_box: SecretBox | None = None, **location: str | None
) -> AddedProxy:
    """Adds one proxy without a test, given as a line (see `proxies.parse`) or as a value; `location` are the fields of Location.
    Raises Refused."""
    proxy = Location.parse(**location).of(parse_line(line) if isinstance(line, str) else line)
    encrypted = dataclasses.replace(proxy, password=(secret_box or SecretBox()).encrypt(proxy.password))
    async with pool.connection() as conn, conn.transaction():
        proxy_id, created = await store.add(conn, encrypted)
        await audit.record(conn, "proxy_added", ("proxy", proxy_id), address=proxy.address, created=created)
    return AddedProxy(id=proxy_id, address=proxy.address, created=created)


async def require_active(pool: Pool, settings: Settings, *, permit: Permit | None = None) -> int:
    """The number of active proxies. If all are inactive, some are tested first.

    Raises Refused, with the command that adds one, if none is active; DecryptionError if the keys do not decrypt the passwords.
    """
    async with pool.connection() as conn:
        counts = await store.count(conn)
        stored = await store.all_of(conn, active=True if counts.active else None)
    check_passwords(SecretBox(settings.secret_key), stored)
    if counts.active == 0 and counts.inactive + counts.untested:
        await _probe_inactive(pool, settings, permit)
        async with pool.connection() as conn:
            counts = await store.count(conn)
    if counts.active == 0:
        raise Refused(str(NoProxy(counts)))
    return counts.active


async def _probe_inactive(pool: Pool, settings: Settings, permit: Permit | None) -> None:
    """Activate a few inactive proxies that pass a test. The others are probed when they are due."""
    async with pool.connection() as conn:
        inactive = await store.inactive(conn, _PROBED_AT_START)
    failures = await _run_concurrently(Tester(pool, settings, permit=permit).find_failure, inactive)
    for proxy, failure in zip(inactive, failures, strict=True):
        if failure is None:
            async with pool.connection() as conn:
                reactivated = await store.reactivate(conn, proxy.id)
            if reactivated:
                log.info("proxy reactivated", action="proxy_reactivated", proxy_id=proxy.id, address=proxy.address)


_NAMED = 3
"""Most failing proxies named in a message."""


async def health_report(pool: Pool, settings: Settings) -> ProxyHealthReport:
    """For `menuwatch doctor`."""
    async with pool.connection() as conn:
        counts = await store.count(conn)
        failing = await store.failing(conn, _NAMED)
        stored = await store.all_of(conn)
    named = [f"proxy {proxy.id} ({proxy.last_error or 'unknown reason'})" for proxy in failing]
    more = [f"{counts.failing - len(failing):,} more"] if counts.failing > len(failing) else []
    locked: DecryptionError | None = None
    try:
        check_passwords(SecretBox(settings.secret_key), stored)
    except DecryptionError as error:
        locked = error
    passwords = [proxy.password for proxy in stored if proxy.password is not None]
    return ProxyHealthReport(
        counts=counts,
        failing=", ".join([*named, *more]),
        locked=locked,
        passwords=len(passwords),
        in_clear=sum(not is_encrypted(password) for password in passwords),
    )


async def run_tests(
    pool: Pool,
    settings: Settings,
    *,
    proxy_ids: Sequence[int] = (),
    on_tested: Callable[[], object] = lambda: None,
    **options: Unpack[TesterOptions],
) -> list[ProxyTest]:
    """Makes a request through each of these proxies, or through all of them.

    A test changes the health of a proxy only if it could not be tested before. Raises NotFound, and DecryptionError for a password.
    """
    async with pool.connection() as conn:
        proxies = await _stored(conn, proxy_ids) if proxy_ids else await store.all_of(conn)
    tester = Tester(pool, settings, **options)
    check_passwords(tester.secret_box, proxies)
    async with pool.connection() as conn:
        await audit.record(conn, "proxies_tested", proxies=[proxy.id for proxy in proxies])

    async def run(proxy: model.Proxy) -> ProxyTest:
        probed = await tester(proxy)
        await _record_test(pool, proxy, probed)
        on_tested()
        return ProxyTest.of(proxy, probed)

    return await _run_concurrently(run, proxies)


async def _run_concurrently(run: Callable[[model.Proxy], Awaitable[_T]], proxies: Sequence[model.Proxy]) -> list[_T]:
    """The results in order; at most CONCURRENT_TESTS run at once."""
    limit = asyncio.Semaphore(CONCURRENT_TESTS)

    async def run_one(proxy: model.Proxy) -> _T:
        async with limit:
            return await run(proxy)

    return list(await asyncio.gather(*map(run_one, proxies)))


async def _record_test(pool: Pool, proxy: model.Proxy, probed: ProbeResponse) -> None:
    """Saves the result for a proxy that is inactive because it could not be tested before."""
    if proxy.is_active or proxy.probe_state != ProbeState.UNTESTED:
        return
    reason = probed.classification.reason
    if probe_result(probed) is ProbeResult.WORKS:
        reason = (
            f"a test succeeded ({reason}): the next probe activates it, or run `menuwatch proxies enable {proxy.id}`"
        )
    async with pool.connection() as conn:
        await store.tested(conn, proxy.id, reason, failed=probe_result(probed) is ProbeResult.FAILS)


async def enable(
    pool: Pool,
    settings: Settings,
    proxy_ids: Sequence[int],
    *,
    force: bool = False,
    **options: Unpack[TesterOptions],
) -> list[Proxy]:
    """Activates proxies and resets their counters. Each is tested first, unless `force`: one that fails is no longer disabled, but
    inactive until a probe succeeds. Raises NotFound, and changes nothing, for an unknown id."""
    ids = list(dict.fromkeys(proxy_ids))
    async with pool.connection() as conn:
        stored = await _stored(conn, ids)
    failed: dict[int, TestFailure] = {}
    if not force:
        tester = Tester(pool, settings, **options)
        check_passwords(tester.secret_box, stored)
        failures = await _run_concurrently(tester.find_failure, stored)
        failed = {proxy.id: failure for proxy, failure in zip(stored, failures, strict=True) if failure is not None}
    async with pool.connection() as conn, conn.transaction():
        await store.enable(conn, ids, failed=failed, probing=probing(settings.proxy_probe_seconds))
        proxies = await get_proxies(conn, ids)
        for proxy in proxies:
            await audit.record(
                conn, "proxy_enabled", ("proxy", proxy.id), status=proxy.status, reason=proxy.reason, forced=force
            )
    return proxies


async def disable(conn: Connection, proxy_ids: Iterable[int], reason: str | None = None) -> list[Proxy]:
    """Disables proxies until they are enabled again, in the caller's transaction. Raises NotFound, and changes nothing, for an
    unknown id."""
    ids = list(dict.fromkeys(proxy_ids))
    await _stored(conn, ids)
    reason = (reason or "").strip() or DISABLED
    await store.disable(conn, ids, reason)
    for proxy_id in ids:
        await audit.record(conn, "proxy_disabled", ("proxy", proxy_id), reason=reason)
    return await get_proxies(conn, ids)


async def remove(conn: Connection, proxy_ids: Iterable[int]) -> list[Proxy]:
    """Deletes proxies, in the caller's transaction; returns them as they were. Raises NotFound, and changes nothing, for an unknown
    id."""
    ids = list(dict.fromkeys(proxy_ids))
    proxies = await get_proxies(conn, ids)
    await store.remove(conn, ids)
    for proxy in proxies:
        await audit.record(conn, "proxy_removed", ("proxy", proxy.id), address=proxy.address)
    return proxies
