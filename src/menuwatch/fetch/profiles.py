"""The browsers that Menuwatch plays, and which of them may be drawn.

They are data: `browsers.toml` beside this module, or the file that `PROFILES_FILE` names in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from menuwatch.fetch import profile_file
from menuwatch.fetch.browser import GIVEN, LANGUAGE, SITE, STORAGE, Kind, Profile

__all__ = ["GIVEN", "LANGUAGE", "PROFILES", "SITE", "STORAGE", "Catalogue", "Kind", "Profile", "load", "plausible"]

BUILT_IN = Path(__file__).with_name("browsers.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The profiles of one file, in its order; `source` is that file."""

    source: Path
    profiles: tuple[Profile, ...]


def load(path: Path | None = None) -> Catalogue:
    """The profiles of that file, else the built-in ones.

    Raises Refused naming the file, the profile, the field, what is wrong and what would be right.
    """
    if path is None or path == BUILT_IN:
        return Catalogue(source=BUILT_IN, profiles=PROFILES)
    return Catalogue(source=path, profiles=profile_file.read(path))


def plausible(profiles: Sequence[Profile], country: str | None, today: date) -> list[tuple[Profile, float]]:
    """The profiles to draw from behind a proxy in that country, with their weights (all above 0, of any sum).

    These are the current ones; retired ones only where none is current, and unreleased ones only where there is nothing else,
    as with a clock that is wrong: never an empty list for profiles that are not.
    """
    for status in ("current", "retired", "not yet released"):
        found = [(profile, profile.weight_in(country)) for profile in profiles if profile.status(today) == status]
        if found:
            return found
    return []


PROFILES: tuple[Profile, ...] = profile_file.read(BUILT_IN)
"""The built-in ones."""
