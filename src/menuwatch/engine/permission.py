"""Which of its roles a worker may claim now, as far as it knows."""

from __future__ import annotations

import asyncio

from menuwatch.core.clock import Clock
from menuwatch.core.telemetry import get_logger
from menuwatch.engine.gate import Gate
from menuwatch.engine.handler import MayClaim
from menuwatch.tasks.model import Role

log = get_logger(__name__)

CHECK = 1.0
"""Seconds for which nobody is asked again after every role was open."""
PATIENCE = 2.0
"""Seconds that the answer may take."""


class Permission:
    """Asks `may_claim` (without it, every role is open), and tells the gate which roles are closed."""

    def __init__(
        self, roles: frozenset[Role], may_claim: MayClaim | None, *, gate: Gate, clock: Clock, worker_id: str
    ) -> None:
        self._roles = roles
        self._may_claim = may_claim
        self._gate = gate
        self._clock = clock
        self._worker_id = worker_id
        self._open = roles
        self._told = roles
        self.again: float | None = None
        """Seconds after which to ask again, where somebody said so."""
        self._asked_at = float("-inf")

    @property
    def open(self) -> frozenset[Role]:
        """The roles that were open when it was asked last."""
        return self._open

    def doubt(self) -> None:
        """Asks again before the next claim."""
        self._asked_at = float("-inf")

    async def now(self) -> frozenset[Role]:
        """What may be claimed now; nothing, where that cannot be found out: it must not keep back what ended."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._asked()
        except Exception as error:
            log.warning(
                "what may be claimed is not known: nothing is, for now",
                action="claims_unknown",
                worker_id=self._worker_id,
                error=f"{type(error).__name__}: {error}",
            )
            return frozenset()

    async def _asked(self) -> frozenset[Role]:
        if self._may_claim is None:
            return self._roles
        now = self._clock.monotonic()
        if self._open == self._roles and now - self._asked_at < CHECK:
            return self._open
        found = await self._may_claim()
        self._open = self._roles & found.roles
        self.again = found.again if self._open != self._roles else None
        self._asked_at = now
        if self.again is None and self._open != self._told:
            self._turn(self._open, found.reason)
        return self._open

    def _turn(self, allowed: frozenset[Role], reason: str | None) -> None:
        closed = self._roles - allowed
        self._told = allowed
        self._gate.note_roles(closed, reason if closed else None)
        if closed:
            log.warning(
                "claiming is paused for some roles",
                action="claims_paused",
                roles=sorted(str(role) for role in closed),
                reason=reason,
                worker_id=self._worker_id,
            )
        else:
            log.info("claiming goes on for all roles", action="claims_resumed", worker_id=self._worker_id)
