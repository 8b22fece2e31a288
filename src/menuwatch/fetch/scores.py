"""Who is let in where: good and bad experiences of a proxy, and of a browser, with a host. Pure.

Both numbers halve every six hours, so that what is old weighs little. A choice is a draw: each candidate's chance to be let
in is drawn
from the Beta distribution of its experiences (Thompson sampling), so the proven are used and the rest still get their tries.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

HALF_LIFE = 6 * 3600.0
"""Seconds."""
_HOPE = (4.0, 1.0)
"""What is believed of somebody unknown: good and bad experiences that it never had."""
_MEMORY = 40.0
"""Experiences beyond so many make nobody more certain: the next refusal must still count."""
_FORGOTTEN = 0.05
"""What is left of a refusal when it does not count any more."""
_AS_GOOD = 0.75
"""Share of the best draw from which a candidate is as good as the best; among those the one that rested longest goes."""


@dataclass(frozen=True, slots=True)
class Score:
    """Decayed experiences, as of `as_of`."""

    good: float = 0.0
    bad: float = 0.0
    as_of: datetime | None = None

    def at(self, now: datetime) -> Score:
        """The same, as of `now`."""
        if self.as_of is None:
            return Score(as_of=now)
        left = 0.5 ** (max((now - self.as_of).total_seconds(), 0.0) / HALF_LIFE)
        return Score(self.good * left, self.bad * left, now)

    @property
    def chance(self) -> float:
        """The chance to be let in, as far as is known: between 0 and 1."""
        good, bad = self._shape()
        return good / (good + bad)

    def draw(self, rng: random.Random) -> float:
        """A chance that would go with these experiences; whoever was never refused is believed to be let in."""
        return 1.0 if self.bad < _FORGOTTEN else rng.betavariate(*self._shape())

    def _shape(self) -> tuple[float, float]:
        total = self.good + self.bad
        scale = min(1.0, _MEMORY / total) if total else 1.0
        return _HOPE[0] + self.good * scale, _HOPE[1] + self.bad * scale


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proxy to choose. `used` is when it was last used, in seconds of the epoch, None for one that never was."""

    proxy_id: int
    score: Score
    used: float | None


def rank(candidates: Sequence[Candidate], rng: random.Random) -> list[int]:
    """Proxies, the one to take first: of those that are as good as the best the one that rested longest, then the others by
    their chance."""
    drawn = [(candidate, candidate.score.draw(rng)) for candidate in candidates]
    best = max((chance for _, chance in drawn), default=0.0)

    def place(item: tuple[Candidate, float]) -> tuple[bool, float, int]:
        candidate, chance = item
        good = chance >= _AS_GOOD * best
        since = candidate.used or 0.0
        return not good, since if good else -chance, candidate.proxy_id

    return [candidate.proxy_id for candidate, _ in sorted(drawn, key=place)]


def blame(proxy: Score, profile: Score) -> tuple[float, float]:
    """How one refusal is shared between the proxy and the browser that met it: by what was to be feared of each. They add up to 1."""
    fears = 1 - proxy.chance, 1 - profile.chance
    share = fears[0] / (fears[0] + fears[1])
    return share, 1 - share


@dataclass(frozen=True, slots=True)
class Experience:
    """What a proxy and a browser met at a host; the numbers are added to their scores."""

    host: str
    proxy_id: int
    profile: str
    proxy_good: float = 0.0
    proxy_bad: float = 0.0
    profile_good: float = 0.0
    profile_bad: float = 0.0


def added_up(
    experiences: Iterable[Experience],
) -> tuple[dict[tuple[str, int], list[float]], dict[tuple[str, str], list[float]]]:
    """Sums by (host, proxy) and by (host, profile): [good, bad]."""
    proxies: dict[tuple[str, int], list[float]] = {}
    profiles: dict[tuple[str, str], list[float]] = {}
    for item in experiences:
        sums = proxies.setdefault((item.host, item.proxy_id), [0.0, 0.0])
        sums[0] += item.proxy_good
        sums[1] += item.proxy_bad
        sums = profiles.setdefault((item.host, item.profile), [0.0, 0.0])
        sums[0] += item.profile_good
        sums[1] += item.profile_bad
    return proxies, profiles
