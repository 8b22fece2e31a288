"""The simulator's forward proxies, as a farm on loopback ports.

Each has a user and a password, counts what it does, and breaks on demand in the ways that real proxies break. Names that exist
nowhere (for example `menus.invalid`) can be given an address, so that a client can only reach them by letting the proxy resolve
them. A server in the same process can ask the farm through which proxy a connection came.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from menuwatch.sim.proxy_faults import Fault, Planned
from menuwatch.sim.proxy_server import Protocol, ProxyCounts, ProxyInfo, SimProxy

__all__ = ["Fault", "Protocol", "ProxyCounts", "ProxyFarm", "ProxyInfo", "start_proxies"]

_PLACES = (
    ("AZ", "America/Phoenix"),
    ("CA", "America/Los_Angeles"),
    ("CO", "America/Denver"),
    ("IL", "America/Chicago"),
    ("MA", "America/New_York"),
    ("MI", "America/Detroit"),
    ("NV", "America/Los_Angeles"),
    ("OR", "America/Los_Angeles"),
)


class ProxyFarm:
    """Several proxies, numbered from 0."""

    def __init__(
        self,
        names: Mapping[str, str] | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        mitm: ssl.SSLContext | None = None,
    ) -> None:
        """`tls`: what https proxies show their clients; `mitm`: what any proxy with that fault shows for its target."""
        self.names: dict[str, str] = {name.lower(): address for name, address in (names or {}).items()}
        self._tls = tls
        self._mitm = mitm
        self._proxies: list[SimProxy] = []
        self._origins: dict[int, int] = {}

    @property
    def infos(self) -> list[ProxyInfo]:
        """How to reach each."""
        return [proxy.info for proxy in self._proxies]

    async def add(self, info: ProxyInfo) -> int:
        """Starts one more proxy and returns its number."""
        index = len(self._proxies)

        def opened(port: int) -> Callable[[], None]:
            self._origins[port] = index

            def closed() -> None:
                del self._origins[port]

            return closed

        proxy = SimProxy(info, self.names, opened, tls=self._tls, mitm=self._mitm)
        await proxy.listen()
        self._proxies.append(proxy)
        return index

    async def fault(self, index: int, kind: Fault | None, *, times: int | None = None, after_bytes: int = 300) -> None:
        """Breaks a proxy from now on, or mends it (None).

        `times` limits the fault to the next so many requests ("dead" knows no limit); `after_bytes` is how much of the
        answer, handshake included, "cut" lets pass, and "slow" in a tenth of a second. Raises ValueError for a fault that
        this proxy cannot have.
        """
        if kind is not None and kind not in get_args(Fault):
            raise ValueError(f"{kind!r} is no fault: it is one of {', '.join(get_args(Fault))}")
        proxy = self._proxies[index]
        if kind == "dead":
            proxy.plan(None)
            await proxy.silence()
            return
        proxy.plan(Planned(kind, times, after_bytes) if kind is not None else None)
        await proxy.listen()

    def origin_of(self, peer_port: int) -> int | None:
        """Which proxy holds the connection that comes from this local port, None when none does."""
        return self._origins.get(peer_port)

    def counts(self) -> list[ProxyCounts]:
        """What each has done so far."""
        return [proxy.counts for proxy in self._proxies]

    async def close(self) -> None:
        """Stops all of them."""
        await asyncio.gather(*(proxy.silence() for proxy in self._proxies))


async def start_proxies(
    n: int,
    *,
    seed: int = 0,
    protocols: Sequence[Protocol] = ("http", "socks5"),
    names: Mapping[str, str] | None = None,
    host: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
    mitm: ssl.SSLContext | None = None,
) -> ProxyFarm:
    """Starts `n` proxies on free ports, the protocols in turn; users, passwords and places follow from the seed.

    `names` gives loopback addresses to names that exist nowhere else; with `127.0.0.1:port` whatever port is asked for leads
    there. The protocol "https" needs `tls`; see `ProxyFarm`.
    """
    rng = random.Random(seed)
    farm = ProxyFarm(names, tls=tls, mitm=mitm)
    try:
        for index in range(n):
            state, timezone = rng.choice(_PLACES)
            # Real passwords hold characters that mean something in a URL; so do these.
            password = "".join(rng.choices("abcdefghjkmnpqrstuvwxyz23456789", k=12)) + rng.choice(("", "@", ":", "/%"))
            await farm.add(
                ProxyInfo(
                    protocol=protocols[index % len(protocols)],
                    host=host,
                    port=0,
                    username=f"user{index}",
                    password=password,
                    state=state,
                    timezone=timezone,
                )
            )
    except BaseException:
        await farm.close()
        raise
    return farm
