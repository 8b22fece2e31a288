"""What each browser sends, as it arrives, and how an identity comes about."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from curl_cffi.requests.impersonate import BrowserType

from menuwatch.fetch.choose_identity import choose_identity, locale_of
from menuwatch.fetch.identity import accept_language, browser_headers, site_relation
from menuwatch.fetch.profiles import PROFILES
from menuwatch.sim.proxies import ProxyFarm
from tests.fetch.conftest import Opener, as_row
from tests.fetch.target import NAME, Target

TODAY = date(2026, 11, 21)
WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64)"
MACINTOSH = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)"
CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
BRANDS = '"Google Chrome";v="131", "Chromium";v="131", "Not_A Brand";v="24"'


def chrome(agent: str, platform: str, origin: str) -> list[tuple[str, str]]:
    return [
        ("Content-Length", "10"),
        ("sec-ch-ua-platform", platform),
        ("User-Agent", f"{agent} {CHROME}"),
        ("sec-ch-ua", BRANDS),
        ("Content-Type", "application/json"),
        ("sec-ch-ua-mobile", "?0"),
        ("Accept", "*/*"),
        ("x-client", "web"),
        ("Origin", origin),
        ("Sec-Fetch-Site", "same-origin"),
        ("Sec-Fetch-Mode", "cors"),
        ("Sec-Fetch-Dest", "empty"),
        ("Referer", f"{origin}/stores"),
        ("Accept-Encoding", "gzip, deflate, br, zstd"),
        ("Accept-Language", "en-US,en;q=0.9"),
    ]


def golden(name: str, origin: str) -> list[tuple[str, str]]:
    """A POST with JSON over HTTP/1.1, where the target's TLS offers no HTTP/2."""
    if name == "chrome-131-windows":
        return chrome(WINDOWS, '"Windows"', origin)
    if name == "chrome-131-macos":
        return chrome(MACINTOSH, '"macOS"', origin)
    if name == "firefox-133-windows":
        return [
            ("User-Agent", "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:133.0) Gecko/20100101 Firefox/133.0"),
            ("Accept", "*/*"),
            ("x-client", "web"),
            ("Accept-Language", "en-US,en;q=0.5"),
            ("Accept-Encoding", "gzip, deflate, br, zstd"),
            ("Referer", f"{origin}/stores"),
            ("Content-Type", "application/json"),
            ("Content-Length", "10"),
            ("Origin", origin),
            ("Sec-Fetch-Dest", "empty"),
            ("Sec-Fetch-Mode", "cors"),
            ("Sec-Fetch-Site", "same-origin"),
            ("Priority", "u=4"),  # Firefox says so over HTTP/1.1 too
        ]
    assert name == "safari-17.2-macos"
    return [
        ("Content-Type", "application/json"),
        ("Accept", "*/*"),
        ("x-client", "web"),
        ("Sec-Fetch-Site", "same-origin"),
        ("Accept-Language", "en-US,en;q=0.9"),
        ("Accept-Encoding", "gzip, deflate, br"),
        ("Sec-Fetch-Mode", "cors"),
        ("Origin", origin),
        ("User-Agent", f"{MACINTOSH} AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.2 Safari/605.1.15"),
        ("Content-Length", "10"),
        ("Referer", f"{origin}/stores"),
        ("Sec-Fetch-Dest", "empty"),
    ]


