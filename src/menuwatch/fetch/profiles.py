"""Browser profiles as data: what each browser sends, in its order.

`target` names the TLS and HTTP/2 behaviour in curl_cffi; always an exact name, because its short names move between releases, and
the headers are always ours, because its own are those of a page navigation on one platform. Sources: the targets and user
agents of research on curl_cffi 0.16.3 against a server that sees the ClientHello; header order as those browsers send it.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Kind = Literal["document", "fetch", "image"]

# Names that stand for a value of the request at hand; a template line without its value is left out.
LANGUAGE, SITE, GIVEN = "{accept-language}", "{sec-fetch-site}", "{given}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One browser on one platform.

    `templates` holds, for each kind of request, (header, value) in the browser's order: the places of cookies, length and
    what the request itself brings (`{given}`) are in it too. `language_steps` is how it weighs its languages.
    """

    name: str
    target: str
    weight: int
    language_steps: Literal["tenths", "even"]
    accept_encoding: str
    templates: MappingProxyType[Kind, tuple[tuple[str, str], ...]]


def _chromium(name: str, *, target: str, weight: int, agent: str, brands: str, platform: str) -> Profile:
    encoding = "gzip, deflate, br, zstd"
    hints = (("sec-ch-ua", brands), ("sec-ch-ua-mobile", "?0"), ("sec-ch-ua-platform", platform))
    document = (
        *hints,
        ("Upgrade-Insecure-Requests", "1"),
        ("User-Agent", agent),
        (
            "Accept",
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,"
                "application/signed-exchange;v=b3;q=0.7"
            ),
        ),
        ("Sec-Fetch-Site", SITE),
        ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-User", "?1"),
        ("Sec-Fetch-Dest", "document"),
        ("Referer", GIVEN),
        ("Accept-Encoding", encoding),
        ("Accept-Language", LANGUAGE),
        ("Cookie", GIVEN),
        ("Priority", "u=0, i"),
    )
    fetch = (
        ("Content-Length", GIVEN),
        ("sec-ch-ua-platform", platform),
        ("User-Agent", agent),
        ("sec-ch-ua", brands),
        ("Content-Type", GIVEN),
        ("sec-ch-ua-mobile", "?0"),
        ("Accept", "*/*"),
        ("Origin", GIVEN),
        ("Sec-Fetch-Site", SITE),
        ("Sec-Fetch-Mode", "cors"),
        ("Sec-Fetch-Dest", "empty"),
        ("Referer", GIVEN),
        ("Accept-Encoding", encoding),
        ("Accept-Language", LANGUAGE),
        ("Cookie", GIVEN),
        ("Priority", "u=1, i"),
    )
    image = (
        ("sec-ch-ua-platform", platform),
        ("User-Agent", agent),
        ("sec-ch-ua", brands),
        ("sec-ch-ua-mobile", "?0"),
        ("Accept", "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"),
        ("Sec-Fetch-Site", SITE),
        ("Sec-Fetch-Mode", "no-cors"),
        ("Sec-Fetch-Dest", "image"),
        ("Referer", GIVEN),
        ("Accept-Encoding", encoding),
        ("Accept-Language", LANGUAGE),
        ("Cookie", GIVEN),
        ("Priority", "i"),
    )
    return Profile(
        name=name,
        target=target,
        weight=weight,
        language_steps="tenths",
        accept_encoding=encoding,
        templates=MappingProxyType({"document": document, "fetch": fetch, "image": image}),
    )


