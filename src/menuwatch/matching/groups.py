"""Groups the members of a block: which signatures are one product. Pure, and independent of the order of the members."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import chain, islice, pairwise, takewhile
from uuid import UUID

from menuwatch.matching.compare import Block, Comparison, block_of, compare
from menuwatch.matching.model import Doubt, Grouping, Link, Member, Reason, ReasonCode, Signature
from menuwatch.matching.weights import WEIGHTS, Weights
from menuwatch.matching.words import skeleton

THRESHOLD = 0.0
"""Bits from which two signatures are judged one product."""
_DOUBT = 3.5
"""Bits around the threshold within which a person should look: a confidence of 0.08 to 0.92."""
_COMMON = 80
"""Signatures that may share a key; a key of more says too little to compare all of them."""


def group(
    members: Sequence[Member],
    corrections: Mapping[tuple[UUID, UUID], bool],
    context: BlockContext | None = None,
    weights: Weights = WEIGHTS,
) -> Grouping:
    """Groups members. `corrections` says of pairs of signature keys, the smaller one first, whether people judged them the same;
    `context` is that of all signatures of the block, if the members are not all of them.

    Pairs are joined from the most certain one down, unless a pair of the two groups is vetoed or speaks against it on average.
    """
    order = sorted(range(len(members)), key=lambda i: members[i].signature.key.bytes)
    context = context or BlockContext([one.signature for one in members])
    work = _Work(members, context.block, corrections, weights)
    edges: list[tuple[float, int, int]] = []
    doubts: list[tuple[int, int, Comparison]] = []
    position_of = {member.signature.key: i for i, member in enumerate(members)}
    said = ((position_of[a], position_of[b]) for a, b in corrections if a in position_of and b in position_of)
    near = _Sets(len(members))
    for a, b in {*_candidates(members, order, context.keys, corrections), *((min(pair), max(pair)) for pair in said)}:
        found = work.compare(a, b)
        if is_near(found):
            near.join(a, b)
        if found.veto is None and found.bits >= THRESHOLD:
            edges.append((-found.bits, a, b))
        if abs(found.bits - THRESHOLD) <= _DOUBT and found.veto in (None, ReasonCode.ONE_STORE_LISTS_BOTH):
            doubts.append((a, b, found))
    position = {i: at for at, i in enumerate(order)}
    ordered = sorted((bits, min(position[a], position[b]), max(position[a], position[b])) for bits, a, b in edges)
    for _, a, b in ordered:
        work.join(order[a], order[b])
    doubts.sort(key=lambda doubt: sorted((position[doubt[0]], position[doubt[1]])))
    return work.result(doubts, near)


def is_near(found: Comparison) -> bool:
    """Whether two signatures are one product or may be, but for the stores that list both: they are of one component."""
    return found.bits >= THRESHOLD - _DOUBT and found.veto in (None, ReasonCode.ONE_STORE_LISTS_BOTH)


class Keys:
    """What signatures of a block are looked up by: those that share a distinctive key are compared."""

    def __init__(self, signatures: Iterable[Signature]) -> None:
        self._of = {one.key: _keys(one) for one in signatures}
        self._count = Counter(chain.from_iterable(self._of.values()))
        self._distinctive: dict[UUID, frozenset[str]] = {}

    def distinctive(self, one: Signature) -> Set[str]:
        """Keys of a signature that few others have; if there are none, the one that fewest have."""
        found = self._distinctive.get(one.key)
        if found is None:
            keys = self._of[one.key]
            few = [key for key in keys if self._count[key] <= _COMMON]
            found = frozenset(few or sorted(keys, key=lambda key: (self._count[key], key))[:1])
            self._distinctive[one.key] = found
        return found

    def every(self, one: Signature) -> Set[str]:
        """All keys of a signature."""
        return self._of[one.key]


class BlockContext:
    """What all signatures of a block say together, made when it is first asked for."""

    def __init__(self, signatures: Sequence[Signature]) -> None:
        self._signatures = signatures

    @cached_property
    def block(self) -> Block:
        """What their names say."""
        return block_of(self._signatures)

    @cached_property
    def keys(self) -> Keys:
        """What they are looked up by."""
        return Keys(self._signatures)


class _Sets:
    """Disjoint sets of the numbers below `count`."""

    def __init__(self, count: int) -> None:
        self._root = list(range(count))

    def find(self, i: int) -> int:
        while self._root[i] != i:
            self._root[i] = self._root[self._root[i]]
            i = self._root[i]
        return i

    def join(self, keep: int, drop: int) -> None:
        self._root[self.find(drop)] = self.find(keep)


class _Work:
    def __init__(
        self, members: Sequence[Member], block: Block, corrections: Mapping[tuple[UUID, UUID], bool], weights: Weights
    ) -> None:
        self._members = members
        self._weights = weights
        self._block = block
        self._corrections = corrections
        self._sets = _Sets(len(members))
        self._in = {i: [i] for i in range(len(members))}
        self._known: dict[tuple[int, int], Comparison] = {}
        self._links: dict[int, tuple[int, Comparison]] = {}

    def compare(self, a: int, b: int) -> Comparison:
        pair = (a, b) if a < b else (b, a)
        found = self._known.get(pair)
        if found is None:
            found = self._known[pair] = self._compare(*pair)
        return found

    def _compare(self, a: int, b: int) -> Comparison:
        one, other = self._members[a], self._members[b]
        keys = (one.signature.key, other.signature.key)
        said = self._corrections.get(keys if keys[0] < keys[1] else (keys[1], keys[0]))
        if said is not None:
            reason = Reason(code=ReasonCode.PERSON, detail="the same" if said else "different")
            return Comparison(99.0 if said else -99.0, None if said else ReasonCode.PERSON, (reason,), {})
        if one.platform_ids & other.platform_ids:
            detail = min(one.platform_ids & other.platform_ids)
            return Comparison(60.0, None, (Reason(code=ReasonCode.SAME_PLATFORM_ID, detail=detail),), {})
        found = compare(one.signature, other.signature, self._block, self._weights)
        if found.veto is not None or _is_written_alike(found.levels):
            return found
        if clash := _other_ids(one, other):
            reasons = (*found.reasons, Reason(code=ReasonCode.OTHER_PLATFORM_ID, detail=clash))
            return Comparison(-99.0, ReasonCode.OTHER_PLATFORM_ID, reasons, found.levels)
        if (place := _shared_place(one, other)) is not None:
            reasons = (*found.reasons, Reason(code=ReasonCode.ONE_STORE_LISTS_BOTH, detail=place))
            return Comparison(found.bits, ReasonCode.ONE_STORE_LISTS_BOTH, reasons, found.levels)
        return found

    def join(self, a: int, b: int) -> bool:
        left, right = self._sets.find(a), self._sets.find(b)
        if left == right:
            return False
        certain = self.compare(a, b).bits >= 60
        total = 0.0
        for i in self._in[left]:
            for j in self._in[right]:
                found = self.compare(i, j)
                if found.veto is not None and not (certain and found.veto is not ReasonCode.PERSON):
                    return False
                total += max(-12.0, min(12.0, found.bits))
        if total < 0 and not certain:
            return False
        keep, drop = (left, right) if len(self._in[left]) >= len(self._in[right]) else (right, left)
        joined = b if keep == left else a
        self._links.setdefault(joined, (a if joined == b else b, self.compare(a, b)))
        self._sets.join(keep, drop)
        self._in[keep] += self._in.pop(drop)
        return True

    def result(self, doubts: Sequence[tuple[int, int, Comparison]], near: _Sets) -> Grouping:
        numbers: dict[int, int] = {}
        firsts: dict[int, int] = {}
        groups, components = [0] * len(self._members), [0] * len(self._members)
        for i in range(len(self._members)):
            groups[i] = numbers.setdefault(self._sets.find(i), len(numbers))
            components[i] = firsts.setdefault(near.find(i), i)
        links = []
        for i in range(len(self._members)):
            linked = self._links.get(i)
            if linked is None:
                links.append(Link(None, 1.0, ()))
            else:
                links.append(Link(linked[0], linked[1].confidence, linked[1].reasons))
        asked = tuple(
            Doubt(a, b, Comparison(found.bits, None, (), {}).confidence, groups[a] == groups[b], found.reasons)
            for a, b, found in doubts
        )
        return Grouping(tuple(groups), tuple(links), asked, tuple(components))


def _is_written_alike(levels: Mapping[str, str]) -> bool:
    """Whether the words are the same and nothing else differs: a duplicate entry in a menu or catalog, not two products."""
    return levels.get("words") == "equal" and levels["ratio"] not in ("one", "differ") and levels["strain"] != "differ"


def _shared_place(a: Member, b: Member) -> str | None:
    """A store that lists both in one size, or one of them in an unknown size."""
    few, many = (a.places, b.places) if len(a.places) <= len(b.places) else (b.places, a.places)
    return min((store.partition("#")[0] for store, _ in few & many), default=None)


def _other_ids(a: Member, b: Member) -> str | None:
    """Two catalog ids of one platform, none of them shared: two products."""
    left = {one.partition(":")[0]: one for one in sorted(a.platform_ids)}
    for one in sorted(b.platform_ids):
        kind = one.partition(":")[0]
        if kind in left and kind in CATALOGS:
            return f"{left[kind]} / {one}"
    return None


CATALOGS = frozenset({"jane", "weedmaps"})
"""Platforms whose catalog ids differ for different products of a brand. Package tags and SKUs differ for one product, too."""


def _candidates(
    members: Sequence[Member], order: Sequence[int], keys: Keys, corrections: Mapping[tuple[UUID, UUID], bool]
) -> Iterator[tuple[int, int]]:
    """Pairs that share a distinctive key or an id, each once. Of those that share an id, each is compared with the first one that no
    person judged different: that joins all of them, however many they are."""
    by_key: dict[str, list[int]] = defaultdict(list)
    by_id: dict[str, list[int]] = defaultdict(list)
    for i in order:
        for key in keys.every(members[i].signature):
            by_key[key].append(i)
        for one in members[i].platform_ids:
            by_id[one].append(i)
    seen: set[tuple[int, int]] = set()
    for i in order:
        found: list[Sequence[int]] = [by_key[key] for key in keys.distinctive(members[i].signature)]
        found += [_first_same(members, i, by_id[one], corrections) for one in members[i].platform_ids]
        for others in found:
            for j in others:
                if j != i:
                    pair = (i, j) if i < j else (j, i)
                    if pair not in seen:
                        seen.add(pair)
                        yield pair


def _first_same(
    members: Sequence[Member], i: int, sharing: Sequence[int], corrections: Mapping[tuple[UUID, UUID], bool]
) -> Sequence[int]:
    key = members[i].signature.key
    before = takewhile(lambda j: j != i, sharing)
    return list(islice((j for j in before if corrections.get((members[j].signature.key, key)) is not False), 1))


def _keys(signature: Signature) -> set[str]:
    words = [word for word in signature.words + signature.aside if word != "x"]
    found = {skeleton(word) for word in words}
    found |= {skeleton(a + b) for a, b in pairwise(words)}
    if len(words) >= 3:
        for length in range(3, min(len(words), 5) + 1):
            found |= {skeleton("".join(w[0] for w in words[at : at + length])) for at in range(len(words) - length + 1)}
    return found
