"""Identities that are not in use just now, with their cookies and connections: a visitor who comes back is the same visitor.

Bounded in number, age and uses; what is put out is closed.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

from menuwatch.fetch.transport import Transport
from menuwatch.proxies.model import Proxy

MOST = 64
"""Idle identities kept; each holds about 250 kB and two sockets."""
LONGEST = 50 * 60.0
"""Seconds that an identity lives."""
USES = 50
"""Sessions that it serves."""


def login(proxy: Proxy) -> tuple[object, ...]:
    """What an identity knows of its proxy: with another address or password there it is of no use. The password as it is stored."""
    return proxy.protocol, proxy.host, proxy.port, proxy.username, proxy.password


@dataclass(slots=True)
class Worn:
    """An identity with its age: made at `made` (monotonic), with that `login` at its proxy, used for `uses` sessions."""

    host: str
    transport: Transport
    made: float
    login: tuple[object, ...]
    uses: int = 1

    @property
    def proxy_id(self) -> int:
        return self.transport.identity.proxy.id

    @property
    def is_spent(self) -> bool:
        return self.uses >= USES or time.monotonic() - self.made >= LONGEST


class Wardrobe:
    """One per process."""

    def __init__(self) -> None:
        self._idle: list[Worn] = []
        self._last: dict[tuple[str, int], str] = {}

    def __len__(self) -> int:
        return len(self._idle)

    def take(self, host: str, proxy: Proxy, locale: str, *, avoid: Collection[str]) -> Worn | None:
        """An idle identity behind that proxy for that host, none of those browsers, and not the one that was there last: it changes
        between tasks."""
        last = self._last.get((host, proxy.id))
        for worn in self._idle:
            identity = worn.transport.identity
            name = identity.profile.name
            fits = (worn.host, worn.proxy_id, worn.login, identity.locale) == (host, proxy.id, login(proxy), locale)
            if fits and name not in avoid and name != last and not worn.is_spent:
                self._idle.remove(worn)
                worn.uses += 1
                return worn
        return None

    def last(self, host: str, proxy_id: int) -> str | None:
        """The browser that was last behind that proxy for that host."""
        return self._last.get((host, proxy_id))

    async def put(self, worn: Worn) -> None:
        """Keeps an identity for later; closes the one that has been idle longest where there are too many."""
        name = worn.transport.identity.profile.name
        spent = [other for other in self._idle if other.is_spent]
        self._idle = [other for other in self._idle if not other.is_spent]
        for other in spent:
            await other.transport.close()
        self._last[worn.host, worn.proxy_id] = name
        while len(self._last) > 4 * MOST:
            del self._last[next(iter(self._last))]
        if worn.is_spent:
            await worn.transport.close()
            return
        self._idle.append(worn)
        while len(self._idle) > MOST:
            await self._idle.pop(0).transport.close()

    async def clear(self, but: Collection[int] = ()) -> None:
        """Closes what is idle, `but` not what is behind these proxies."""
        out = [worn for worn in self._idle if worn.proxy_id not in but]
        self._idle = [worn for worn in self._idle if worn.proxy_id in but]
        for worn in out:
            await worn.transport.close()
