"""The places of signatures: where two of them stand side by side on one menu, so that they are two products. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple


class Lifetime(NamedTuple):
    """A listing of a signature in one store and size, and when it was on the menu."""

    signature: int
    store: int
    size: str
    since: float
    """Seconds since 1970."""
    until: float | None
    """Null: it still is."""


Place = tuple[str, str]


def places(lifetimes: Iterable[Lifetime]) -> dict[int, frozenset[Place]]:
    """The places of each signature. Two signatures share one exactly if some store listed both in one size at the same time: a
    store and size whose listings were not all there together stands for several places, one for each time."""
    at: dict[tuple[int, str], list[Lifetime]] = defaultdict(list)
    for one in lifetimes:
        at[one.store, one.size].append(one)
    found: dict[int, set[Place]] = defaultdict(set)
    for (store, size), there in at.items():
        if len({one.signature for one in there}) == 1 or all(one.until is None for one in there):
            for one in there:
                found[one.signature].add((str(store), size))
            continue
        for period, signatures in enumerate(_periods(there)):
            for signature in signatures:
                found[signature].add((str(store) if period == 0 else f"{store}#{period}", size))
    return {signature: frozenset(there) for signature, there in found.items()}


def _periods(there: Iterable[Lifetime]) -> list[set[int]]:
    """Who was there together: the largest sets of lifetimes that overlap, by time."""
    events = sorted(
        event
        for one in there
        for event in (
            (one.since, 0, one.signature),
            (float("inf") if one.until is None else max(one.until, one.since), 1, one.signature),
        )
    )
    present: dict[int, int] = defaultdict(int)
    periods: list[set[int]] = []
    grown = False
    for _, ends, signature in events:
        if not ends:
            present[signature] += 1
            grown = True
            continue
        if grown:
            periods.append({one for one, times in present.items() if times})
            grown = False
        present[signature] -= 1
    return periods