@pytest.mark.parametrize("name", ["chrome-131-windows", "chrome-131-macos", "firefox-133-windows", "safari-17.2-macos"])
async def test_a_request_for_data_arrives_with_the_browsers_headers_in_its_order(
    name: str, target: Target, transport: Opener
) -> None:
    # All twelve over HTTP/2 and TLS: tests/fingerprint.
    origin = f"http://{NAME}:{target.port}"
    each = transport(0, profile=name)
    for _ in range(2):
        exchange = await each.send(
            "POST", target.url("/graphql"), json={"page": 1}, headers={"x-client": "web", "referer": f"{origin}/stores"}
        )
        assert exchange.answer is not None
    for seen in target.seen:
        assert seen.headers == [("Host", f"{NAME}:{target.port}"), *golden(name, origin)]
        assert seen.body == b'{"page":1}'


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
async def test_over_tls_a_page_is_asked_for_as_by_navigation(
    profile: object, secure_target: Target, transport: Opener, certificate: tuple[Path, Path]
) -> None:
    name = profile.name  # type: ignore[attr-defined]
    exchange = await transport(1, profile=name, ca_file=certificate[0]).send("GET", secure_target.url(), expect="html")
    assert exchange.answer is not None
    seen = secure_target.seen[0]
    assert seen["accept"].startswith("text/html,application/xhtml+xml,application/xml;q=0.9,")
    assert (seen["sec-fetch-dest"], seen["sec-fetch-mode"], seen["sec-fetch-site"]) == ("document", "navigate", "none")
    assert "Origin" not in seen.names
    assert ("sec-ch-ua" in seen.names) == name.startswith(("chrome", "edge"))


async def test_an_image_is_asked_for_as_from_a_page(target: Target, transport: Opener) -> None:
    await transport(0, profile="chrome-131-macos").send(
        "GET", target.url("/a.png"), expect="image", headers={"Referer": "http://shop.invalid/"}
    )
    seen = target.seen[0]
    assert seen["accept"] == "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
    # menus.invalid beside shop.invalid: another site.
    assert (seen["sec-fetch-dest"], seen["sec-fetch-mode"], seen["sec-fetch-site"]) == (
        "image",
        "no-cors",
        "cross-site",
    )


def test_every_profile_names_a_target_of_this_curl_exactly() -> None:
    known = {target.value for target in BrowserType}
    for profile in PROFILES:
        assert profile.target in known
        assert any(char.isdigit() for char in profile.target), "short names move between releases"
    assert len({profile.name for profile in PROFILES}) == len(PROFILES) == 12


def test_what_http2_alone_understands_is_left_out_for_plain_targets(farm: ProxyFarm) -> None:
    # Chrome has no Priority over HTTP/1.1 (and 120 none at all), Firefox and Safari 18 do; TE is for HTTP/2 everywhere.
    row = as_row(farm.infos[0])
    for profile in PROFILES:
        identity = replace(choose_identity(row, store_state=None, rng=random.Random(1), today=TODAY), profile=profile)
        none, always = ("chrome-120", "safari-17"), ("firefox", "safari-18")
        for scheme in ("http", "https"):
            headers, order = browser_headers(
                identity, method="GET", url=f"{scheme}://h.example/", expect="json", own={}
            )
            names = [name for name, _ in headers]
            expected = not profile.name.startswith(none) and (scheme == "https" or profile.name.startswith(always))
            assert ("Priority" in names) == expected
            assert ("TE" in names) == (scheme == "https" and profile.name.startswith("firefox"))
            assert names == [name for name in order.split(",") if name in names]


@pytest.mark.parametrize(
    ("country", "state", "locale"),
    [
        ("US", "AZ", "en-US"), (None, "AZ", "en-US"), (None, None, "en-US"), ("CA", "ON", "en-CA"), ("ca", "qc", "fr-CA"),
        ("CA", None, "en-CA"), ("US", "PR", "es-PR"), ("PR", None, "es-PR"), (None, "CA", "en-US"),
    ],
)  # fmt: skip
def test_a_place_has_a_locale(country: str | None, state: str | None, locale: str) -> None:
    assert locale_of(country, state) == locale


def test_languages_are_weighed_as_each_browser_does() -> None:
    assert accept_language("en-US", "tenths") == "en-US,en;q=0.9"
    assert accept_language("en-US", "even") == "en-US,en;q=0.5"
    assert accept_language("en-CA", "tenths") == "en-CA,en-US;q=0.9,en;q=0.8"
    assert accept_language("en-CA", "even") == "en-CA,en-US;q=0.7,en;q=0.3"
    assert accept_language("fr-CA", "even") == "fr-CA,fr;q=0.8,en-CA;q=0.5,en;q=0.3"


