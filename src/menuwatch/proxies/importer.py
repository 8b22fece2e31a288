"""Import proxies: each is tested first, and one that fails is added as inactive and probed later."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Unpack

from msgspec import Struct

from menuwatch.accounts import audit
from menuwatch.config.settings import Settings
from menuwatch.core.encryption import SecretBox
from menuwatch.core.logging import get_logger
from menuwatch.db.pool import Pool
from menuwatch.proxies import store
from menuwatch.proxies.health import probing
from menuwatch.proxies.import_file import ParsedProxy, Rejected
from menuwatch.proxies.model import Address, ProbeState, TestFailure, untried
from menuwatch.proxies.testing import CONCURRENT_TESTS, Tester, TesterOptions

log = get_logger(__name__)

_BATCH = 500
"""Proxies written per transaction; those already written are kept if the import is interrupted."""

_LATER = TestFailure.untested("it is activated once its first test succeeds, usually within minutes")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedProxy:
    """Result for the proxy on line `number`.

    `created` is false for a known proxy, which got the new password and location. `reason` says why it is not active: it failed its
    test, or an operator had disabled it (`disabled`).
    """

    number: int
    id: int
    address: str
    created: bool
    active: bool
    disabled: bool
    reason: str | None


class ImportResult(Struct, kw_only=True):
    """Result of an import. `repeated` are lines whose proxy occurs again later: the later line counts."""

    proxies: list[ImportedProxy] = []
    rejected: list[Rejected] = []
    repeated: list[int] = []

    @property
    def added(self) -> int:
        return sum(one.created for one in self.proxies)

    @property
    def updated(self) -> int:
        return len(self.proxies) - self.added

    @property
    def failed(self) -> int:
        """Number of proxies that failed their test."""
        return sum(not one.active and not one.disabled for one in self.proxies)

    @property
    def disabled(self) -> int:
        """Number of proxies that stay disabled by an operator."""
        return sum(one.disabled for one in self.proxies)


async def import_proxies(
    pool: Pool,
    settings: Settings,
    parsed: Sequence[ParsedProxy],
    rejected: Sequence[Rejected] = (),
    *,
    test: bool = True,
    later: bool = False,
    on_done: Callable[[int], object] = lambda _: None,
    **options: Unpack[TesterOptions],
) -> ImportResult:
    """Import these proxies, each after a test request.

    Without `test` they are added as active, or with `later` as inactive until their first probe. `on_done` receives the number of
    newly processed ones. Raises Refused for an invalid `url`.
    """
    latest = {one.proxy.key: one for one in parsed}
    result = ImportResult(rejected=list(rejected))
    result.repeated = [one.number for one in parsed if latest[one.proxy.key] is not one]
    writer = _BatchWriter(pool, settings, result)
    if not test:
        for start in range(0, len(latest), _BATCH):
            batch = list(latest.values())[start : start + _BATCH]
            await writer.put(batch, {one.proxy.key: _LATER for one in batch} if later else {})
            on_done(len(batch))
    else:
        tester = Tester(pool, settings, **options)
        await _test_and_put(writer, tester, iter(latest.values()), on_done)
    result.proxies.sort(key=lambda one: one.number)
    log.info(
        "proxy import completed",
        action="proxy_intake_done",
        added=result.added,
        updated=result.updated,
        rejected=len(result.rejected),
        inactive=result.failed,
    )
    return result


async def _test_and_put(
    writer: _BatchWriter, tester: Tester, waiting: Iterator[ParsedProxy], on_done: Callable[[int], object]
) -> None:
    ready: list[ParsedProxy] = []
    failed: dict[Address, TestFailure] = {}

    async def flush() -> None:
        batch, reasons = list(ready), dict(failed)
        ready.clear()
        failed.clear()
        await writer.put(batch, reasons)

    async def work() -> None:
        for one in waiting:
            failure = await tester.find_failure(untried(one.proxy))
            ready.append(one)
            if failure is not None:
                failed[one.proxy.key] = failure
            on_done(1)
            if len(ready) >= _BATCH:
                await flush()

    workers = [asyncio.create_task(work()) for _ in range(CONCURRENT_TESTS)]
    try:
        await asyncio.gather(*workers)
    finally:
        for each in workers:
            each.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await flush()


class _BatchWriter:
    """Writes proxies and collects the results."""

    def __init__(self, pool: Pool, settings: Settings, result: ImportResult) -> None:
        self._pool = pool
        self._secret_box = SecretBox(settings.secret_key)
        self._probing = probing(settings.proxy_probe_seconds)
        self._result = result

    async def put(self, batch: Sequence[ParsedProxy], failed: dict[Address, TestFailure]) -> None:
        if not batch:
            return
        new = [dataclasses.replace(one.proxy, password=self._secret_box.encrypt(one.proxy.password)) for one in batch]
        async with self._pool.connection() as conn, conn.transaction():
            put = await store.put(conn, new, failed=failed, probing=self._probing)
            ids = [result.id for result in put.values()]
            await audit.record(
                conn,
                "proxies_imported",
                ("proxy", ids[0]) if len(ids) == 1 else None,
                proxies=ids,
                created=sum(result.created for result in put.values()),
                failed=sum(failure.state is ProbeState.FAILED for failure in failed.values()),
                untested=sum(failure.state is ProbeState.UNTESTED for failure in failed.values()),
            )
        for parsed in batch:
            result, failure = put[parsed.proxy.key], failed.get(parsed.proxy.key)
            imported = ImportedProxy(
                number=parsed.number,
                id=result.id,
                address=parsed.proxy.address,
                created=result.created,
                active=result.is_active,
                disabled=result.disabled_reason is not None,
                reason=result.disabled_reason or (failure.reason if failure is not None else None),
            )
            self._result.proxies.append(imported)
