"""No socket but to a proxy is ever opened by a fetch: the kernel's word for it, by way of strace.

A process of its own fetches while every call that opens a way out, or sends along one, is written down: through HTTP and SOCKS5
proxies, in the clear and over TLS, past dead proxies and redirects, in an environment that offers other ways. The same watch on a
client without a proxy of its own shows what would have been seen.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from menuwatch.db.pool import Pool
from menuwatch.proxies import store
from menuwatch.proxies.model import NewProxy
from menuwatch.sim.proxies import ProxyFarm
from tests.conftest import ROOT
from tests.fetch.target import NAME, Reply, Seen, Target

UNKNOWN_PROXY = "no-such-proxy.invalid"
FOREIGN = "somewhere-else.invalid"
Surroundings = Literal["another proxy", "no proxy"]


@dataclass(frozen=True)
class Trace:
    """What a process did to the network: addresses (IP, port) that it connected or sent to, and names that it asked a resolver for."""

    addresses: frozenset[tuple[str, int]]
    names: frozenset[str]
    calls: int


_CALL = re.compile(r"^(connect|sendto|sendmsg|sendmmsg)\(")
_INET = re.compile(r"sin6?_port=htons\((\d+)\).*?(?:inet_addr\(\"([^\"]*)\"\)|inet_pton\(AF_INET6, \"([^\"]*)\")")
_TEXT = re.compile(r"\"((?:\\x[0-9a-f]{2})+)\"")
_QUESTION = re.compile(
    rb"\x00\x00\x00\x00\x00[\x00\x01]((?:[\x01-\x3f][\x21-\x7e]+?)+)\x00\x00[\x01\x1c\x41]\x00\x01", re.DOTALL
)


def _plain(text: str) -> str:
    """A string that strace wrote in hexadecimal."""
    return bytes.fromhex(text.replace("\\x", "")).decode("ascii", "replace") if "\\x" in text else text


def _labels(packed: bytes) -> str:
    """A name of the DNS' wire format (RFC 1035 section 3.1)."""
    parts = []
    while packed:
        length, packed = packed[0], packed[1:]
        parts.append(packed[:length].decode("ascii", "replace"))
        packed = packed[length:]
    return ".".join(parts)


def read_trace(folder: Path) -> Trace:
    addresses, names, calls = set(), set(), 0
    for file in folder.iterdir():
        for line in file.read_text(encoding="ascii", errors="replace").splitlines():
            if not _CALL.match(line):
                continue
            calls += 1
            addresses |= {(_plain(four or six), int(port)) for port, four, six in _INET.findall(line)}
            for text in _TEXT.findall(line):
                sent = bytes.fromhex(text.replace("\\x", ""))
                names |= {_labels(found) for found in _QUESTION.findall(sent)}
    return Trace(frozenset(addresses), frozenset(names), calls)


def strace() -> str:
    """The command. Where it cannot be had that is a failure in CI, and said aloud elsewhere."""
    why = None
    found = shutil.which("strace")
    if sys.platform != "linux":
        why = "strace is Linux's"
    elif found is None:
        why = "strace is not installed (apt-get install strace)"
    else:
        tried = subprocess.run([found, "-f", "-o", os.devnull, "true"], capture_output=True, text=True, check=False)
        if tried.returncode != 0:
            why = f"strace may not watch processes here: {tried.stderr.strip()[-300:]}"
    if why is not None:
        message = f"nothing shows that a fetch opens no socket but to its proxy: {why}"
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(message)
        pytest.skip(message)
    assert found is not None
    return found


def surroundings(kind: Surroundings, trap: int) -> dict[str, str]:
    """An environment that offers another way: a proxy that is none of ours, or none at all."""
    offered = f"http://127.0.0.1:{trap}"
    names = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    bypass = dict.fromkeys(("NO_PROXY", "no_proxy"), "*") if kind == "no proxy" else {}
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    # A resolver that does not answer is given up soon.
    return {**kept, **dict.fromkeys(names, offered), **bypass, "RES_OPTIONS": "timeout:1 attempts:1"}


async def watched(folder: Path, work: dict[str, Any], env: dict[str, str]) -> tuple[list[str], Trace]:
    """What a process found that does this work, and what it did to the network meanwhile."""
    folder.mkdir()
    command = [
        strace(),
        "-ff",
        "-qq",
        "-xx",
        "-s",
        "4096",
        "-e",
        "trace=socket,connect,sendto,sendmsg,sendmmsg",
        "-e",
        "signal=none",
    ]
    child = await asyncio.create_subprocess_exec(
        *command, "-o", str(folder / "trace"), sys.executable, "-m", "tests.fetch.socket_child",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=env,
    )  # fmt: skip
    try:
        out, err = await asyncio.wait_for(child.communicate(json.dumps(work).encode()), 120)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    assert child.returncode == 0, err.decode()[-3000:]
    found: list[str] = json.loads(out.decode().splitlines()[-1])
    return found, read_trace(folder)


@dataclass(frozen=True)
class Trap:
    """A server that nobody may come to."""

    port: int
    visitors: list[bytes]


