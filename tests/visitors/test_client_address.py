"""Whose request it is, behind no proxy, behind ours, and behind one that somebody made up."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.config.settings import Settings
from menuwatch.core.errors import Refused
from menuwatch.web.client import client_address, network_of, parsed

OURS = (ip_network("10.0.0.0/8"), ip_network("2001:db8:1::/48"))


def asked(peer: str | None, *forwarded: str) -> str | None:
    headers = [(b"host", b"example.org"), *((b"x-forwarded-for", line.encode("latin-1")) for line in forwarded)]
    scope = {"type": "http", "client": (peer, 50000) if peer else None, "headers": headers}
    found = client_address(scope, OURS)
    return None if found is None else str(found)


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        # Nobody in front: what the client says of itself is not believed.
        ("203.0.113.9", [], "203.0.113.9"),
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        ("127.0.0.1", ["198.51.100.1"], "127.0.0.1"),
        # One proxy of ours in front.
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("2001:db8:1::5", ["203.0.113.9"], "203.0.113.9"),
        ("::ffff:10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        # The client sent a list of its own; our proxy added who it was asked from.
        ("10.0.0.1", ["198.51.100.1, 203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["10.9.9.9, 203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["198.51.100.1", "203.0.113.9"], "203.0.113.9"),
        # Two of ours, one after the other.
        ("10.0.0.1", ["198.51.100.1, 203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", ["198.51.100.1, 203.0.113.9", "10.0.0.2"], "203.0.113.9"),
        # Somebody within our own network.
        ("10.0.0.1", ["10.0.0.7"], "10.0.0.7"),
        ("10.0.0.1", ["10.0.0.7, 10.0.0.2"], "10.0.0.7"),
        # Ports, brackets, quotes, zones, IPv4 in IPv6 clothes.
        ("10.0.0.1", ["203.0.113.9:4711"], "203.0.113.9"),
        ("10.0.0.1", ["[2001:db8:2::7]:443"], "2001:db8:2::7"),
        ("10.0.0.1", ['"[2001:db8:2::7]"'], "2001:db8:2::7"),
        ("10.0.0.1", ["2001:DB8:2:0::7"], "2001:db8:2::7"),
        ("10.0.0.1", ["::ffff:203.0.113.9"], "203.0.113.9"),
        ("fe80::1%eth0", [], "fe80::1"),
        # Nothing usable: the nearest that is known.
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["unknown"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9, _hidden"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9, 10.0.0.2:http"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9,,10.0.0.2, "], "203.0.113.9"),
        ("10.0.0.1", ["\xff\xfe, 203.0.113.9"], "203.0.113.9"),
        (None, ["203.0.113.9"], None),
        ("", ["203.0.113.9"], None),
    ],
)
def test_the_client_is_who_a_trusted_proxy_says_it_is(
    peer: str | None, forwarded: list[str], expected: str | None
) -> None:
    assert asked(peer, *forwarded) == expected


@given(st.lists(st.text(st.characters(max_codepoint=255), max_size=80), max_size=5))
def test_whatever_a_client_sends_it_stays_who_it_is(lines: list[str]) -> None:
    assert asked("203.0.113.9", *lines) == "203.0.113.9"
    assert asked("10.0.0.1", *lines, "203.0.113.9") == "203.0.113.9"


@given(st.ip_addresses(), st.integers(0, 65535))
def test_an_address_is_the_same_with_and_without_a_port(address: object, port: int) -> None:
    written = f"[{address}]:{port}" if ":" in str(address) else f"{address}:{port}"
    assert parsed(written) == parsed(str(address)) is not None


@pytest.mark.parametrize(
    "text", ["", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4:x", "1.2.3.4:-1", "[::1", "[::1]x", "::1::", "1" * 999]
)
def test_what_is_no_address_is_none(text: str) -> None:
    assert parsed(text) is None


def test_the_setting_takes_addresses_and_networks() -> None:
    found = Settings.from_env({"TRUSTED_PROXIES": " 10.0.0.0/8, 127.0.0.1 ,::1"}).trusted_proxies
    assert found == (ip_network("10.0.0.0/8"), ip_network("127.0.0.1"), ip_network("::1"))
    assert ip_address("127.0.0.1") in found[1]
    assert Settings.from_env({}).trusted_proxies == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("10.0.0.1/8", "did you mean 10.0.0.0/8?"),
        ("nginx", "'nginx' is not an address"),
        ("10.0.0.0/40", "10.0.0.0/40"),
    ],
)
def test_the_setting_says_what_is_wrong_and_what_would_be_right(text: str, says: str) -> None:
    with pytest.raises(Refused, match="TRUSTED_PROXIES=") as refusal:
        Settings.from_env({"TRUSTED_PROXIES": text})
    assert says in str(refusal.value)
    assert "for example TRUSTED_PROXIES=127.0.0.1,10.0.0.0/8" in str(refusal.value)


def test_of_an_ipv6_address_its_network_is_counted() -> None:
    assert network_of(ip_address("203.0.113.9")) == "203.0.113.9"
    assert (
        network_of(ip_address("2001:db8:5:6:7::8")) == network_of(ip_address("2001:db8:5:6::1")) == "2001:db8:5:6::/64"
    )
    assert network_of(None) == "None"
