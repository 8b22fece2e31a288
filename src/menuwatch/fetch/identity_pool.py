"""Idle identities with their cookies and connections, kept so that a returning visitor is the same visitor.

Limited in number, age and uses; evicted identities are closed.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field

from menuwatch.fetch.leases import Lease
from menuwatch.fetch.transport import Transport
from menuwatch.hosts.scores import Score
from menuwatch.proxies.model import Proxy

MAX_IDLE = 64
"""Idle identities kept; each holds about 250 kB and two sockets."""
MAX_AGE_SECONDS = 50 * 60.0
"""Lifetime of an identity in seconds."""
MAX_USES = 50
"""Most sessions that use one identity."""


def credentials_key(proxy: Proxy) -> tuple[object, ...]:
    """Key of a proxy's address and stored password; an identity cannot be reused after either changes."""
    return proxy.protocol, proxy.host, proxy.port, proxy.username, proxy.password


@dataclass(slots=True)
class PooledIdentity:
    """An identity created at `created_at` (monotonic) with the proxy credentials of `credentials_key`, used by `uses` sessions."""

    host: str
    transport: Transport
    created_at: float
    credentials_key: tuple[object, ...]
    uses: int = 1

    @property
    def proxy_id(self) -> int:
        return self.transport.identity.proxy.id

    @property
    def is_expired(self) -> bool:
        return self.uses >= MAX_USES or time.monotonic() - self.created_at >= MAX_AGE_SECONDS


@dataclass(slots=True, eq=False)
class LeasedIdentity:
    """An identity in use: its lease, its browser and locale, and the scores known when it was chosen."""

    lease: Lease
    pooled: PooledIdentity
    proxy_score: Score = field(default_factory=Score)
    profile_score: Score = field(default_factory=Score)
    renewed: float = field(default_factory=time.monotonic)
    lost: bool = False
    """The lease expired: another session may be using the proxy."""
    _slot_taken: bool = False

    def take_first_slot(self) -> float | None:
        """The slot that came with the lease, once, if it has not expired."""
        if self._slot_taken:
            return None
        self._slot_taken = True
        return self.lease.first_slot if self.lease.first_slot >= time.monotonic() - 1.0 else None


class IdleIdentityPool:
    """One per process."""

    def __init__(self) -> None:
        self._idle: list[PooledIdentity] = []
        self._last: dict[tuple[str, int], str] = {}

    def __len__(self) -> int:
        return len(self._idle)

    def take(self, host: str, proxy: Proxy, locale: str, *, avoid: Collection[str]) -> PooledIdentity | None:
        """Take an idle identity for that host and proxy, without the given browsers, and not the last one used there: identities
        change between tasks."""
        last = self._last.get((host, proxy.id))
        for pooled in self._idle:
            identity = pooled.transport.identity
            name = identity.profile.name
            known = (pooled.host, pooled.proxy_id, pooled.credentials_key, identity.locale)
            fits = known == (host, proxy.id, credentials_key(proxy), locale)
            if fits and name not in avoid and name != last and not pooled.is_expired:
                self._idle.remove(pooled)
                pooled.uses += 1
                return pooled
        return None

    def last(self, host: str, proxy_id: int) -> str | None:
        """The browser used last with that proxy at that host."""
        return self._last.get((host, proxy_id))

    async def put(self, pooled: PooledIdentity) -> None:
        """Keep an identity for reuse; closes the one idle longest if there are too many."""
        name = pooled.transport.identity.profile.name
        spent = [other for other in self._idle if other.is_expired]
        self._idle = [other for other in self._idle if not other.is_expired]
        for other in spent:
            await other.transport.close()
        self._last[pooled.host, pooled.proxy_id] = name
        while len(self._last) > 4 * MAX_IDLE:
            del self._last[next(iter(self._last))]
        if pooled.is_expired:
            await pooled.transport.close()
            return
        self._idle.append(pooled)
        while len(self._idle) > MAX_IDLE:
            await self._idle.pop(0).transport.close()

    async def clear(self, exclude: Collection[int] = ()) -> None:
        """Close idle identities, except those of the proxies in `exclude`."""
        out = [pooled for pooled in self._idle if pooled.proxy_id not in exclude]
        self._idle = [pooled for pooled in self._idle if pooled.proxy_id in exclude]
        for pooled in out:
            await pooled.transport.close()
