"""An identity: one proxy, one browser, one locale, used together and rotated together. Pure."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

from menuwatch.core.http import Expect
from menuwatch.fetch.profiles import GIVEN, LANGUAGE, PROFILES, SITE, STORAGE, Kind, Profile, plausible
from menuwatch.fetch.scores import Score
from menuwatch.proxies.model import Proxy

# A browser weighs its languages; the ones that browsers ask for when installed in that place.
_LANGUAGES = {
    "en-US": ("en-US", "en"),
    "en-CA": ("en-CA", "en-US", "en"),
    "fr-CA": ("fr-CA", "fr", "en-CA", "en"),
    "es-PR": ("es-PR", "es", "en"),
}
_KINDS: Mapping[Expect, Kind] = {"json": "fetch", "any": "fetch", "html": "document", "image": "image"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who asks. `locale` is a language tag, as `en-US`."""

    proxy: Proxy
    profile: Profile
    locale: str

    @property
    def accept_language(self) -> str:
        """The header as this browser writes it."""
        return accept_language(self.locale, self.profile.language_steps)


def locale_of(country: str | None, state: str | None) -> str:
    """The locale of a place, by two-letter codes; where it is not known, the United States' English."""
    country, state = (country or "US").upper(), (state or "").upper()
    if country == "CA":
        return "fr-CA" if state == "QC" else "en-CA"
    return "es-PR" if "PR" in (country, state) else "en-US"


def accept_language(locale: str, steps: Literal["tenths", "even"]) -> str:
    """Languages with their weights: by tenths (Chrome, Safari), or spread evenly (Firefox)."""
    languages = _LANGUAGES[locale]
    parts = [languages[0]]
    for position, language in enumerate(languages[1:], 1):
        weight = 1 - position / 10 if steps == "tenths" else 1 - position / len(languages)
        parts.append(f"{language};q={int(weight * 10 + 0.5) / 10:g}")
    return ",".join(parts)


def assume(
    proxy: Proxy,
    *,
    store_state: str | None,
    rng: random.Random,
    today: date,
    profiles: Sequence[Profile] = PROFILES,
    avoid: Collection[str] = (),
    scores: Mapping[str, Score] = MappingProxyType({}),
) -> Identity:
    """An identity behind that proxy: its place decides the locale, else the store's.

    The browser is drawn by its weight at that place, times how it fares at the host (`scores`, by name). `avoid` names profiles that
    were refused just now; they are drawn only when there is no other.
    """
    everyone = plausible(profiles, proxy.country, today)
    choice = [(profile, weight) for profile, weight in everyone if profile.name not in avoid] or everyone
    # Squared, so that a browser which a host refuses is soon seldom tried, and never forgotten.
    weights = [weight * scores.get(profile.name, Score()).draw(rng) ** 2 for profile, weight in choice]
    (profile,) = rng.choices([profile for profile, _ in choice], weights=weights)
    return Identity(proxy=proxy, profile=profile, locale=locale_behind(proxy, store_state))


def locale_behind(proxy: Proxy, store_state: str | None) -> str:
    """The locale of somebody behind that proxy, or at the store where the proxy's place is not known."""
    placed = proxy.country is not None or proxy.state is not None
    return locale_of(proxy.country, proxy.state) if placed else locale_of(None, store_state)


def site_relation(url: str, initiator: str | None) -> str:
    """The value of Sec-Fetch-Site: how the page that asks (its address or origin) relates to what it asks for.

    Two hosts count as one site when their last two labels are equal, which is right for the shops this is used on.
    Source: Fetch Metadata Request Headers, W3C, section 2.3.
    """
    if initiator is None:
        return "none"
    here, there = urlsplit(initiator), urlsplit(url)
    if (here.scheme, here.netloc) == (there.scheme, there.netloc):
        return "same-origin"
    ours, theirs = (here.hostname or "").split("."), (there.hostname or "").split(".")
    return "same-site" if here.scheme == there.scheme and ours[-2:] == theirs[-2:] else "cross-site"


def browser_headers(
    identity: Identity, *, method: str, url: str, expect: Expect, given: Mapping[str, str]
) -> tuple[list[tuple[str, str]], str]:
    """The headers of one request as this browser sends them, and their order as a comma-separated list.

    `given` are the caller's own: they replace the browser's of the same name in its place, and stand behind Accept where the
    browser has no place for them. A POST gets the Origin that a browser adds; a request of a page is taken to come from the
    same origin unless Origin or Referer say otherwise.
    """
    kind = _KINDS[expect]
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    own = {name.lower(): (name, value) for name, value in given.items()}
    if kind == "fetch" and method != "GET":
        own.setdefault("origin", ("Origin", origin))
    initiator = (own.get("origin") or own.get("referer") or ("", None))[1]
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
        if key in own:
            headers.append((name, own.pop(key)[1]))
        elif value == LANGUAGE:
            headers.append((name, identity.accept_language))
        elif value == SITE:
            headers.append((name, relation))
        elif value == STORAGE:
            # W3C Storage Access Headers: for other sites only, and nothing here ever keeps cookies back from one.
            if relation == "cross-site":
                headers.append((name, "active"))
        elif value != GIVEN:
            headers.append((name, value))
        if key == "accept":
            here = len(headers), len(order)
    at_header, at_order = here
    extra = list(own.values())
    headers[at_header:at_header] = extra
    order[at_order:at_order] = [name for name, _ in extra]
    return headers, ",".join(order)
