"""An identity: a proxy, a browser and a locale, used and rotated together; and the headers it sends. Pure.

Which identity a request gets is decided in `choose_identity`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from menuwatch.core.http import Expect
from menuwatch.fetch.profiles import GIVEN, LANGUAGE, SITE, STORAGE, Kind, Profile
from menuwatch.proxies.model import Proxy

# Language preferences as browsers send them by default in that region.
_LANGUAGES = {
    "en-US": ("en-US", "en"),
    "en-CA": ("en-CA", "en-US", "en"),
    "fr-CA": ("fr-CA", "fr", "en-CA", "en"),
    "es-PR": ("es-PR", "es", "en"),
}
_KINDS: Mapping[Expect, Kind] = {"json": "fetch", "any": "fetch", "html": "document", "image": "image"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Proxy, browser and locale of a client. `locale` is a language tag such as `en-US`."""

    proxy: Proxy
    profile: Profile
    locale: str

    @property
    def accept_language(self) -> str:
        """The Accept-Language header as this browser writes it."""
        return accept_language(self.locale, self.profile.language_steps)


def accept_language(locale: str, steps: Literal["tenths", "even"]) -> str:
    """Languages with weights: in steps of a tenth (Chrome, Safari), or spread evenly (Firefox)."""
    languages = _LANGUAGES[locale]
    parts = [languages[0]]
    for position, language in enumerate(languages[1:], 1):
        weight = 1 - position / 10 if steps == "tenths" else 1 - position / len(languages)
        parts.append(f"{language};q={int(weight * 10 + 0.5) / 10:g}")
    return ",".join(parts)


def site_relation(url: str, initiator: str | None) -> str:
    """The value of Sec-Fetch-Site: the relation of the requesting page (its URL or origin) to the requested URL.

    Two hosts count as one site when their last two labels are equal, which is right for the shops this is used on.
    Source: Fetch Metadata Request Headers, W3C, section 2.3.
    """
    if initiator is None:
        return "none"
    source, target = urlsplit(initiator), urlsplit(url)
    if (source.scheme, source.netloc) == (target.scheme, target.netloc):
        return "same-origin"
    source_labels, target_labels = (source.hostname or "").split("."), (target.hostname or "").split(".")
    same_site = source.scheme == target.scheme and source_labels[-2:] == target_labels[-2:]
    return "same-site" if same_site else "cross-site"


def browser_headers(
    identity: Identity, *, method: str, url: str, expect: Expect, own: Mapping[str, str]
) -> tuple[list[tuple[str, str]], str]:
    """Headers of a request as this browser sends them, and their order as a comma-separated list.

    `own` are the caller's: they replace the browser's of the same name in its place, and stand behind Accept where the
    browser has no place for them. A POST gets the Origin that a browser adds; a request of a page is taken to come from the
    same origin unless Origin or Referer say otherwise.
    """
    kind = _KINDS[expect]
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    own_headers = {name.lower(): (name, value) for name, value in own.items()}
    if kind == "fetch" and method != "GET":
        own_headers.setdefault("origin", ("Origin", origin))
    initiator = (own_headers.get("origin") or own_headers.get("referer") or ("", None))[1]
    if initiator is None and kind != "document":
        initiator = origin
    relation = site_relation(url, initiator)
    headers: list[tuple[str, str]] = []
    order = ["Host"]
    for name, value in identity.profile.templates[kind]:
        key = name.lower()
        if parts.scheme == "http" and key in identity.profile.http2_only:
            continue
        order.append(name)
        if key in own_headers:
            headers.append((name, own_headers.pop(key)[1]))
        elif value == LANGUAGE:
            headers.append((name, identity.accept_language))
        elif value == SITE:
            headers.append((name, relation))
        elif value == STORAGE:
            # W3C Storage Access Headers apply to other sites only, and cookies are never blocked here.
            if relation == "cross-site":
                headers.append((name, "active"))
        elif value != GIVEN:
            headers.append((name, value))
        if key == "accept":
            after_accept = len(headers), len(order)
    at_header, at_order = after_accept
    extra = list(own_headers.values())
    headers[at_header:at_header] = extra
    order[at_order:at_order] = [name for name, _ in extra]
    return headers, ",".join(order)
