"""What findings that appear together have in common: a store, a chain, a point of sale, a platform, or a release of ours. Pure.

Findings of one measure in one direction that opened within WINDOW are explained by as few causes as possible. A scope explains them
if at least SHARE of its stores that were measured meanwhile show it: one that is at least half way out of its band counts as
showing it, and at least LEAST of its stores are really out. The scope that explains most stores, less those that do not show it, is
taken first, then the rest; what no scope explains is of single stores. A platform's finding is our normalizer's if at its stores
the release changed just before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Literal, NamedTuple

Scope = Literal["store", "chain", "point_of_sale", "platform", "normalizer"]

WINDOW = timedelta(hours=24)
SHARE = 0.6
LEAST: Mapping[str, int] = {"chain": 2, "point_of_sale": 3, "platform": 3}
_ORDER: Sequence[Literal["chain", "point_of_sale", "platform"]] = ("chain", "point_of_sale", "platform")


class MeasuredStore(NamedTuple):
    """A store that was measured in the time, with a band for the measure."""

    id: int
    platform: str
    chain: str | None
    point_of_sale: str | None
    is_out: bool
    leans: bool
    """More than half way out in the same direction."""
    release_changed: bool


class Cause(NamedTuple):
    """`affected` of `stores` of the scope show the finding."""

    scope: Scope
    key: str | None
    affected: int
    stores: int


def attribute(stores: Iterable[MeasuredStore]) -> dict[int, Cause]:
    """The cause for each store that is out of its band, by id."""
    stores = list(stores)
    rest = {store.id: store for store in stores if store.is_out}
    causes: dict[int, Cause] = {}
    groups = _groups(stores)
    while rest and (best := _best(groups, rest, causes)) is not None:
        scope, key, members = best
        explained = [store for store in members if store.id in rest]
        shown = sum(store.leans or store.is_out for store in members)
        whose: Scope = scope
        if scope == "platform" and sum(store.release_changed for store in explained) >= 0.8 * len(explained):
            whose = "normalizer"
        for store in explained:
            causes[store.id] = Cause(whose, key, shown, len(members))
            del rest[store.id]
    return causes | {store_id: Cause("store", None, 1, 1) for store_id in rest}


_Group = tuple[Literal["chain", "point_of_sale", "platform"], str, list[MeasuredStore]]


def _groups(stores: Sequence[MeasuredStore]) -> list[_Group]:
    groups: list[_Group] = []
    for scope in _ORDER:
        members: dict[str, list[MeasuredStore]] = {}
        for store in stores:
            key = getattr(store, scope)
            if key is not None:
                members.setdefault(key, []).append(store)
        groups += [(scope, key, of) for key, of in sorted(members.items())]
    return groups


def _best(groups: Sequence[_Group], rest: Collection[int], explained: Collection[int]) -> _Group | None:
    """The scope with most stores that show the finding and are not explained yet, less those of it that do not show it; of several the
    narrowest."""
    found: _Group | None = None
    most = (0, 0)
    for scope, key, members in groups:
        shown = [store.id for store in members if store.leans or store.is_out]
        if sum(store.id in rest for store in members) < LEAST[scope] or len(shown) < SHARE * len(members):
            continue
        new = sum(store_id not in explained for store_id in shown)
        merit = (new - (len(members) - len(shown)), -len(members))
        if found is None or merit > most:
            found, most = (scope, key, members), merit
    return found
