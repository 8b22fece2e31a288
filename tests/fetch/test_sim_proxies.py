"""The simulated proxies by themselves, spoken to in bytes."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
import time

import pytest
import trustme

from menuwatch.proxies.parse import parse_line
from menuwatch.sim.proxies import Fault, ProxyFarm, start_proxies
from tests.fetch.target import NAME, Target


async def talk(farm: ProxyFarm, index: int, *sent: bytes) -> bytes:
    """All that comes back for what is sent, piece by piece, until the proxy hangs up or says no more."""
    info = farm.infos[index]
    reader, writer = await asyncio.open_connection(info.host, info.port)
    got = b""
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):  # hung up on with bytes unread
        for piece in sent:
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
        got = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return got


def login(farm: ProxyFarm, index: int) -> bytes:
    info = farm.infos[index]
    return b"Proxy-Authorization: Basic " + base64.b64encode(f"{info.username}:{info.password}".encode())


async def test_a_farm_follows_from_its_seed_and_its_addresses_are_read_as_a_providers(farm: ProxyFarm) -> None:
    again = await start_proxies(4, seed=7)
    other = await start_proxies(4, seed=8)
    try:
        assert [info.password for info in again.infos] == [info.password for info in farm.infos]
        assert [info.password for info in other.infos] != [info.password for info in farm.infos]
    finally:
        await again.close()
        await other.close()
    assert [info.protocol for info in farm.infos] == ["http", "socks5", "http", "socks5"]
    for info in farm.infos:
        read = parse_line(info.url)
        assert (read.protocol, read.host, read.port) == (info.protocol, info.host, info.port)
        assert (read.username, read.password) == (info.username, info.password)
        assert info.password not in repr(info)


async def test_an_absolute_address_is_forwarded_without_what_concerns_the_proxy(
    farm: ProxyFarm, target: Target
) -> None:
    request = f"GET {target.url('/a?b=1')} HTTP/1.1\r\nHost: x\r\nProxy-Connection: keep-alive\r\nX-A: 1\r\n".encode()
    answer = await talk(farm, 0, request + login(farm, 0) + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")
    seen = target.seen[0]
    assert (seen.path, seen.proxy) == ("/a?b=1", 0)
    assert seen.names == ["Host", "X-A", "Connection"]


async def test_every_request_needs_the_password(farm: ProxyFarm, target: Target) -> None:
    connect = f"CONNECT {NAME}:{target.port} HTTP/1.1\r\n".encode()
    for header in (b"", login(farm, 2) + b"\r\n", b"Proxy-Authorization: Basic !!!\r\n"):
        answer = await talk(farm, 0, connect + header + b"\r\n")
        assert answer.startswith(b"HTTP/1.1 407 ")
        assert b'Proxy-Authenticate: Basic realm="proxy"' in answer
    assert await talk(farm, 1, b"\x05\x01\x00") == b"\x05\xff"  # no login offered
    assert await talk(farm, 1, b"\x05\x01\x02", b"\x01\x01u\x01p") == b"\x05\x02\x01\x01"
    assert target.peers == []
    assert [count.refused_logins for count in farm.counts()] == [3, 2, 0, 0]


@pytest.mark.parametrize("host", ["192.0.2.1", "example.com", "169.254.169.254", "[2001:db8::1]"])
async def test_nothing_beyond_this_machine_is_reached(host: str, farm: ProxyFarm) -> None:
    answer = await talk(farm, 0, f"CONNECT {host}:80 HTTP/1.1\r\n".encode() + login(farm, 0) + b"\r\n\r\n")
    assert answer.startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 502 "))
    assert farm.counts()[0].tunnels == 0


@pytest.mark.parametrize("index", [0, 1])
async def test_nonsense_is_hung_up_on(index: int, farm: ProxyFarm) -> None:
    for nonsense in (b"", b"\x00" * 40, b"GET\r\n\r\n", b"CONNECT :x HTTP/1.1\r\n\r\n"):
        assert not (await talk(farm, index, nonsense)).startswith(b"HTTP/1.1 200")


async def test_a_dead_proxy_comes_back_on_its_port(farm: ProxyFarm) -> None:
    port = farm.infos[0].port
    await farm.fault(0, "dead")
    with pytest.raises(ConnectionRefusedError):
        await talk(farm, 0)
    await farm.fault(0, None)
    assert farm.infos[0].port == port
    assert (await talk(farm, 0, b"GET / HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 407")


async def test_a_fault_may_last_for_some_requests_only(farm: ProxyFarm, target: Target) -> None:
    await farm.fault(0, "connect_503", times=2)
    request = f"GET {target.url()} HTTP/1.1\r\n".encode() + login(farm, 0) + b"\r\n\r\n"
    statuses = [(await talk(farm, 0, request))[9:12] for _ in range(4)]
    assert statuses == [b"503", b"503", b"200", b"200"]
    assert farm.counts()[0].faults == 2
    with pytest.raises(ValueError, match="is not a fault"):
        await farm.fault(0, "sulk")  # type: ignore[arg-type]


# RFC 1928 section 6.
SOCKS_REPLIES: dict[Fault, int] = {
    "socks_failure": 1, "socks_ruleset": 2, "socks_network_unreachable": 3, "socks_host_unreachable": 4, "socks_refused": 5,
    "socks_ttl": 6, "socks_command": 7, "socks_address_type": 8,
}  # fmt: skip


@pytest.mark.parametrize("kind", SOCKS_REPLIES)
async def test_a_socks_proxy_gives_each_reply_of_the_standard(kind: Fault, farm: ProxyFarm, target: Target) -> None:
    info = farm.infos[1]
    user, password = info.username.encode(), info.password.encode()
    said = b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password
    wanted = b"\x05\x01\x00\x03" + bytes([len(NAME)]) + NAME.encode() + target.port.to_bytes(2, "big")
    await farm.fault(1, kind)
    answer = await talk(farm, 1, b"\x05\x01\x02", said, wanted)
    assert answer == b"\x05\x02\x01\x00" + b"\x05" + bytes([SOCKS_REPLIES[kind]]) + b"\x00\x01" + bytes(6)
    assert target.peers == []
    with pytest.raises(ValueError, match="SOCKS"):
        await farm.fault(0, kind)


async def test_an_https_proxy_takes_its_clients_in_tls_and_needs_a_certificate(target: Target, farm: ProxyFarm) -> None:
    with pytest.raises(ValueError, match="certificate"):
        await start_proxies(1, protocols=("https",))
    with pytest.raises(ValueError, match="certificate"):
        await farm.fault(0, "mitm")
    authority = trustme.CA()
    shown, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(shown)
    authority.configure_trust(trusting)
    secure = await start_proxies(1, protocols=("https",), names={NAME: "127.0.0.1"}, tls=shown)
    try:
        (info,) = secure.infos
        assert parse_line(info.url).protocol == "https"
        reader, writer = await asyncio.open_connection(info.host, info.port, ssl=trusting)
        writer.write(f"GET {target.url('/tls')} HTTP/1.1\r\n".encode() + login(secure, 0) + b"\r\n\r\n")
        assert (await asyncio.wait_for(reader.readline(), 5)).startswith(b"HTTP/1.1 200")
        writer.close()
        assert [seen.path for seen in target.seen] == ["/tls"]
        assert secure.counts()[0].tunnels == 1
        assert not (await talk(secure, 0, b"GET / HTTP/1.1\r\n\r\n")).startswith(b"HTTP/")
    finally:
        await secure.close()


async def test_a_slow_proxy_lets_drops_through(farm: ProxyFarm, target: Target) -> None:
    await farm.fault(0, "slow", after_bytes=40)
    began = time.monotonic()
    answer = await talk(farm, 0, f"GET {target.url()} HTTP/1.1\r\n".encode() + login(farm, 0) + b"\r\n\r\n")
    assert answer.endswith(b'{"ok": true}')
    assert time.monotonic() - began >= (len(answer) // 40) * 0.1


@pytest.mark.parametrize(("kind", "answered"), [("close", b""), ("garbage", b"\x00\x9fI am not what you think")])
async def test_a_proxy_that_hangs_up_or_talks_nonsense(kind: Fault, answered: bytes, farm: ProxyFarm) -> None:
    await farm.fault(0, kind)
    got = await talk(farm, 0, b"CONNECT menus.invalid:443 HTTP/1.1\r\n" + login(farm, 0) + b"\r\n\r\n")
    assert got.startswith(answered)
    assert b"HTTP/1.1" not in got


async def test_origins_are_forgotten_when_connections_end(farm: ProxyFarm, target: Target) -> None:
    await talk(farm, 0, f"GET {target.url()} HTTP/1.1\r\n".encode() + login(farm, 0) + b"\r\n\r\n")
    assert len(target.peers) == 1
    for _ in range(100):
        if farm.origin_of(target.peers[0]) is None:
            break
        await asyncio.sleep(0)
    assert farm.origin_of(target.peers[0]) is None
