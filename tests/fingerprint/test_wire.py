"""Every browser arrives as itself: handshake, HTTP/2 and headers as another server sees them, through each kind of proxy."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from curl_cffi.requests import AsyncSession

from menuwatch.fetch.profiles import PROFILES, Profile
from menuwatch.sim.proxies import ProxyFarm
from tests.fetch.target import NAME
from tests.fingerprint.conftest import Authority
from tests.fingerprint.profile_requests import KINDS, ask, opened, three
from tests.fingerprint.server import FingerprintServer, Seen, fingerprinting

GOLDEN: dict[str, Any] = tomllib.loads(Path(__file__).with_name("golden.toml").read_text(encoding="utf-8"))
BY_NAME = {profile.name: profile for profile in PROFILES}


def hellos(target: str) -> set[tuple[str, str]]:
    return {(hello["ja4"], hello["ja3n"]) for hello in GOLDEN["targets"][target]["hellos"]}


def test_the_golden_data_is_of_all_twelve() -> None:
    assert len(PROFILES) == 12
    assert set(GOLDEN["headers"]) == set(BY_NAME)
    assert set(GOLDEN["targets"]) == {profile.target for profile in PROFILES}
    assert [profile.name for profile in PROFILES if len(hellos(profile.target)) > 1] == ["chrome-120-windows"]


@pytest.mark.parametrize("proxy", [0, 1], ids=["http", "socks5"])
@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
async def test_a_browser_arrives_as_itself(
    profile: Profile, proxy: int, farm: ProxyFarm, server: FingerprintServer, authority: Authority
) -> None:
    golden = GOLDEN["targets"][profile.target]
    seen = await three(profile, farm, proxy, server, authority.file)
    for kind in KINDS:
        one = seen[kind]
        assert (one.ja4, one.ja3n) in hellos(profile.target)
        assert (one.protocol, one.akamai, one.stream) == ("h2", golden["akamai"], golden["stream"])
        assert one.server_name == NAME
        assert [list(pair) for pair in one.headers] == GOLDEN["headers"][profile.name][kind]
    asked = [(seen[kind].method, seen[kind].path, seen[kind].body) for kind in KINDS]
    assert asked == [("GET", "/menu", ""), ("POST", "/graphql", '{"page":1}'), ("GET", "/a.png", "")]
    # A browser asks one host on one connection.
    assert server.connections == 1
    assert [count.tunnels for count in farm.counts()] == [1 - proxy, proxy]


async def test_chrome_120_says_both_of_its_hellos_and_no_other(
    farm: ProxyFarm, server: FingerprintServer, authority: Authority
) -> None:
    # Each connection says the rarer one in at least 15 of 100 cases: that 400 in a row do not is out of the question.
    profile, found, raw = BY_NAME["chrome-120-windows"], set[tuple[str, str]](), set[str]()
    for number in range(400):
        transport = opened(profile, farm, number % 2, authority.file)
        one = await ask(transport, server, "document")
        await transport.close()
        found.add((one.ja4, one.ja3n))
        raw.add(one.ja4_raw)
        assert found <= hellos("chrome120")
        if found == hellos("chrome120"):
            break
    assert found == hellos("chrome120")
    # Padding, extension 0x0015, is all the difference.
    shorter, longer = sorted(raw)
    assert longer.replace("0015,", "").replace("t13d1517h2", "t13d1516h2") == shorter


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
async def test_a_visitor_who_comes_back_resumes_as_a_browser_does_and_a_new_one_does_not(
    profile: Profile, farm: ProxyFarm, server: FingerprintServer, authority: Authority
) -> None:
    transport = opened(profile, farm, 1, authority.file)
    first = await ask(transport, server, "document", path="/last")
    again = await ask(transport, server, "document")
    await transport.close()
    assert (first.connection, again.connection) == (1, 2)
    assert (first.ja4, first.ja3n) in hellos(profile.target)
    assert again.ja4 == GOLDEN["targets"][profile.target]["resumed"]
    # A ticket is an identity's own: no other is recognised by it.
    other = opened(profile, farm, 0, authority.file)
    stranger = await ask(other, server, "document")
    await other.close()
    assert (stranger.ja4, stranger.ja3n) in hellos(profile.target)


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
async def test_a_navigation_is_what_the_library_recorded_of_that_browser(
    profile: Profile, farm: ProxyFarm, server: FingerprintServer, authority: Authority
) -> None:
    # curl_cffi's own headers are recordings of navigations; they are of macOS and of Chrome, Firefox or Safari x.0.
    async with AsyncSession(
        impersonate=profile.target, trust_env=False, verify=str(authority.file), proxy=farm.infos[0].url
    ) as session:
        answer = await session.get(server.url("/menu"))
    recorded = msgspec.json.decode(answer.content, type=Seen).headers
    transport = opened(profile, farm, 0, authority.file)
    ours = (await ask(transport, server, "document")).headers
    await transport.close()
    assert [name for name, _ in ours] == [name for name, _ in recorded]
    differ = {name for (name, value), (_, other) in zip(ours, recorded, strict=True) if value != other}
    allowed = {
        "safari-17.2-macos": {"user-agent"},
        "chrome-131-linux": {"user-agent", "sec-ch-ua-platform"},
        "chrome-131-windows": {"user-agent", "sec-ch-ua-platform"},
        "chrome-120-windows": {"user-agent", "sec-ch-ua-platform"},
        "firefox-133-windows": {"user-agent"},
        "edge-131-windows": {"user-agent", "sec-ch-ua", "sec-ch-ua-platform"},
        "edge-136-windows": {"user-agent", "sec-ch-ua", "sec-ch-ua-platform"},
    }
    assert differ == allowed.get(profile.name, set())


@pytest.mark.parametrize("name", ["chrome-136-macos", "firefox-135-macos", "safari-18.4-macos"])
async def test_where_a_server_has_no_http2_the_headers_keep_their_order_and_their_capitals(
    name: str, farm: ProxyFarm, authority: Authority
) -> None:
    async with fingerprinting(NAME, authority.context("http/1.1")) as plain:
        transport = opened(BY_NAME[name], farm, 1, authority.file)
        one = await ask(transport, plain, "fetch")
        await transport.close()
    assert (one.protocol, one.akamai) == ("http/1.1", "")
    template = [header for header, _ in BY_NAME[name].templates["fetch"]]
    written = [header for header, _ in one.headers if header in template]
    assert written == [header for header in template if header in written]
    assert {"User-Agent", "Accept-Encoding", "Content-Type", "Origin"} <= set(written)
    # The hello is the same: what a server will speak is not known before it.
    assert (one.ja4, one.ja3n) in hellos(BY_NAME[name].target)
