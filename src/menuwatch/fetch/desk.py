"""What a session works with: the identity it holds, and the desk that hands out identities and turns and hears what happened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol

from menuwatch.fetch.admission import Asker
from menuwatch.fetch.leases import Lease
from menuwatch.fetch.ledger import Report
from menuwatch.fetch.scores import Score
from menuwatch.fetch.wardrobe import Worn

Pause = Callable[[float], Awaitable[None]]
Permit = Callable[[], Awaitable[None]]


async def sleep(seconds: float) -> None:
    """The plain way to wait."""
    await asyncio.sleep(seconds)


@dataclass(slots=True, eq=False)
class Holding:
    """An identity at work: its lease, what it wears, and what was known of both when it was chosen."""

    lease: Lease
    worn: Worn
    proxy_score: Score = field(default_factory=Score)
    profile_score: Score = field(default_factory=Score)
    renewed: float = field(default_factory=time.monotonic)
    lost: bool = False
    """The lease lapsed: somebody else may be using the proxy."""
    _turned: bool = False

    def first_turn(self) -> float | None:
        """The moment that came with the lease, once, where it has not gone by."""
        if self._turned:
            return None
        self._turned = True
        return self.lease.turn if self.lease.turn >= time.monotonic() - 1.0 else None


class Desk(Protocol):
    """Where a session gets identities and turns, and tells what happened."""

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
        """A fresh identity for the host; proxies to `avoid` and `profiles` that were refused only where there is no other. `give_back`
        is the lease of the one before. Raises Denied, NoProxy."""
        ...

    async def turn(self, holding: Holding, host: str, *, pause: Pause) -> float:
        """Waits until the host may be asked, and says how many seconds that took; `host` is another one than the lease's where a
        redirect led there. Raises Denied."""
        ...

    async def charge(self, host: str, times: int) -> None:
        """Counts requests that were made without a turn."""
        ...

    async def retire(self, holding: Holding, *, keep: bool) -> None:
        """Puts an identity away, to be used again or not."""
        ...

    async def report(self, report: Report) -> None:
        """Writes down what happened."""
        ...

    async def admit(self, asker: Asker, url: str) -> None:
        """Returns where the host's robots.txt lets the address be asked; see `admission`."""
        ...
