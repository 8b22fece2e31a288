"""Groups records of menus and licences into locations. Pure, and independent of the order of the records.

Menus are joined first, best pairs first, unless two records of the groups rule each other out. Then each licence goes to the one
group that it fits best; where two fit alike it goes to none. A licence alone makes no location: most are of shops without a menu.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from menuwatch.matching.locations.compare import (
    LINKED,
    Comparison,
    Reason,
    ReasonCode,
    Record,
    Scale,
    compare,
    confidence,
)
from menuwatch.matching.locations.names import weights_of

Key = tuple[str, int]

_CROWD = 60
"""Records that share a telephone number or a place from which on it says nothing."""
_MARGIN = 2.0
"""Bits by which a licence has to fit one location better than the next one."""
_CELL = 0.002
"""Degrees: about 200 m. Positions of one shop lie in one cell or in neighbours."""


class Placed(NamedTuple):
    """How a record came into its group: the record that it joined it by (None: it is the group's first), and the evidence."""

    to: Key | None
    confidence: float
    reasons: tuple[Reason, ...]


class Doubt(NamedTuple):
    """Two records of different groups that may be one shop; a person could say."""

    a: Key
    b: Key
    confidence: float
    reasons: tuple[Reason, ...]


class Linking(NamedTuple):
    """`groups`: the records of each location, menus first. `placed`: how each came there."""

    groups: tuple[tuple[Key, ...], ...]
    placed: Mapping[Key, Placed]
    doubts: tuple[Doubt, ...]


class Known(NamedTuple):
    """What is known beforehand. `locations`: where each record was; `decided`: where a person put it; `refused`: where not."""

    locations: Mapping[Key, int] = {}
    decided: Mapping[Key, int] = {}
    refused: frozenset[tuple[Key, int]] = frozenset()


def link(records: Sequence[Record], known: Known | None = None) -> Linking:
    """Groups the records; what a person decided holds."""
    return _Linker(sorted(records, key=lambda r: r.key), known or Known()).run()


def scale_of(records: Iterable[Record]) -> Scale:
    records = list(records)
    return Scale(
        weights_of(name for record in records for name in record.names),
        Counter(phone for record in records if (phone := record.phone)),
    )


class _Linker:
    def __init__(self, records: Sequence[Record], known: Known) -> None:
        self._known = known
        self._records = {record.key: record for record in records}
        self._scale = scale_of(records)
        self._group: dict[Key, Key] = {key: key for key in self._records if key[0] == "menu"}
        self._members: dict[Key, list[Key]] = {key: [key] for key in self._group}
        self._placed: dict[Key, Placed] = {}
        self._compared: dict[tuple[Key, Key], Comparison] = {}

    def run(self) -> Linking:
        self._join_decided()
        pairs = _candidates(self._records.values())
        menus = sorted(
            ((self._compare(a, b), a, b) for a, b in pairs if a[0] == b[0] == "menu"),
            key=lambda x: (-x[0].score, x[1], x[2]),
        )
        doubts: list[Doubt] = []
        for comparison, a, b in menus:
            if comparison.score < LINKED or self._group[a] == self._group[b]:
                continue
            if self._may_join(self._group[a], self._group[b]):
                self._join(a, b, comparison)
            elif not comparison.veto:
                doubts.append(Doubt(a, b, confidence(comparison.score), comparison.reasons))
        near = [(c, a, b) for c, a, b in menus if LINKED > c.score > LINKED - 6 and not c.veto]
        doubts += [Doubt(a, b, confidence(c.score), c.reasons) for c, a, b in near if self._group[a] != self._group[b]]
        self._place_licences(pairs)
        groups = []
        for root, members in sorted(self._members.items()):
            if self._group[root] == root:
                groups.append(tuple(sorted(members, key=lambda key: (key[0] != "menu", key))))
        for group in groups:
            for key in group:
                self._placed.setdefault(key, Placed(None, 1.0, ()))
        return Linking(tuple(groups), self._placed, tuple(doubts))

    def _compare(self, a: Key, b: Key) -> Comparison:
        pair = (a, b) if a < b else (b, a)
        if (comparison := self._compared.get(pair)) is None:
            before = self._known.locations.get(a)
            same = before is not None and before == self._known.locations.get(b)
            comparison = compare(self._records[pair[0]], self._records[pair[1]], self._scale, linked_before=same)
            self._compared[pair] = comparison
        return comparison

    def _join_decided(self) -> None:
        by_location: dict[int, list[Key]] = defaultdict(list)
        for key, location in self._known.decided.items():
            if key in self._group:
                by_location[location].append(key)
        person = Placed(None, 1.0, (Reason(ReasonCode.PERSON),))
        for location, keys in sorted(by_location.items()):
            # A decision names a location: records that the matcher put there stay with it.
            anchors = [
                key
                for key in self._group
                if self._known.locations.get(key) == location
                and key not in self._known.decided
                and (key, location) not in self._known.refused
            ]
            first, *others = [*sorted(anchors)[:1], *sorted(keys)]
            for key in others:
                self._merge(first, key)
            for key in keys:
                self._placed[key] = person

    def _apart(self, a: Key, b: Key) -> bool:
        """Whether a person keeps the two apart: one was refused, or put elsewhere than where the other one is or was put."""
        for x, y in ((a, b), (b, a)):
            there = self._known.decided.get(y, self._known.locations.get(y))
            if there is not None and (x, there) in self._known.refused:
                return True
        decided = self._known.decided.get(a), self._known.decided.get(b)
        return None not in decided and decided[0] != decided[1]

    def _may_join(self, a: Key, b: Key) -> bool:
        for x in self._members[a]:
            for y in self._members[b]:
                if self._apart(x, y):
                    return False
                comparison = self._compare(x, y)
                same_platform = self._records[x].platform == self._records[y].platform
                if comparison.veto or (same_platform and comparison.score < LINKED):
                    return False
        return True

    def _join(self, a: Key, b: Key, comparison: Comparison) -> None:
        placed = Placed(a, confidence(comparison.score), comparison.reasons)
        newcomer = b if len(self._members[self._group[b]]) <= len(self._members[self._group[a]]) else a
        if newcomer == a:
            placed = placed._replace(to=b)
        self._placed.setdefault(newcomer, placed)
        self._placed.setdefault(b if newcomer == a else a, placed._replace(to=newcomer))
        self._merge(a, b)

    def _merge(self, a: Key, b: Key) -> None:
        root, other = sorted((self._group[a], self._group[b]))
        if root == other:
            return
        for key in self._members[other]:
            self._group[key] = root
        self._members[root] += self._members.pop(other)

    def _place_licences(self, pairs: Iterable[tuple[Key, Key]]) -> None:
        found: dict[Key, dict[Key, tuple[Comparison, Key]]] = defaultdict(dict)
        for a, b in pairs:
            if (a[0] == "menu") == (b[0] == "menu"):
                continue
            licence, menu = (a, b) if b[0] == "menu" else (b, a)
            comparison, root = self._compare(licence, menu), self._group[menu]
            if comparison.veto or self._apart(licence, menu) or self._is_former(licence, menu, comparison):
                continue
            best = found[licence].get(root)
            if best is None or (comparison.score, menu) > (best[0].score, best[1]):
                found[licence][root] = (comparison, menu)
        chosen: dict[Key, list[tuple[Key, Comparison, Key]]] = defaultdict(list)
        for licence, groups in found.items():
            if licence in self._known.decided:
                continue
            ranked = sorted(groups.items(), key=lambda item: (-item[1][0].score, item[0]))
            root, (comparison, menu) = ranked[0]
            close = len(ranked) > 1 and ranked[1][1][0].score > comparison.score - _MARGIN
            if comparison.score >= LINKED and not close:
                chosen[root].append((licence, comparison, menu))
        for root, licences in chosen.items():
            named = any(comparison.name_ratio >= 0.4 for _, comparison, _ in licences)
            for licence, comparison, menu in licences:
                if named and comparison.name_ratio < 0.4 and not _same_holder(self._records, licence, licences):
                    continue  # another holder's licence for the building, or one of an earlier tenant
                self._members[root].append(licence)
                self._placed[licence] = Placed(menu, confidence(comparison.score), comparison.reasons)
        self._place_decided_licences()

    def _is_former(self, licence: Key, menu: Key, comparison: Comparison) -> bool:
        """Whether a licence that ended is of an earlier tenant: nothing but the address speaks for it."""
        before = self._known.locations.get(licence)
        was_here = before is not None and before == self._known.locations.get(menu)
        return self._records[licence].ended and comparison.name_ratio < 0.4 and not was_here

    def _place_decided_licences(self) -> None:
        homes = {
            self._known.decided.get(key, self._known.locations.get(key)): root
            for key, root in sorted(self._group.items())
        }
        for licence, location in sorted(self._known.decided.items()):
            if licence[0] != "menu" and licence in self._records and location in homes:
                self._members[homes[location]].append(licence)
                self._placed[licence] = Placed(None, 1.0, (Reason(ReasonCode.PERSON),))


def _same_holder(records: Mapping[Key, Record], licence: Key, licences: Sequence[tuple[Key, Comparison, Key]]) -> bool:
    """Whether a licence that shares a name with the shop is of the same holder."""
    names = {name.text for name in records[licence].names}
    return any(
        comparison.name_ratio >= 0.4 and names & {name.text for name in records[other].names}
        for other, comparison, _ in licences
    )


def _candidates(records: Iterable[Record]) -> list[tuple[Key, Key]]:
    """Pairs that share enough to be compared; licences are not compared with each other."""
    blocks: dict[tuple[object, ...], list[Key]] = defaultdict(list)
    for record in records:
        for block in _blocks(record):
            blocks[block].append(record.key)
    pairs: set[tuple[Key, Key]] = set()
    for keys in blocks.values():
        if len(keys) <= _CROWD:
            pairs |= {(a, b) if a < b else (b, a) for a, b in combinations(set(keys), 2) if "menu" in (a[0], b[0])}
    return sorted(pairs)


def _blocks(record: Record) -> Iterable[tuple[object, ...]]:
    address = record.address
    for number in address.numbers:
        yield "number", number, address.street[:1], address.state
        yield "town number", number, address.city, address.state
        if address.zipcode:
            yield "zip number", number, address.zipcode
    if record.phone:
        yield "phone", record.phone
    if record.position is not None:
        # Half-shifted cells: two positions within 100 m share at least one of the four.
        north, east = record.position[0] / _CELL, record.position[1] / _CELL
        for shift, (dy, dx) in enumerate(((0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.5, 0.5))):
            yield "cell", shift, int(north + dy), int(east + dx)
    for name in record.names:
        whole = "".join(name.words)
        if whole:
            for place in {address.zipcode, address.city} - {""}:
                yield "name", whole[:6], place, address.state