def test_the_proxys_place_decides_and_the_stores_only_where_the_proxy_has_none(farm: ProxyFarm) -> None:
    row = as_row(farm.infos[0])
    quebec = replace(row, country="CA", state="QC")
    nowhere = replace(row, country=None, state=None, timezone=None)
    rng = random.Random(3)
    assert choose_identity(quebec, store_state="AZ", rng=rng, today=TODAY).locale == "fr-CA"
    assert choose_identity(nowhere, store_state="PR", rng=rng, today=TODAY).locale == "es-PR"
    assert choose_identity(nowhere, store_state=None, rng=rng, today=TODAY).locale == "en-US"


@pytest.mark.parametrize(
    ("country", "state", "timezone", "locale"),
    [
        (None, None, "America/Toronto", "en-CA"), (None, None, "America/Montreal", "fr-CA"), (None, None, "Canada/Pacific", "en-CA"),
        (None, None, "America/Phoenix", "en-US"), (None, None, "America/Indiana/Knox", "en-US"), (None, None, "US/Eastern", "en-US"),
        (None, None, "Pacific/Honolulu", "en-US"), (None, None, "America/Puerto_Rico", "es-PR"),
        # The country that a state alone leaves open, and the state that a country does.
        (None, "QC", "America/Toronto", "fr-CA"), ("CA", None, "America/Montreal", "fr-CA"),
        # What was said of the place counts more than its zone.
        ("CA", "QC", "America/Phoenix", "fr-CA"), ("US", None, "America/Toronto", "en-US"), ("CA", "ON", "America/Montreal", "en-CA"),
        # A zone that tells nothing of the language: the store's state decides, as without one.
        (None, None, "Europe/Berlin", "es-PR"), (None, None, "UTC", "es-PR"), (None, None, None, "es-PR"),
    ],
)  # fmt: skip
def test_the_time_zone_of_a_proxy_takes_part_in_its_language(
    farm: ProxyFarm, country: str | None, state: str | None, timezone: str | None, locale: str
) -> None:
    row = replace(as_row(farm.infos[0]), country=country, state=state, timezone=timezone)
    assert choose_identity(row, store_state="PR", rng=random.Random(1), today=TODAY).locale == locale


def test_browsers_are_drawn_by_weight_and_refused_ones_avoided_while_there_are_others(farm: ProxyFarm) -> None:
    row, rng = as_row(farm.infos[0]), random.Random(5)
    names = [profile.name for profile in PROFILES]
    drawn = Counter(choose_identity(row, store_state=None, rng=rng, today=TODAY).profile.name for _ in range(2000))
    assert drawn.most_common(1)[0][0] == "chrome-131-windows"
    assert 0.15 < drawn["chrome-131-windows"] / 2000 < 0.25  # weight 20 of 100
    assert {
        choose_identity(row, store_state=None, rng=rng, today=TODAY, avoid=names[:-1]).profile.name for _ in range(20)
    } == {names[-1]}
    assert choose_identity(row, store_state=None, rng=rng, today=TODAY, avoid=names).profile.name in names


@pytest.mark.parametrize(
    ("url", "initiator", "relation"),
    [
        ("https://a.example/x", None, "none"),
        ("https://a.example/x", "https://a.example/y", "same-origin"),
        ("https://a.example/x", "https://a.example:444", "same-site"),
        ("https://api.a.example/x", "https://www.a.example", "same-site"),
        ("https://a.example/x", "http://a.example", "cross-site"),
        ("https://a.example/x", "https://b.test", "cross-site"),
    ],
)
def test_sites_are_related_as_the_standard_says(url: str, initiator: str | None, relation: str) -> None:
    assert site_relation(url, initiator) == relation
