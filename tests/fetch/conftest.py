"""A farm of proxies, a target behind it, and identities to reach it with."""

from __future__ import annotations

import random
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from menuwatch.fetch.identity import Identity
from menuwatch.fetch.profiles import PROFILES
from menuwatch.fetch.transport import Transport
from menuwatch.proxies.model import Proxy
from menuwatch.sim.proxies import ProxyFarm, ProxyInfo, start_proxies
from tests.fetch.target import NAME, Target, serving


@pytest.fixture
async def farm() -> AsyncIterator[ProxyFarm]:
    """Four proxies: 0 and 2 speak HTTP, 1 and 3 SOCKS5."""
    started = await start_proxies(4, seed=7, names={NAME: "127.0.0.1"})
    yield started
    await started.close()


@pytest.fixture
async def target(farm: ProxyFarm) -> AsyncIterator[Target]:
    """A plain HTTP server that only the farm knows the way to."""
    async with serving(farm) as started:
        yield started


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for the target's name that nobody trusts, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command, which makes the test's certificate, is not on this machine")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return cert, key


@pytest.fixture
async def secure_target(farm: ProxyFarm, certificate: tuple[Path, Path]) -> AsyncIterator[Target]:
    """The same behind TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    async with serving(farm, context) as started:
        yield started


def as_row(info: ProxyInfo, number: int = 1, *, password: str | None = None) -> Proxy:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    return Proxy(
        id=number, protocol=info.protocol, host=info.host, port=info.port, username=info.username,
        password=password or info.password, is_active=True, city=None, state=info.state, country="US", timezone=info.timezone,
        last_used_at=None, failure_count=0, success_count=0, consecutive_403_count=0, avg_response_time_ms=None,
        last_failure_at=None, last_error=None, deactivated_at=None, created_at=now, updated_at=now,
    )  # fmt: skip


Opener = Callable[..., Transport]


@pytest.fixture
async def transport(farm: ProxyFarm) -> AsyncIterator[Opener]:
    """Opens a transport through proxy `index`, as the profile of that name; closes all of them at the end."""
    opened: list[Transport] = []
    by_name = {profile.name: profile for profile in PROFILES}

    def make(
        index: int,
        *,
        profile: str | None = None,
        timeout: float = 5.0,
        max_bytes: int = 1_000_000,
        ca_file: Path | None = None,
        password: str | None = None,
    ) -> Transport:
        chosen = by_name[profile] if profile else random.Random(index).choice(PROFILES)
        identity = Identity(proxy=as_row(farm.infos[index], password=password), profile=chosen, locale="en-US")
        made = Transport(
            identity, timeout_seconds=timeout, max_bytes=max_bytes, ca_file=str(ca_file) if ca_file else None
        )
        opened.append(made)
        return made

    yield make
    for each in opened:
        await each.close()
