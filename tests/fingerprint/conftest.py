"""The fingerprint server behind a farm of proxies: its name is known to them alone."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from menuwatch.sim.proxies import ProxyFarm, start_proxies
from tests.fetch.target import NAME
from tests.fingerprint.server import FingerprintServer, fingerprinting


@dataclass(frozen=True)
class Authority:
    """A certificate authority that nobody else knows: its file, and the server's certificate."""

    file: Path
    certificate: trustme.LeafCert

    def context(self, *protocols: str) -> ssl.SSLContext:
        """For a server that offers these protocols, the first one first."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.certificate.configure_cert(made)
        made.set_alpn_protocols(list(protocols))
        return made


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = trustme.CA()
    file = tmp_path_factory.mktemp("authority") / "ca.pem"
    made.cert_pem.write_to_path(str(file))
    return Authority(file, made.issue_cert(NAME))


@pytest.fixture
async def farm() -> AsyncIterator[ProxyFarm]:
    """Two proxies: 0 speaks HTTP, 1 SOCKS5."""
    started = await start_proxies(2, seed=11, names={NAME: "127.0.0.1"})
    yield started
    await started.close()


@pytest.fixture
async def server(authority: Authority) -> AsyncIterator[FingerprintServer]:
    """Offers HTTP/2, then HTTP/1.1, as the web does."""
    async with fingerprinting(NAME, authority.context("h2", "http/1.1")) as started:
        yield started
