"""Success scores of proxies and browsers at a host. Pure.

Successes and refusals lose half their weight every six hours. Selection uses Thompson sampling: each candidate's success probability
is drawn from the Beta distribution of its observations, so proven ones are preferred and the others still get tried.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct

HALF_LIFE = 6 * 3600.0
"""Seconds."""
PRIOR = (4.0, 1.0)
"""Prior: successes and refusals assumed without observations."""
MAX_WEIGHT = 40.0
"""Most observations that count, so that the next refusal still has an effect."""
NEGLIGIBLE = 0.05
"""Weight below which a refusal no longer counts."""
_AS_GOOD = 0.75
"""Share of the best draw from which a candidate counts as equal; the least recently used of those is chosen."""


class Score(Struct, frozen=True):
    """Decayed observations, as of `as_of`."""

    good: float = 0.0
    bad: float = 0.0
    as_of: datetime | None = None

    def at(self, now: datetime) -> Score:
        """The score decayed to `now`."""
        if self.as_of is None:
            return Score(as_of=now)
        left = 0.5 ** (max((now - self.as_of).total_seconds(), 0.0) / HALF_LIFE)
        return Score(self.good * left, self.bad * left, now)

    @property
    def success_probability(self) -> float:
        """Estimated success probability, between 0 and 1."""
        good, bad = self._shape()
        return good / (good + bad)

    def sample(self, rng: random.Random) -> float:
        """Draw a success probability from the distribution; candidates without refusals count as successful."""
        return 1.0 if self.bad < NEGLIGIBLE else rng.betavariate(*self._shape())

    def _shape(self) -> tuple[float, float]:
        total = self.good + self.bad
        scale = min(1.0, MAX_WEIGHT / total) if total else 1.0
        return PRIOR[0] + self.good * scale, PRIOR[1] + self.bad * scale


class Candidate(Struct, frozen=True):
    """A proxy to choose. `used` is the time of its last use in seconds since the epoch, None if never used."""

    proxy_id: int
    score: Score
    used: float | None


def rank(candidates: Sequence[Candidate], rng: random.Random) -> list[int]:
    """Proxies, best first: among those about equal to the best the least recently used one, then the others by their draw."""
    drawn = [(candidate, candidate.score.sample(rng)) for candidate in candidates]
    best = max((success_probability for _, success_probability in drawn), default=0.0)

    def place(item: tuple[Candidate, float]) -> tuple[bool, float, int]:
        candidate, success_probability = item
        good = success_probability >= _AS_GOOD * best
        since = candidate.used or 0.0
        return not good, since if good else -success_probability, candidate.proxy_id

    return [candidate.proxy_id for candidate, _ in sorted(drawn, key=place)]


def attribute_blame(proxy: Score, profile: Score) -> tuple[float, float]:
    """Shares of proxy and browser in one refusal, by their prior refusal probabilities. They add up to 1."""
    fears = 1 - proxy.success_probability, 1 - profile.success_probability
    share = fears[0] / (fears[0] + fears[1])
    return share, 1 - share


class Observation(Struct, frozen=True):
    """Result of a proxy and a browser at a host; the numbers are added to their scores."""

    host: str
    proxy_id: int
    profile: str
    proxy_good: float = 0.0
    proxy_bad: float = 0.0
    profile_good: float = 0.0
    profile_bad: float = 0.0


def aggregate(
    observations: Iterable[Observation],
) -> tuple[dict[tuple[str, int], list[float]], dict[tuple[str, str], list[float]]]:
    """Totals by (host, proxy) and by (host, profile): [successes, refusals]."""
    proxies: dict[tuple[str, int], list[float]] = {}
    profiles: dict[tuple[str, str], list[float]] = {}
    for item in observations:
        sums = proxies.setdefault((item.host, item.proxy_id), [0.0, 0.0])
        sums[0] += item.proxy_good
        sums[1] += item.proxy_bad
        sums = profiles.setdefault((item.host, item.profile), [0.0, 0.0])
        sums[0] += item.profile_good
        sums[1] += item.profile_bad
    return proxies, profiles
