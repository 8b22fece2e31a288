"""The browser profiles: load and list them, and which of them may be chosen.

They are data: `browsers.toml` beside this module, or the file set by `PROFILES_FILE`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from msgspec import Struct

from menuwatch.core.errors import Refused
from menuwatch.fetch import profile_file
from menuwatch.fetch.browser import GIVEN, LANGUAGE, SITE, STORAGE, Kind, Profile

__all__ = ["GIVEN", "LANGUAGE", "PROFILES", "SITE", "STORAGE", "Kind", "Profile", "ProfileSet", "load", "plausible"]

BUILT_IN = Path(__file__).with_name("browsers.toml")


class ProfileSet(Struct, frozen=True, kw_only=True):
    """Profiles of one file, in order; `source` is that file."""

    source: Path
    profiles: tuple[Profile, ...]


def load(path: Path | None = None) -> ProfileSet:
    """Load the profiles of that file, else the built-in ones.

    Raises Refused with the file, the profile, the field, what is wrong and what to write instead.
    """
    if path is None or path == BUILT_IN:
        return ProfileSet(source=BUILT_IN, profiles=PROFILES)
    return ProfileSet(source=path, profiles=profile_file.read(path))


def plausible(profiles: Sequence[Profile], country: str | None, today: date) -> list[tuple[Profile, float]]:
    """Profiles to choose from for a proxy in that country, with relative weights (all above 0).

    These are the current profiles; retired ones only if none is current, and unreleased ones only if there is no other (as with a
    wrong clock). Empty only if there are no profiles.
    """
    for status in ("current", "retired", "not yet released"):
        choices = [(profile, profile.weight_in(country)) for profile in profiles if profile.status(today) == status]
        if choices:
            return choices
    return []


class ProfileSummary(Struct, frozen=True, kw_only=True):
    """A browser profile. `share` is its percentage of identities on that day, `status` its lifecycle status."""

    name: str
    target: str
    platform: str
    weight: int
    share: float
    released: date
    retires: date
    status: str
    user_agent: str


class ProfileHeader(Struct, frozen=True, kw_only=True):
    """One line of a header template; requests fill in the values in braces."""

    request: Kind
    header: str
    value: str


def list_profiles(profiles: Sequence[Profile], *, country: str | None, today: date) -> list[ProfileSummary]:
    """All profiles in order, each with its share for proxies in that country (None: unknown)."""
    if country is not None and not (len(country) == 2 and country.isascii() and country.isalpha()):
        raise Refused(f"country {country!r}: must be two letters, for example US")
    choices = plausible(profiles, country, today)
    total = sum(weight for _, weight in choices)
    shares = {profile.name: 100 * weight / total for profile, weight in choices}
    return [
        ProfileSummary(
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


def list_headers(profiles: Sequence[Profile], name: str) -> list[ProfileHeader]:
    """Headers that a profile sends, in order. Raises Refused with the existing names."""
    for profile in profiles:
        if profile.name == name:
            return [
                ProfileHeader(request=kind, header=header, value=value)
                for kind, lines in profile.templates.items()
                for header, value in lines
            ]
    raise Refused(f"no profile is called {name!r}; there are {', '.join(profile.name for profile in profiles)}")


PROFILES: tuple[Profile, ...] = profile_file.read(BUILT_IN)
"""The built-in profiles."""
