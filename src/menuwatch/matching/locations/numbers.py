"""Gives groups of records the numbers of the locations that they were: numbers stay with the shop. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from menuwatch.matching.locations.link import Key, Known

_MENU, _DECIDED = 1_000, 1_000_000


class Numbering(NamedTuple):
    """`numbers`: for each group its location, None for a new one. `merged`: locations that ended, with the one that has their records
    now. `split`: for groups that get a new location, the location that most of them left."""

    numbers: tuple[int | None, ...]
    merged: Mapping[int, int]
    split: Mapping[int, int]


def assign(groups: Sequence[Sequence[Key]], known: Known) -> Numbering:
    """A group takes the location that most of its menus had; where two groups come from one location, the larger share keeps the
    number. Menus count before licences, a person's word before both: a shop that moved keeps its number, and the licence for the old
    place stays behind."""
    votes: list[tuple[int, int, int]] = []
    left: dict[int, Counter[int]] = {}
    for at, group in enumerate(groups):
        counts: Counter[int] = Counter()
        for key in group:
            if (before := known.locations.get(key)) is not None:
                counts[before] += _MENU if key[0] == "menu" else 1
                left.setdefault(before, Counter())[at] += 1
            if (decided := known.decided.get(key)) is not None:
                counts[decided] += _DECIDED
        refused = {location for key in group for location in counts if (key, location) in known.refused}
        votes += [(-count, location, at) for location, count in counts.items() if location not in refused]
    numbers: list[int | None] = [None] * len(groups)
    taken: set[int] = set()
    for _, location, at in sorted(votes):
        if numbers[at] is None and location not in taken:
            numbers[at] = location
            taken.add(location)
    merged: dict[int, int] = {}
    split: dict[int, int] = {}
    for location, counts in sorted(left.items()):
        for at, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            number = numbers[at]
            if location not in taken and number is not None:
                merged.setdefault(location, number)
            elif location in taken and number is None:
                split.setdefault(at, location)
    return Numbering(tuple(numbers), merged, split)
