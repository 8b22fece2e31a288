"""One profile asks for a page, for data and for a picture, on one connection, through the real fetch path."""

from __future__ import annotations

from pathlib import Path

import msgspec

from menuwatch.fetch.identity import Identity
from menuwatch.fetch.profiles import Profile
from menuwatch.fetch.transport import Transport
from menuwatch.sim.proxies import ProxyFarm
from tests.fetch.conftest import as_row
from tests.fingerprint.server import FingerprintServer, Seen

KINDS = ("document", "fetch", "image")


def opened(profile: Profile, farm: ProxyFarm, index: int, ca_file: Path) -> Transport:
    """A transport of that profile through proxy `index`; whoever opens it closes it."""
    identity = Identity(proxy=as_row(farm.infos[index]), profile=profile, locale="en-US")
    return Transport(identity, timeout_seconds=10.0, max_bytes=1_000_000, ca_file=str(ca_file))


async def ask(transport: Transport, server: FingerprintServer, kind: str, *, path: str = "/menu") -> Seen:
    """What the server saw of one request; this run's port is taken out of the headers. `path` is that of a document."""
    origin = server.url("")
    if kind == "document":
        exchange = await transport.send("GET", server.url(path), expect="html")
    elif kind == "fetch":
        headers = {"referer": f"{origin}/menu", "x-client": "web"}
        exchange = await transport.send("POST", server.url("/graphql"), json={"page": 1}, headers=headers)
    else:
        headers = {"referer": "https://shop.invalid/"}
        exchange = await transport.send("GET", server.url("/a.png"), headers=headers, expect="image")
    assert exchange.answer is not None, (exchange.error, server.failures)
    seen = msgspec.json.decode(exchange.answer.body, type=Seen)
    return msgspec.structs.replace(
        seen, headers=[(name, value.replace(origin, "https://{server}")) for name, value in seen.headers]
    )


async def three(
    profile: Profile, farm: ProxyFarm, index: int, server: FingerprintServer, ca_file: Path
) -> dict[str, Seen]:
    """All three kinds, on one connection."""
    transport = opened(profile, farm, index, ca_file)
    try:
        return {kind: await ask(transport, server, kind) for kind in KINDS}
    finally:
        await transport.close()
