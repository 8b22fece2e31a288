"""Provide identities and slots by combining leases, scores, browsers, idle identities and the report writer. One per process.

Every write is a short transaction of its own, never part of a task's: how a host responded is a fact regardless of the task's outcome.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg
from msgspec import Struct
from psycopg.rows import dict_row

from menuwatch.config.settings import Settings
from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.errors import MenuwatchError
from menuwatch.db import sql
from menuwatch.db.pool import Pool
from menuwatch.fetch import leases
from menuwatch.fetch.choose_identity import choose_identity, locale_behind, rank_proxies
from menuwatch.fetch.identity_pool import IdleIdentityPool, LeasedIdentity, PooledIdentity, credentials_key
from menuwatch.fetch.leases import Denied, Lease, SlotQueue
from menuwatch.fetch.profiles import PROFILES, Profile
from menuwatch.fetch.reports import Report, ReportWriter
from menuwatch.fetch.robots import Policy, RobotsGuard
from menuwatch.fetch.session import FetchSession, Pause, Permit
from menuwatch.fetch.transport import Transport
from menuwatch.hosts import store as hosts
from menuwatch.hosts.model import Limits
from menuwatch.hosts.rules import Delays, RateLimited
from menuwatch.hosts.scores import Score
from menuwatch.proxies import store as proxy_rows
from menuwatch.proxies.health import probing
from menuwatch.proxies.model import NoProxy, Proxy

_q = sql.load(__package__)

_VIEW_SECONDS = 2.0
"""Longest age in seconds of the proxies and scores used for a selection; leases are granted on current data only."""
_RECHECK_SECONDS = 0.1
"""After waiting this many seconds for its slot, a session checks again whether the host takes requests: the host may have asked
another process to slow down."""
_LATE_TURNS = 2
"""Missed slots that a session may replace: many late requests at once would exceed the burst limit."""
_CLOSING_SECONDS = 5.0


class _View(Struct, frozen=True):
    """Snapshot of the pool, and the scores at one host."""

    at: float
    proxies: Mapping[int, Proxy]
    scores: Mapping[int, Score]
    profiles: Mapping[str, Score]


class Rotator:
    """`ca_file`: certificates to trust instead of the built-in ones, for networks and tests with their own. `unseal` decrypts a
    stored password; `robots` says how a host's robots.txt is applied, where it is not None."""

    def __init__(
        self,
        pool: Pool,
        settings: Settings,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        ca_file: str | None = None,
        profiles: Sequence[Profile] = PROFILES,
        unseal: Callable[[Proxy], Proxy] = lambda proxy: proxy,
        on_report: Callable[[Report], None] = lambda _: None,
        robots: Callable[[str], Policy | None] = lambda _: None,
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()  # noqa: S311 - a choice of browsers, no secret
        self._ca_file = ca_file
        self._profiles = profiles
        self._unseal = unseal
        self._writer = ReportWriter(
            pool,
            delays=Delays.from_settings(settings),
            probing=probing(settings.proxy_probe_seconds),
            on_written=on_report,
        )
        self._limits = Limits.from_settings(settings)
        lease_seconds = max(settings.fetch_timeout_seconds, 5.0)
        self._robots_guard = RobotsGuard(pool, limits=self._limits, policy=robots, lease_seconds=lease_seconds)
        self._idle = IdleIdentityPool()
        self._held: set[int] = set()
        self._orphaned_leases: set[asyncio.Task[None]] = set()
        """Tasks that release leases of sessions cancelled while acquiring them."""
        self._views: dict[str, _View] = {}
        self._slots: dict[str, SlotQueue] = {}
        self._last_used: dict[str, dict[int, float]] = {}
        self._lease_seconds = 60.0 + 2 * settings.fetch_timeout_seconds
        """Duration of a lease in seconds: longer than any request."""

    @asynccontextmanager
    async def open(
        self,
        *,
        task_id: int | None,
        task_attempt: int | None = None,
        dispensary_id: int | None,
        state: str | None,
        hosts: Collection[str] = (),
        pause: Pause = asyncio.sleep,
        permit: Permit | None = None,
        robots: Policy | None = None,
    ) -> AsyncIterator[FetchSession]:
        """Open a session for one task: one identity for all its requests. `state` is the store's, in two letters.

        `hosts` are those that redirects may lead to, besides the requested one; `pause` waits for a slot. `permit` is called right
        before each request, which is not made if it raises. `robots` applies to hosts without a policy of their own.
        """
        session = FetchSession(
            self,
            task_id=task_id,
            task_attempt=task_attempt,
            dispensary_id=dispensary_id,
            state=state,
            hosts=hosts,
            clock=self._clock,
            retry_base_seconds=self._settings.fetch_retry_base_seconds,
            rng=self._rng,
            pause=pause,
            permit=permit,
            robots=robots,
        )
        try:
            yield session
        finally:
            await session.close()

    @property
    def idle(self) -> int:
        """Number of idle identities."""
        return len(self._idle)

    @property
    def leases(self) -> int:
        """Number of identities of this process that are in use at a host."""
        return len(self._held)

    async def close(self) -> None:
        """Close the idle identities after all reports are written; call it when no session is open."""
        if self._orphaned_leases:
            await asyncio.wait(self._orphaned_leases, timeout=_CLOSING_SECONDS)
        await self._writer.close()
        await self._idle.clear()

    async def acquire(
        self,
        host: str,
        *,
        task_id: int | None,
        state: str | None,
        avoid: Collection[int],
        profiles: Collection[str],
        release_lease_id: int | None,
        max_wait: float,
    ) -> LeasedIdentity:
        """Lease an identity for the host. Proxies in `avoid` and refused `profiles` only if there is no other.

        `release_lease_id` is the lease to give back; `max_wait` limits the wait for the first slot, in seconds. Raises Denied and
        NoProxy.
        """
        view = await self._view(host)
        if not view.proxies:
            view = await self._view(host, fresh=True)
        if not view.proxies:
            async with self._pool.connection() as conn:
                raise NoProxy(await proxy_rows.count(conn))
        last_used = self._last_used.setdefault(host, {})
        ranked = rank_proxies(view.proxies, scores=view.scores, last_used=last_used, avoid=avoid, rng=self._rng)
        self._held.discard(release_lease_id or 0)  # runs to its end even if the call is cancelled
        lease = await self._leased(host, ranked, task_id=task_id, max_wait=max_wait, release_lease_id=release_lease_id)
        self._held.add(lease.id)
        last_used[lease.proxy_id] = time.time()  # in addition to the stored last_used_at
        try:
            return self._attach_identity(lease, view, state, profiles)
        except Exception:
            await self.report(Report(leases=[lease.id]))
            raise

    def _attach_identity(
        self, lease: Lease, view: _View, state: str | None, refused: Collection[str]
    ) -> LeasedIdentity:
        """Attach an identity to the lease: an idle one, or a new one."""
        host, proxy = lease.host, view.proxies[lease.proxy_id]
        pooled = self._idle.take(host, proxy, locale_behind(proxy, state), avoid=refused)
        if pooled is None:
            pooled = PooledIdentity(
                host,
                self._build_transport(proxy, view, state, {*refused, self._idle.last(host, proxy.id) or ""}),
                time.monotonic(),
                credentials_key(proxy),
            )
        identity = pooled.transport.identity
        return LeasedIdentity(
            lease=lease,
            pooled=pooled,
            proxy_score=view.scores.get(proxy.id, Score()),
            profile_score=view.profiles.get(identity.profile.name, Score()),
        )

    def _build_transport(self, proxy: Proxy, view: _View, state: str | None, avoid: Collection[str]) -> Transport:
        identity = choose_identity(
            self._unseal(proxy),
            store_state=state,
            rng=self._rng,
            today=self._clock.now().date(),
            profiles=self._profiles,
            avoid=avoid,
            scores=view.profiles,
        )
        return Transport(
            identity,
            timeout_seconds=self._settings.fetch_timeout_seconds,
            max_bytes=self._settings.fetch_max_bytes,
            ca_file=self._ca_file,
        )

    async def _leased(self, host: str, ranked: Sequence[int], **how: Any) -> Lease:
        """As `_lease`, safe against cancellation: an orphaned lease would block the proxy until it expires."""
        asking = asyncio.create_task(self._lease(host, ranked, **how))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            ending = asyncio.create_task(self._end_orphaned(asking))
            self._orphaned_leases.add(ending)
            ending.add_done_callback(self._orphaned_leases.discard)
            raise

    async def _end_orphaned(self, asking: asyncio.Task[Lease]) -> None:
        with suppress(MenuwatchError, psycopg.Error):
            lease = await asking
            await self.report(Report(leases=[lease.id]))

    async def _lease(
        self, host: str, ranked: Sequence[int], *, task_id: int | None, max_wait: float, release_lease_id: int | None
    ) -> Lease:
        async with self._pool.connection() as conn:
            for known in (False, True):
                try:
                    return await leases.lease(
                        conn,
                        host,
                        ranked,
                        task_id=task_id,
                        lease_seconds=self._lease_seconds,
                        max_wait=max_wait,
                        release_lease_id=release_lease_id,
                    )
                except Denied as error:
                    if error.code != "unknown" or known:
                        if error.code == "no_free_proxy":
                            self._views.pop(host, None)
                        raise
                    await hosts.add(conn, host, self._limits)
        raise AssertionError("the second try returns or raises")

    async def _view(self, host: str, *, fresh: bool = False) -> _View:
        view = self._views.get(host)
        if view is not None and not fresh and time.monotonic() - view.at < max(_VIEW_SECONDS, len(view.proxies) / 500):
            return view
        now = self._clock.now()
        async with self._pool.connection() as conn, conn.cursor(row_factory=dict_row) as cur:
            await cur.execute(_q.candidates, {"host": host})
            rows = await cur.fetchall()
            await cur.execute(_q.profile_scores, {"host": host})
            profiles = {
                row["profile"]: Score(row["good"], row["bad"], row["as_of"]).at(now) for row in await cur.fetchall()
            }
        scores: dict[int, Score] = {}
        proxies: dict[int, Proxy] = {}
        for row in rows:
            good, bad, as_of = row.pop("good"), row.pop("bad"), row.pop("as_of")
            proxies[row["id"]] = Proxy(**row)
            if as_of is not None:
                scores[row["id"]] = Score(good, bad, as_of).at(now)
        view = self._views[host] = _View(time.monotonic(), proxies, scores, profiles)
        # Identities of proxies that were removed or disabled are no longer used; a proxy that returns gets new ones.
        await self._idle.clear(exclude=proxies.keys())
        return view

    async def wait_for_slot(self, leased: LeasedIdentity, host: str, *, pause: Pause) -> float:
        """Wait for the next request slot of `host`, which differs from the lease's after a redirect; returns the seconds waited.
        Raises Denied."""
        began = time.monotonic()
        moment = leased.take_first_slot() if host == leased.lease.host else None
        if moment is None:
            moment = await self._next_slot(host)
        for left in range(_LATE_TURNS, -1, -1):
            wait = max(moment - time.monotonic(), 0.0)
            await self._renew_lease(leased, wait)
            if not wait or leased.lost:
                break
            # `pause` frees the worker slot during the wait and regains it afterwards; the last wait keeps it.
            await (pause if left else asyncio.sleep)(wait)
            if wait > _RECHECK_SECONDS:
                async with self._pool.connection() as conn:
                    if (denied := await leases.closed(conn, host)) is not None:
                        raise denied
            if not left or time.monotonic() - moment <= leases.STALE:
                break
            moment = await self._next_slot(host)
        return time.monotonic() - began

    async def _next_slot(self, host: str) -> float:
        try:
            return await self._slots_of(host).next()
        except Denied as error:
            if error.code != "unknown":
                raise
        # A redirect leads to a host without a row yet.
        async with self._pool.connection() as conn:
            await hosts.add(conn, host, self._limits)
        return await self._slots_of(host).next()

    async def _renew_lease(self, leased: LeasedIdentity, wait: float) -> None:
        """Renew the lease if it might expire during the wait and the request after it."""
        until = time.monotonic() + wait
        if until - leased.renewed <= self._lease_seconds / 2:
            return
        async with self._pool.connection() as conn:
            if not await leases.renew(conn, leased.lease.id, lease_seconds=self._lease_seconds + wait):
                leased.lost = True
        leased.renewed = until

    def _slots_of(self, host: str) -> SlotQueue:
        slots = self._slots.get(host)
        if slots is None:
            slots = self._slots[host] = SlotQueue(self._pool, host)
        return slots

    async def charge(self, host: str, times: int) -> None:
        """Count requests that were made without a slot."""
        async with self._pool.connection() as conn:
            await hosts.charge(conn, host, times)

    async def retire(self, leased: LeasedIdentity, *, keep: bool) -> None:
        """Put an identity away, for reuse or not."""
        if keep:
            await self._idle.put(leased.pooled)
        else:
            await leased.pooled.transport.close()

    async def check_robots(self, session: FetchSession, url: str) -> None:
        """Return if the host's robots.txt allows the URL; see `robots.RobotsGuard`."""
        await self._robots_guard.check_robots(session, url)

    async def report(self, report: Report) -> None:
        """Write a report to the database."""
        self._held.difference_update(report.leases)
        for host, item in report.signals:
            if isinstance(item, RateLimited):
                self._slots_of(host).clear()
        if report.proxies or report.observations:
            bad = any(event.error is not None for event in report.proxies)
            if bad:
                self._views.clear()
        await self._writer.write(report)
