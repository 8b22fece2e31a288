"""Choose an identity for a request: proxy, browser and locale. Pure.

1. Proxy: `rank_proxies` orders the active proxies for the host by their success scores there and by last use; proxies that failed or
   were refused within the same request come only if there is no other. The database leases the first one that is free.
2. Idle identities of that proxy and host are reused (`identity_pool`), unless their browser was just refused or used last.
3. Browser and locale of a new identity: `choose_identity`.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from types import MappingProxyType

from menuwatch.fetch.identity import Identity
from menuwatch.fetch.profiles import PROFILES, Profile, plausible
from menuwatch.hosts.scores import Candidate, Score, rank
from menuwatch.proxies.location import region_of
from menuwatch.proxies.model import Proxy

_RANKED = 200
"""Maximum number of proxies offered for a lease."""


def rank_proxies(
    proxies: Mapping[int, Proxy],
    *,
    scores: Mapping[int, Score],
    last_used: Mapping[int, float],
    avoid: Collection[int],
    rng: random.Random,
) -> list[int]:
    """Ids of the proxies to offer for a lease, best first. `last_used`: times of use by this process, in seconds since the epoch, in
    addition to the stored ones. Proxies in `avoid` are left out if there are others."""
    candidates = []
    for proxy_id in [proxy_id for proxy_id in proxies if proxy_id not in avoid] or proxies:
        stored, used = proxies[proxy_id].last_used_at, last_used.get(proxy_id)
        if stored is not None:
            used = max(stored.timestamp(), used or 0.0)
        candidates.append(Candidate(proxy_id, scores.get(proxy_id, Score()), used))
    return rank(candidates, rng)[:_RANKED]


def choose_identity(
    proxy: Proxy,
    *,
    store_state: str | None,
    rng: random.Random,
    today: date,
    profiles: Sequence[Profile] = PROFILES,
    avoid: Collection[str] = (),
    scores: Mapping[str, Score] = MappingProxyType({}),
) -> Identity:
    """Choose an identity for that proxy; its location decides the locale, else the store's.
    Its time zone stands for a country and state that are unknown.

    The browser is drawn by its weight in that country times its success at the host (`scores`, by name). Profiles in `avoid` were just
    refused and are drawn only if there is no other.
    """
    available = plausible(profiles, _region(proxy)[0], today)
    choice = [(profile, weight) for profile, weight in available if profile.name not in avoid] or available
    # Squared, so that a browser which a host refuses is drawn rarely, but not never.
    weights = [weight * scores.get(profile.name, Score()).sample(rng) ** 2 for profile, weight in choice]
    (profile,) = rng.choices([profile for profile, _ in choice], weights=weights)
    return Identity(proxy=proxy, profile=profile, locale=locale_behind(proxy, store_state))


def locale_behind(proxy: Proxy, store_state: str | None) -> str:
    """Locale of a client behind that proxy, or at the store if the proxy's location is unknown."""
    region = _region(proxy)
    return locale_of(None, store_state) if region == (None, None) else locale_of(*region)


def _region(proxy: Proxy) -> tuple[str | None, str | None]:
    """Country and state of a proxy. Of a time zone only what does not contradict the rest is taken."""
    country, state = region_of(proxy.timezone)
    if proxy.country is not None and proxy.country != country:
        return proxy.country, proxy.state
    return country, proxy.state or state


def locale_of(country: str | None, state: str | None) -> str:
    """Locale of a region, by two-letter codes; US English if unknown."""
    country, state = (country or "US").upper(), (state or "").upper()
    if country == "CA":
        return "fr-CA" if state == "QC" else "en-CA"
    return "es-PR" if "PR" in (country, state) else "en-US"
