"""Prints what every browser sends now, in the form of golden.toml: `python -m tests.fingerprint.record [CONNECTIONS]`.

For a new profile or a new curl_cffi. What it prints is what we send, not what is right: hold it against the browser before it
becomes golden.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import tempfile
from pathlib import Path

import trustme

from menuwatch.fetch.profiles import PROFILES
from menuwatch.sim.proxies import start_proxies
from tests.fetch.target import NAME
from tests.fingerprint.profile_requests import KINDS, three
from tests.fingerprint.server import Seen, fingerprinting


async def record(connections: int) -> None:
    """Asks that many times as each profile."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(NAME).configure_cert(context)
    context.set_alpn_protocols(["h2", "http/1.1"])
    farm = await start_proxies(2, names={NAME: "127.0.0.1"})
    targets: dict[str, list[Seen]] = {}
    headers: dict[str, dict[str, Seen]] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ca.pem"
        authority.cert_pem.write_to_path(str(file))
        async with fingerprinting(NAME, context) as server:
            for profile in PROFILES:
                for number in range(connections):
                    seen = await three(profile, farm, number % 2, server, file)
                    targets.setdefault(profile.target, []).append(seen["document"])
                    headers[profile.name] = seen
    await farm.close()
    for target, found in targets.items():
        print(f"[targets.{target}]\nhellos = [")
        for ja4, ja3n in sorted({(one.ja4, one.ja3n) for one in found}):
            print(f'  {{ ja4 = "{ja4}", ja3n = "{ja3n}" }},')
        print("]")
        for akamai, stream in sorted({(one.akamai, one.stream) for one in found}):
            print(f'akamai = "{akamai}"\nstream = "{stream}"\n')
    for name, kinds in headers.items():
        print(f'[headers."{name}"]')
        for kind in KINDS:
            print(f"{kind} = [")
            for header, value in kinds[kind].headers:
                print(f'  ["{header}", {_quoted(value)}],')
            print("]")
        print()


def _quoted(value: str) -> str:
    return f"'{value}'" if '"' in value else f'"{value}"'


if __name__ == "__main__":
    asyncio.run(record(int(sys.argv[1]) if len(sys.argv) > 1 else 30))
