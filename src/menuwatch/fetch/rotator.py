"""Hands out identities and turns: the composition of leases, scores, browsers, idle identities and the ledger. One per process.

Every write here is a short transaction of its own, never part of a task's: how a host took a request is a fact whatever
becomes of the task.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.errors import MenuwatchError
from menuwatch.core.settings import Settings
from menuwatch.db import sql
from menuwatch.db.pool import Pool
from menuwatch.fetch import leases
from menuwatch.fetch.admission import Admission, Asker
from menuwatch.fetch.desk import Holding, Pause, Permit, sleep
from menuwatch.fetch.identity import assume, locale_behind
from menuwatch.fetch.leases import Denied, Lease, Turns
from menuwatch.fetch.ledger import Ledger, Report
from menuwatch.fetch.profiles import PROFILES, Profile
from menuwatch.fetch.robots import Policy
from menuwatch.fetch.scores import Candidate, Score, rank
from menuwatch.fetch.session import FetchSession
from menuwatch.fetch.transport import Transport
from menuwatch.fetch.wardrobe import Wardrobe, Worn, login
from menuwatch.hosts import store as hosts
from menuwatch.hosts.model import Limits
from menuwatch.hosts.rules import SlowDown, Waits
from menuwatch.proxies import store as proxy_rows
from menuwatch.proxies.health import probing
from menuwatch.proxies.model import NoProxy, Proxy

_q = sql.load(__package__)

_VIEW_SECONDS = 2.0
"""How old the picture of proxies and scores may be that a choice is made from; a lease is only given on what is true now."""
_RECHECK_SECONDS = 0.1
"""After a wait of so many seconds for its turn a session looks whether the host may still be asked: it may have asked another one,
in another process, to slow down."""
_LATE_TURNS = 2
"""Turns that a session may come too late for and get another: many that were late together would be a burst that nobody allowed."""
_CLOSING_SECONDS = 5.0
_RANKED = 200
"""Proxies that are offered for a lease: beyond them nobody looks."""


@dataclass(frozen=True, slots=True)
class _View:
    """The pool as it was, and how everybody fares at one host."""

    at: float
    proxies: Mapping[int, Proxy]
    scores: Mapping[int, Score]
    profiles: Mapping[str, Score]


class Rotator:
    """`ca_file`: certificates to trust instead of the built-in ones, for networks and tests with their own. `unseal` turns a stored
    password into the one to use; `robots` says what is made of a host's robots.txt."""

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
        robots: Callable[[str], Policy] = lambda _: Policy(),
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()  # noqa: S311 - a choice of browsers, no secret
        self._ca_file = ca_file
        self._profiles = profiles
        self._unseal = unseal
        self._ledger = Ledger(
            pool,
            waits=Waits.from_settings(settings),
            probing=probing(settings.proxy_probe_seconds),
            on_written=on_report,
        )
        self._limits = Limits.from_settings(settings)
        lasting = max(settings.fetch_timeout_seconds, 5.0)
        self._admission = Admission(pool, limits=self._limits, policy=robots, lasting=lasting)
        self._wardrobe = Wardrobe()
        self._held: set[int] = set()
        self._unwanted: set[asyncio.Task[None]] = set()
        """Leases of sessions that were cancelled while they got them: on their way back."""
        self._views: dict[str, _View] = {}
        self._turns: dict[str, Turns] = {}
        self._rested: dict[tuple[str, int], float] = {}
        self._lasting = 60.0 + 2 * settings.fetch_timeout_seconds
        """Seconds that a lease lasts: longer than any request."""

    @asynccontextmanager
    async def open(
        self,
        *,
        task_id: int | None,
        dispensary_id: int | None,
        state: str | None,
        hosts: Collection[str] = (),
        pause: Pause = sleep,
        permit: Permit | None = None,
    ) -> AsyncIterator[FetchSession]:
        """A session for one task: one identity, kept for all its requests. `state` is the store's, in two letters.

        `hosts` are those that redirects may lead to, besides the one that was asked; `pause` is how it waits for its turn. `permit`
        is called right before each request, which is not made where it raises.
        """
        session = FetchSession(
            self,
            task_id=task_id,
            dispensary_id=dispensary_id,
            state=state,
            hosts=hosts,
            clock=self._clock,
            retry_base_seconds=self._settings.fetch_retry_base_seconds,
            rng=self._rng,
            pause=pause,
            permit=permit,
        )
        try:
            yield session
        finally:
            await session.close()

    @property
    def idle(self) -> int:
        """Identities that are kept for later."""
        return len(self._wardrobe)

    @property
    def leases(self) -> int:
        """Identities of this process that talk to a host now."""
        return len(self._held)

    async def close(self) -> None:
        """Closes the idle identities, once what sessions told is written; call it when no session is open any more."""
        if self._unwanted:
            await asyncio.wait(self._unwanted, timeout=_CLOSING_SECONDS)
        await self._ledger.close()
        await self._wardrobe.clear()

    async def assume(
        self,
        host: str,
        *,
        task_id: int | None,
        state: str | None,
        avoid: Collection[int],
        profiles: Collection[str],
        give_back: int | None,
        patience: float,
    ) -> Holding:
        """An identity leased for the host; see `desk.Desk`."""
        view = await self._view(host)
        if not view.proxies:
            view = await self._view(host, fresh=True)
        if not view.proxies:
            async with self._pool.connection() as conn:
                raise NoProxy(await proxy_rows.standing(conn))
        others = [proxy_id for proxy_id in view.proxies if proxy_id not in avoid]
        candidates = [
            Candidate(proxy_id, view.scores.get(proxy_id, Score()), self._since(host, view.proxies[proxy_id]))
            for proxy_id in others or view.proxies
        ]
        ranked = rank(candidates, self._rng)[:_RANKED]
        self._held.discard(give_back or 0)  # it ends, whatever comes of the call
        lease = await self._leased(host, ranked, task_id=task_id, patience=patience, give_back=give_back)
        self._held.add(lease.id)
        self._rested[host, lease.proxy_id] = time.time()  # beside the database's last_used_at
        try:
            return self._holding(lease, view, state, profiles)
        except Exception:
            await self.report(Report(leases=[lease.id]))
            raise

    def _holding(self, lease: Lease, view: _View, state: str | None, refused: Collection[str]) -> Holding:
        """What is worn with that lease: an identity that rested, or a fresh one."""
        host, proxy = lease.host, view.proxies[lease.proxy_id]
        worn = self._wardrobe.take(host, proxy, locale_behind(proxy, state), avoid=refused)
        if worn is None:
            worn = Worn(
                host,
                self._dress(proxy, view, state, {*refused, self._wardrobe.last(host, proxy.id) or ""}),
                time.monotonic(),
                login(proxy),
            )
        identity = worn.transport.identity
        return Holding(
            lease=lease,
            worn=worn,
            proxy_score=view.scores.get(proxy.id, Score()),
            profile_score=view.profiles.get(identity.profile.name, Score()),
        )

    def _since(self, host: str, proxy: Proxy) -> float | None:
        """When the proxy was last used, as far as this process knows, in seconds of the epoch."""
        told = proxy.last_used_at.timestamp() if proxy.last_used_at is not None else None
        ours = self._rested.get((host, proxy.id))
        return max(told, ours) if told is not None and ours is not None else told or ours

    def _dress(self, proxy: Proxy, view: _View, state: str | None, avoid: Collection[str]) -> Transport:
        identity = assume(
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
        """As `_lease`, for somebody who may be cancelled meanwhile: a lease that nobody knows of would keep all others from its proxy
        until it lapses."""
        asking = asyncio.create_task(self._lease(host, ranked, **how))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            ending = asyncio.create_task(self._end_unwanted(asking))
            self._unwanted.add(ending)
            ending.add_done_callback(self._unwanted.discard)
            raise

    async def _end_unwanted(self, asking: asyncio.Task[Lease]) -> None:
        with suppress(MenuwatchError, psycopg.Error):
            lease = await asking
            await self.report(Report(leases=[lease.id]))

    async def _lease(
        self, host: str, ranked: Sequence[int], *, task_id: int | None, patience: float, give_back: int | None
    ) -> Lease:
        async with self._pool.connection() as conn:
            for known in (False, True):
                try:
                    return await leases.lease(
                        conn,
                        host,
                        ranked,
                        task_id=task_id,
                        lasting=self._lasting,
                        patience=patience,
                        give_back=give_back,
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
        # Nobody goes through those that were removed or taken out any more; one that comes back gets new identities.
        await self._wardrobe.clear(but=proxies.keys())
        return view

    async def turn(self, holding: Holding, host: str, *, pause: Pause) -> float:
        """Waits for the next moment at which the host may be asked; see `desk.Desk`."""
        began = time.monotonic()
        moment = holding.first_turn() if host == holding.lease.host else None
        if moment is None:
            moment = await self._next(host)
        for left in range(_LATE_TURNS, -1, -1):
            wait = max(moment - time.monotonic(), 0.0)
            await self._keep(holding, wait)
            if not wait or holding.lost:
                break
            # Whoever rests gets its slot back when one is free; the last time it waits where it is.
            await (pause if left else sleep)(wait)
            if wait > _RECHECK_SECONDS:
                async with self._pool.connection() as conn:
                    if (denied := await leases.closed(conn, host)) is not None:
                        raise denied
            if not left or time.monotonic() - moment <= leases.STALE:
                break
            moment = await self._next(host)
        return time.monotonic() - began

    async def _next(self, host: str) -> float:
        try:
            return await self._of(host).next()
        except Denied as error:
            if error.code != "unknown":
                raise
        # A redirect leads to a host that was never asked before.
        async with self._pool.connection() as conn:
            await hosts.add(conn, host, self._limits)
        return await self._of(host).next()

    async def _keep(self, holding: Holding, wait: float) -> None:
        """Renews the lease where it might not outlast the wait and the request after it."""
        until = time.monotonic() + wait
        if until - holding.renewed <= self._lasting / 2:
            return
        async with self._pool.connection() as conn:
            if not await leases.renew(conn, holding.lease.id, lasting=self._lasting + wait):
                holding.lost = True
        holding.renewed = until

    def _of(self, host: str) -> Turns:
        turns = self._turns.get(host)
        if turns is None:
            turns = self._turns[host] = Turns(self._pool, host)
        return turns

    async def charge(self, host: str, times: int) -> None:
        """Counts requests that were made without a turn; see `desk.Desk`."""
        async with self._pool.connection() as conn:
            await hosts.charge(conn, host, times)

    async def retire(self, holding: Holding, *, keep: bool) -> None:
        """Puts an identity away; see `desk.Desk`."""
        if keep:
            await self._wardrobe.put(holding.worn)
        else:
            await holding.worn.transport.close()

    async def admit(self, asker: Asker, url: str) -> None:
        """Looks at the host's robots.txt; see `desk.Desk`."""
        await self._admission.admit(asker, url)

    async def report(self, report: Report) -> None:
        """Writes down what happened; see `desk.Desk`."""
        self._held.difference_update(report.leases)
        for host, item in report.news:
            if isinstance(item, SlowDown):
                self._of(host).clear()
        if report.proxies or report.experiences:
            bad = any(event.error is not None for event in report.proxies)
            if bad:
                self._views.clear()
        await self._ledger.write(report)
