"""Where messages may go: the registries of special addresses, and addresses that nothing can be sent to."""

from __future__ import annotations

import ipaddress
from datetime import timedelta
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.alerts import notify
from menuwatch.alerts import service as operations
from menuwatch.alerts import ssrf_guard as guard
from menuwatch.alerts import store as alerts
from menuwatch.alerts.delivery_worker import AlertDeliverer
from menuwatch.alerts.model import Rule
from menuwatch.alerts.outgoing import NotDelivered
from menuwatch.alerts.validate import AlertSettings
from menuwatch.config.settings import Settings
from menuwatch.core.clock import ManualClock
from menuwatch.core.encryption import SecretBox
from menuwatch.core.errors import InvalidField, Refused
from menuwatch.db.pool import Pool
from tests.alerts.rule_factory import LONG_AGO, add_rule, rows

SPECIAL_4 = """
    0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.0.0/29 192.0.0.8/32
    192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24 192.88.99.0/24 192.88.99.2/32 192.168.0.0/16 198.18.0.0/15
    198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 255.255.255.255/32
"""
"""Of the IANA IPv4 Special-Purpose Address Registry all that is not at home on the public internet."""
SPECIAL_6 = """
    ::1/128 ::/128 ::ffff:0:0/96 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32 2001:1::1/128 2001:1::2/128 2001:1::3/128
    2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28 2001:30::/28 2001:db8::/32 3fff::/20 5f00::/16 fc00::/7 fe80::/10
"""
"""Of the IANA IPv6 Special-Purpose Address Registry the same."""
OTHERS = """
    224.0.0.0/4 ff00::/8 fec0::/10 ::/96 ::ffff:0:0:0/96 200::/7 4000::/3 8000::/1
    64:ff9b::7f00:0/104 64:ff9b::a00:0/104 64:ff9b::c0a8:0/112 64:ff9b::a9fe:0/112
    2002:7f00::/24 2002:a00::/24 2002:c0a8::/32 2002:a9fe::/32
"""
"""Multicast, former and unassigned ranges, and addresses of version 4 that are private inside those of version 6."""
PUBLIC = """
    1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.31.196.1 192.175.48.1
    198.17.255.255 198.20.0.0 223.255.255.255 2000::1 2001:200::1 2606:4700::1111 2620:4f:8000::1 2a00:1450::1 3ffe:ffff::1
    64:ff9b::808:808 2002:808:808::1
"""


@pytest.mark.parametrize("network", f"{SPECIAL_4} {SPECIAL_6} {OTHERS}".split())
def test_special_addresses_are_not_public(network: str) -> None:
    span = ipaddress.ip_network(network)
    for address in (span[0], span[-1], span[span.num_addresses // 2]):
        assert not guard.is_public(str(address)), address
        assert not guard.may_be_public(str(address))


@pytest.mark.parametrize("address", PUBLIC.split())
def test_what_lies_beside_them_is_public(address: str) -> None:
    assert guard.is_public(address)


UNUSABLE = (
    "http://①②⑦.⓪.⓪.①/h", "https://😀.example/", "https://[v1.x]/", "https://ex\u00adample.com/", "https://ex\u00adample..com/",
    "https://ⅷ.example/", "http://[::1", "http://example.com:65536/", "http://example.com:-1/", "http://example.com:0/",
    "http://example.com:٣/", "http:///h", "http://", "http://a..example.com/", f"http://{'a' * 64}.example.com/",
    "http://%65xample.com/", "http://ex ample.com/", "http://exa\tmple.com/", "http://me@example.com/", "http://a\\@example.com/",
    "http://exa\ud800mple.com/", "gopher://example.com/", "//example.com/h", "",
)  # fmt: skip


async def test_a_webhook_that_cannot_be_called_is_refused_when_given(pool: Pool) -> None:
    settings = AlertSettings(secret_box=SecretBox(), allow_private=True, platforms=())
    fields = []
    async with pool.connection() as conn:
        for url in UNUSABLE:
            channel = {"kind": "webhook", "url": url, "secret": "s" * 16}
            wish = {"name": "r", "condition": "proxies_down", "channels": [channel]}
            try:
                await operations.add_rule(conn, wish, settings=settings, now=LONG_AGO)
            except InvalidField as refused:
                fields.append(refused.field)
            else:
                raise AssertionError(f"{url!r} was taken")
    assert set(fields) == {"channels/0/url"}


@given(
    st.text(max_size=30)
    | st.from_regex(r"https?://[\x21-\x7e\u2460-\u24ff\[\]:.%@]{0,20}(:\d{0,6})?/?", fullmatch=True)
)
def test_what_is_taken_can_be_called(url: str) -> None:
    try:
        _, host, port = guard.check_url(url)
    except Refused:
        return
    assert httpx.URL(url).copy_with(host=host).raw_host.decode() == host
    assert 0 < port < 65536


@pytest.mark.parametrize(
    "url",
    [
        "mailtos://me:pw@example.com?smtp=①②⑦.⓪.⓪.①", "mailtos://me:pw@example.com?smtp=[v1.x]", "mailtos://me:pw@example.com?smtp=a..b",
        "json://[::1", "json://[v1.x]/", "json://ex\u00adample.com/", "xmls://ⅷ.example/", "json://", "",
    ],
)  # fmt: skip
async def test_a_notification_url_that_leads_nowhere_is_refused_and_fails(url: str) -> None:
    with pytest.raises(Refused):
        notify.check(url, allow_private=True)
    with pytest.raises(NotDelivered) as failed:
        await notify.send(url, "t", "b", seconds=1, allow_private=True)
    assert failed.value.final


async def _stored(pool: Pool, kind: str, urls: tuple[str, ...]) -> Rule:
    """A rule whose channels hold these addresses as they are, with a message for each."""
    async with pool.connection() as conn:
        rule = await add_rule(conn, "stored", "operations", "proxies_down")
        channels = [{"kind": kind, "address": url, "secret": "s" * 16, "shown": "…"} for url in urls]
        await alerts.set_channels(conn, rule.id, channels)
        await operations.send_test(conn, rule.id, now=LONG_AGO)
    return rule


@pytest.mark.parametrize(
    ("kind", "urls"),
    [
        ("webhook", tuple(url for url in UNUSABLE if "\ud800" not in url)),
        ("apprise", ("json://[::1", "mailtos://me:pw@example.com?smtp=[v1.x]")),
    ],
)
async def test_one_that_is_stored_already_fails_with_the_reason(pool: Pool, kind: str, urls: tuple[str, ...]) -> None:
    await _stored(pool, kind, urls)
    clock = ManualClock(LONG_AGO + timedelta(hours=1))
    deliverer = AlertDeliverer(pool, Settings(alert_allow_private=1), clock=clock)
    for _ in range(len(urls) // 8 + 1):
        await deliverer.step()
    async with pool.connection() as conn:
        found: list[dict[str, Any]] = await rows(conn, "SELECT * FROM alert_deliveries ORDER BY id")
    assert len(found) == len(urls)
    for one in found:
        assert (one["status"], one["attempts"], one["next_attempt_at"]) == ("failed", 1, None)
        assert one["error"]
        assert len(one["tries"]) == 1
