"""Browser profiles for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from menuwatch.core.errors import Refused
from menuwatch.fetch.profiles import Kind, Profile, plausible


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileView:
    """A profile as people see it. `share` is how many of 100 identities get it on that day, `status` where it stands in its life."""

    name: str
    target: str
    platform: str
    weight: int
    share: float
    released: date
    retires: date
    status: str
    user_agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SentView:
    """One line of a header template; a value in braces is filled in by each request."""

    request: Kind
    header: str
    value: str


def listed(profiles: Sequence[Profile], *, country: str | None, today: date) -> list[ProfileView]:
    """All of them in their order, with the share that each has behind a proxy in that country (None: of an unknown place)."""
    if country is not None and not (len(country) == 2 and country.isascii() and country.isalpha()):
        raise Refused(f"country {country!r}: it would have to be two letters, as US")
    drawn = plausible(profiles, country, today)
    total = sum(weight for _, weight in drawn)
    shares = {profile.name: 100 * weight / total for profile, weight in drawn}
    return [
        ProfileView(
            name=profile.name,
            target=profile.target,
            platform=profile.platform,
            weight=profile.weight,
            share=round(shares.get(profile.name, 0.0), 1),
            released=profile.released,
            retires=profile.retires,
            status=profile.status(today),
            user_agent=profile.user_agent,
        )
        for profile in profiles
    ]


def sent(profiles: Sequence[Profile], name: str) -> list[SentView]:
    """What a profile sends, in its order. Raises Refused with the names that there are."""
    for profile in profiles:
        if profile.name == name:
            return [
                SentView(request=kind, header=header, value=value)
                for kind, lines in profile.templates.items()
                for header, value in lines
            ]
    raise Refused(f"no profile is called {name!r}; there are {', '.join(profile.name for profile in profiles)}")