def _firefox(name: str, *, target: str, weight: int, agent: str) -> Profile:
    encoding = "gzip, deflate, br, zstd"
    document = (
        ("User-Agent", agent),
        ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
        ("Accept-Language", LANGUAGE),
        ("Accept-Encoding", encoding),
        ("Referer", GIVEN),
        ("Cookie", GIVEN),
        ("Upgrade-Insecure-Requests", "1"),
        ("Sec-Fetch-Dest", "document"),
        ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-Site", SITE),
        ("Sec-Fetch-User", "?1"),
        ("Priority", "u=0, i"),
        ("TE", "trailers"),
    )
    fetch = (
        ("User-Agent", agent),
        ("Accept", "*/*"),
        ("Accept-Language", LANGUAGE),
        ("Accept-Encoding", encoding),
        ("Referer", GIVEN),
        ("Content-Type", GIVEN),
        ("Content-Length", GIVEN),
        ("Origin", GIVEN),
        ("Cookie", GIVEN),
        ("Sec-Fetch-Dest", "empty"),
        ("Sec-Fetch-Mode", "cors"),
        ("Sec-Fetch-Site", SITE),
        ("Priority", "u=4"),
        ("TE", "trailers"),
    )
    image = (
        ("User-Agent", agent),
        ("Accept", "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5"),
        ("Accept-Language", LANGUAGE),
        ("Accept-Encoding", encoding),
        ("Referer", GIVEN),
        ("Cookie", GIVEN),
        ("Sec-Fetch-Dest", "image"),
        ("Sec-Fetch-Mode", "no-cors"),
        ("Sec-Fetch-Site", SITE),
        ("Priority", "u=5, i"),
        ("TE", "trailers"),
    )
    return Profile(
        name=name,
        target=target,
        weight=weight,
        language_steps="even",
        accept_encoding=encoding,
        templates=MappingProxyType({"document": document, "fetch": fetch, "image": image}),
    )


def _safari(name: str, *, target: str, weight: int, agent: str) -> Profile:
    encoding = "gzip, deflate, br"
    document = (
        ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
        ("Sec-Fetch-Site", SITE),
        ("Cookie", GIVEN),
        ("Accept-Encoding", encoding),
        ("Sec-Fetch-Mode", "navigate"),
        ("User-Agent", agent),
        ("Referer", GIVEN),
        ("Accept-Language", LANGUAGE),
        ("Sec-Fetch-Dest", "document"),
    )
    fetch = (
        ("Content-Type", GIVEN),
        ("Accept", "*/*"),
        ("Sec-Fetch-Site", SITE),
        ("Accept-Language", LANGUAGE),
        ("Accept-Encoding", encoding),
        ("Sec-Fetch-Mode", "cors"),
        ("Origin", GIVEN),
        ("User-Agent", agent),
        ("Content-Length", GIVEN),
        ("Referer", GIVEN),
        ("Sec-Fetch-Dest", "empty"),
        ("Cookie", GIVEN),
    )
    image = (
        (
            "Accept",
            (
                "image/webp,image/avif,image/jxl,image/heic,image/heic-sequence,video/*;q=0.8,image/png,"
                "image/svg+xml,image/*;q=0.8,*/*;q=0.5"
            ),
        ),
        ("Sec-Fetch-Site", SITE),
        ("Accept-Language", LANGUAGE),
        ("Accept-Encoding", encoding),
        ("Sec-Fetch-Mode", "no-cors"),
        ("User-Agent", agent),
        ("Referer", GIVEN),
        ("Sec-Fetch-Dest", "image"),
        ("Cookie", GIVEN),
    )
    return Profile(
        name=name,
        target=target,
        weight=weight,
        language_steps="tenths",
        accept_encoding=encoding,
        templates=MappingProxyType({"document": document, "fetch": fetch, "image": image}),
    )


_CHROME_131 = '"Google Chrome";v="131", "Chromium";v="131", "Not_A Brand";v="24"'

PROFILES: tuple[Profile, ...] = (
    _chromium(
        "chrome-131-windows",
        target="chrome131",
        weight=5,
        agent="Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
        "Chrome/131.0.0.0 Safari/537.36",
        brands=_CHROME_131,
        platform='"Windows"',
    ),
    _chromium(
        "chrome-131-macos",
        target="chrome131",
        weight=2,
        agent="Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) "
        "Chrome/131.0.0.0 Safari/537.36",
        brands=_CHROME_131,
        platform='"macOS"',
    ),
    _firefox(
        "firefox-133-windows",
        target="firefox133",
        weight=1,
        agent="Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:133.0) Gecko/20100101 Firefox/133.0",
    ),
    _safari(
        "safari-17.2-macos",
        target="safari170",
        weight=2,
        agent="Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
        "Version/17.2 Safari/605.1.15",
    ),
)