@pytest.fixture
async def trap() -> Any:
    visitors: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visitors.append(await reader.read(2000))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield Trap(server.sockets[0].getsockname()[1], visitors)
    server.close()


async def register(pool: Pool, farm: ProxyFarm) -> list[int]:
    """The farm's four proxies, and a fifth whose name no resolver knows."""
    ids = []
    news = [
        NewProxy(protocol=info.protocol, host=info.host, port=info.port, username=info.username, password=info.password)
        for info in farm.infos
    ]
    async with pool.connection() as conn:
        for new in (*news, NewProxy(protocol="http", host=UNKNOWN_PROXY, port=3128)):
            ids.append((await store.add(conn, new))[0])
    return ids


def redirecting(trap: Trap) -> Any:
    answers = {
        "/here": "/menu",
        "/away": f"http://{FOREIGN}/menu",
        "/inside": f"http://127.0.0.1:{trap.port}/menu",
        "/file": "file:///etc/hostname",
    }

    def script(seen: Seen) -> Reply:
        if seen.path == "/robots.txt":
            return Reply(404)
        return Reply(302, headers={"Location": answers[seen.path]}) if seen.path in answers else Reply()

    return script


@pytest.mark.parametrize("kind", ["another proxy", "no proxy"])
async def test_a_fetch_opens_no_socket_but_to_its_proxy(
    kind: Surroundings,
    tmp_path: Path,
    pool: Pool,
    database_url: str,
    farm: ProxyFarm,
    target: Target,
    secure_target: Target,
    certificate: tuple[Path, Path],
    trap: Trap,
) -> None:
    ids = await register(pool, farm)
    await farm.fault(2, "dead")
    target.script = secure_target.script = redirecting(trap)
    wanted: list[tuple[list[int], str, str, str]] = []
    for proxy in (0, 1):
        wanted += [
            ([proxy], "GET", target.url("/menu"), "200"),
            ([proxy], "POST", target.url("/menu"), "200"),
            ([proxy], "GET", secure_target.url("/menu"), "200"),
            ([proxy], "GET", target.url("/here"), "200"),
            ([proxy], "GET", target.url("/away"), f"Permanent: {NAME}:{target.port} redirects to {FOREIGN}"),
            ([proxy], "GET", secure_target.url("/inside"), "Permanent: "),
            ([proxy], "GET", target.url("/file"), "Permanent: "),
            ([proxy], "GET", f"http://unknown-{proxy}.invalid/", "NotNow: "),
        ]
    wanted += [
        ([2], "GET", target.url("/menu"), "Transient: "),
        ([2, 3], "GET", target.url("/menu"), "200"),
        ([4], "GET", target.url("/menu"), "Transient: "),
        ([], "GET", target.url("/menu"), "NoProxy: "),
    ]
    pieces = [{"proxies": [ids[n] for n in proxies], "method": m, "url": url} for proxies, m, url, _ in wanted]
    work = {
        "database_url": database_url,
        "ca_file": str(certificate[0]),
        "hosts": [f"{NAME}:{target.port}", f"{NAME}:{secure_target.port}"],
        "pieces": pieces,
    }
    found, trace = await watched(tmp_path / "trace", work, surroundings(kind, trap.port))

    assert [one[: len(due)] for one, (_, _, _, due) in zip(found, wanted, strict=True)] == [due for *_, due in wanted]
    assert trap.visitors == []
    assert {seen.proxy for seen in (*target.seen, *secure_target.seen)} == {0, 1, 3}, "nothing came past the proxies"
    proxies = {(info.host, info.port) for info in farm.infos}
    async with pool.connection() as conn:
        database = {(conn.info.hostaddr or conn.info.host, conn.info.port)}
    resolvers = {address for address in trace.addresses if address[1] == 53}
    assert trace.addresses - database - resolvers == proxies
    assert trace.names <= {UNKNOWN_PROXY, *(f"{UNKNOWN_PROXY}.{domain}" for domain in search_domains())}


def search_domains() -> list[str]:
    """What a resolver appends to names."""
    file = Path("/etc/resolv.conf")
    lines = file.read_text().splitlines() if file.exists() else []
    return [domain for line in lines if line.startswith(("search", "domain")) for domain in line.split()[1:]]


async def test_the_watch_sees_a_client_without_a_proxy_of_its_own(
    tmp_path: Path, farm: ProxyFarm, target: Target, trap: Trap
) -> None:
    work = {"plainly": True, "pieces": [{"url": f"http://127.0.0.1:{target.port}/menu"}, {"url": target.url("/menu")}]}
    found, trace = await watched(tmp_path / "direct", work, surroundings("no proxy", trap.port))
    assert found == ["200", "curl 6"], "nobody but the proxies knows the name"
    assert ("127.0.0.1", target.port) in trace.addresses
    if any(port == 53 for _, port in trace.addresses):
        assert NAME in trace.names
    # And one that heeds the environment goes to whatever stands there.
    found, trace = await watched(tmp_path / "elsewhere", work, surroundings("another proxy", trap.port))
    assert found == ["200", "200"]
    assert len(trap.visitors) == 2
    assert ("127.0.0.1", trap.port) in trace.addresses
