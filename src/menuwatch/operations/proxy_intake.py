"""Bringing in proxies, one or ten thousand: each is tested, and one that fails comes in inactive and is tried again by itself."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from menuwatch.core.clock import Clock
from menuwatch.core.settings import Settings
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Pool
from menuwatch.fetch.probe import Permit
from menuwatch.operations import audit
from menuwatch.operations.proxy_trial import TESTS_AT_ONCE, Tester
from menuwatch.proxies import store
from menuwatch.proxies.health import probing
from menuwatch.proxies.model import UNTESTED, Address, Untested, untried
from menuwatch.proxies.sheet import Given, Rejected
from menuwatch.proxies.vault import Vault

log = get_logger(__name__)

_BATCH = 500
"""Proxies that are written at once. Whoever breaks off a long test keeps what was written."""

_LATER = Untested(f"{UNTESTED}its first probe does that, within a few minutes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What became of one proxy that was given on line `number`.

    `created` is false for one that was known and got its new password and place. `reason` says why it is not active: it failed its
    test, or an operator had taken it out (`disabled`).
    """

    number: int
    id: int
    address: str
    created: bool
    active: bool
    disabled: bool
    reason: str | None


@dataclass(slots=True, kw_only=True)
class Intake:
    """What became of a list. `repeated` are lines whose proxy stands on a later line again: the later one counts."""

    brought: list[Brought] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    repeated: list[int] = field(default_factory=list)

    @property
    def added(self) -> int:
        return sum(one.created for one in self.brought)

    @property
    def updated(self) -> int:
        return len(self.brought) - self.added

    @property
    def failed(self) -> int:
        """How many failed their test."""
        return sum(not one.active and not one.disabled for one in self.brought)

    @property
    def disabled(self) -> int:
        """How many stay out because an operator had taken them out."""
        return sum(one.disabled for one in self.brought)


async def bring_in(
    pool: Pool,
    settings: Settings,
    given: Sequence[Given],
    rejected: Sequence[Rejected] = (),
    *,
    test: bool = True,
    later: bool = False,
    url: str | None = None,
    clock: Clock | None = None,
    ca_file: str | None = None,
    permit: Permit | None = None,
    on_done: Callable[[int], object] = lambda _: None,
) -> Intake:
    """Puts these proxies in, each after one request through it to `url` (default: the platform's base address).

    Not so where `test` is false: they are put to work untried, or, with `later`, come in inactive, and their first probe tries them.
    `on_done` is told how many more are done. Raises Refused for a `url` that cannot be asked for.
    """
    once = {one.proxy.key: one for one in given}
    intake = Intake(rejected=list(rejected))
    intake.repeated = [one.number for one in given if once[one.proxy.key] is not one]
    desk = _Desk(pool, settings, intake)
    if not test:
        for start in range(0, len(once), _BATCH):
            batch = list(once.values())[start : start + _BATCH]
            await desk.put(batch, {one.proxy.key: _LATER for one in batch} if later else {})
            on_done(len(batch))
    else:
        tester = Tester(pool, settings, url=url, clock=clock, ca_file=ca_file, permit=permit)
        await _test_and_put(desk, tester, iter(once.values()), on_done)
    intake.brought.sort(key=lambda one: one.number)
    log.info(
        "all proxies are brought in",
        action="proxy_intake_done",
        added=intake.added,
        updated=intake.updated,
        rejected=len(intake.rejected),
        inactive=intake.failed,
    )
    return intake


async def _test_and_put(
    desk: _Desk, tester: Tester, waiting: Iterator[Given], on_done: Callable[[int], object]
) -> None:
    ready: list[Given] = []
    failed: dict[Address, str] = {}

    async def hand_in() -> None:
        batch, reasons = list(ready), dict(failed)
        ready.clear()
        failed.clear()
        await desk.put(batch, reasons)

    async def work() -> None:
        for one in waiting:
            reason = await tester.trouble(untried(one.proxy))
            ready.append(one)
            if reason is not None:
                failed[one.proxy.key] = reason
            on_done(1)
            if len(ready) >= _BATCH:
                await hand_in()

    crew = [asyncio.create_task(work()) for _ in range(TESTS_AT_ONCE)]
    try:
        await asyncio.gather(*crew)
    finally:
        for each in crew:
            each.cancel()
        await asyncio.gather(*crew, return_exceptions=True)
        await hand_in()


class _Desk:
    """Writes proxies and notes what became of them."""

    def __init__(self, pool: Pool, settings: Settings, intake: Intake) -> None:
        self._pool = pool
        self._vault = Vault.from_settings(settings)
        self._probing = probing(settings.proxy_probe_seconds)
        self._intake = intake

    async def put(self, batch: Sequence[Given], failed: dict[Address, str]) -> None:
        if not batch:
            return
        new = [dataclasses.replace(one.proxy, password=self._vault.seal(one.proxy.password)) for one in batch]
        async with self._pool.connection() as conn, conn.transaction():
            found = await store.put(conn, new, failed=failed, probing=self._probing)
            await audit.record(
                conn,
                "proxies_brought_in",
                ("proxy", next(iter(found.values())).id) if len(found) == 1 else None,
                proxies=[made.id for made in found.values()],
                created=sum(made.created for made in found.values()),
                failed=len(failed),
            )
        for one in batch:
            made = found[one.proxy.key]
            self._intake.brought.append(
                Brought(
                    number=one.number,
                    id=made.id,
                    address=one.proxy.address,
                    created=made.created,
                    active=made.is_active,
                    disabled=made.disabled_reason is not None,
                    reason=made.disabled_reason or failed.get(one.proxy.key),
                )
            )
