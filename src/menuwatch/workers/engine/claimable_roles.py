"""Which roles this worker may claim now: tasks that make requests wait while no proxy is active or all hosts are blocked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from menuwatch.core.clock import Clock
from menuwatch.core.logging import get_logger
from menuwatch.core.postpone import PostponeCode
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.hosts import store as hosts
from menuwatch.hosts.rules import all_closed
from menuwatch.platforms.base import Platform
from menuwatch.proxies import store as proxies
from menuwatch.queue.model import NETWORK_ROLES, Role
from menuwatch.workers.engine.claim_gate import ClaimGate

log = get_logger(__name__)

_q = sql.load(__package__, "claimable_roles.sql")

ROLES_CHECK = 1.0
"""Seconds for which the roles are not checked again after all were open."""
ROLES_TIMEOUT = 2.0
"""Seconds that the check may take."""


class Claimable(Struct, frozen=True):
    """The roles that may be claimed now; `reason` and `code` say why the others may not.

    `again`: seconds until the next check. Roles that are closed with it are not reported: they open within moments.
    """

    roles: frozenset[Role]
    reason: str | None = None
    again: float | None = None
    code: PostponeCode | None = None


MayClaim = Callable[[], Awaitable[Claimable]]
"""Called before each claim."""


async def hosts_in_use(conn: Connection, platforms: Mapping[str, Platform]) -> frozenset[str]:
    """The hosts of the platforms that have tasks. Those of an unused one are always open, so they do not count."""
    rows = await (await conn.execute(_q.platforms_in_use, {"platforms": sorted(platforms)})).fetchall()
    return frozenset().union(*(platforms[name].hosts for (name,) in rows))


async def query_claimable(conn: Connection, platforms: Mapping[str, Platform]) -> Claimable:
    """All roles if a proxy is active and some platform takes requests, else those that make no requests."""
    offline = frozenset(Role) - NETWORK_ROLES
    if not await proxies.count_active(conn):
        return Claimable(offline, "no proxy is active", None, PostponeCode.NO_PROXY)
    requested = await hosts_in_use(conn, platforms)
    closed = all_closed(requested, await hosts.availability(conn, requested)) if requested else None
    return Claimable(frozenset(Role)) if closed is None else Claimable(offline, *closed)


class ClaimableRoles:
    """The roles that may be claimed now, as far as is known. Asks `may_claim` (None: every role is open) and updates the gate."""

    def __init__(
        self, roles: frozenset[Role], may_claim: MayClaim | None, *, gate: ClaimGate, clock: Clock, worker_id: str
    ) -> None:
        self._roles = roles
        self._may_claim = may_claim
        self._gate = gate
        self._clock = clock
        self._worker_id = worker_id
        self._open = roles
        self._reported = roles
        self.again: float | None = None
        """Seconds after which to check again, if `may_claim` gave a time."""
        self._checked_at = float("-inf")

    @property
    def open(self) -> frozenset[Role]:
        """The roles that were open at the last check."""
        return self._open

    def recheck(self) -> None:
        """Check again before the next claim."""
        self._checked_at = float("-inf")

    async def refresh(self) -> frozenset[Role]:
        """The claimable roles; none if they cannot be determined, since the check must not delay the write of completions."""
        try:
            async with asyncio.timeout(ROLES_TIMEOUT):
                return await self._query()
        except Exception as error:
            log.warning(
                "claimable roles unknown; claiming paused",
                action="claims_unknown",
                worker_id=self._worker_id,
                error=f"{type(error).__name__}: {error}",
            )
            return frozenset()

    async def _query(self) -> frozenset[Role]:
        if self._may_claim is None:
            return self._roles
        now = self._clock.monotonic()
        if self._open == self._roles and now - self._checked_at < ROLES_CHECK:
            return self._open
        answer = await self._may_claim()
        self._open = self._roles & answer.roles
        self.again = answer.again if self._open != self._roles else None
        self._checked_at = now
        if self.again is None and self._open != self._reported:
            self._report(answer)
        return self._open

    def _report(self, answer: Claimable) -> None:
        closed = self._roles - self._open
        self._reported = self._open
        self._gate.set_paused_roles(closed, answer.reason, answer.code)
        if closed:
            log.warning(
                "claiming paused for some roles",
                action="claims_paused",
                roles=sorted(str(role) for role in closed),
                reason=answer.reason,
                worker_id=self._worker_id,
            )
        else:
            log.info("claiming resumed for all roles", action="claims_resumed", worker_id=self._worker_id)
