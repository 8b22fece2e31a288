"""Groups the signatures of a component of blocks, and says what the products of its groups are. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log1p
from typing import NamedTuple
from uuid import UUID

from menuwatch.matching.groups import BlockContext
from menuwatch.matching.model import Doubt, Grouping, Link, Member, Signature
from menuwatch.matching.places import Lifetime, places

Grouper = Callable[[Sequence[Member], Mapping[tuple[UUID, UUID], bool], BlockContext], Grouping]

MAX_REVIEWS = 50
"""Pairs for review of a component of signatures."""

_LONGEST_NAME = 300


class StoredListing(NamedTuple):
    """A listing as blocks.sql reads it. `number` is that of its canonical product so far, times are in seconds since 1970."""

    product_id: int
    store: int
    signature_id: int
    number: int | None
    platform_ids: Sequence[str]
    sizes: Sequence[str]
    since: float | None
    until: float | None


@dataclass(slots=True)
class StoredSignature:
    """A signature with its listings, and its link so far."""

    id: int
    key: UUID
    block: str
    signature: Signature
    number: int | None
    linked_to: int | None
    confidence: float | None
    reasons: str | None
    component: int | None
    used: bool
    """Whether it has listings."""
    listings: list[StoredListing] = field(default_factory=list)


class Group(NamedTuple):
    """Signatures that are one product."""

    signatures: Sequence[StoredSignature]
    links: Sequence[Link]
    targets: Sequence[int | None]
    """The ids of the signatures that `links` lead to."""
    components: Sequence[int]
    """The lowest ids of the signatures in the components of `signatures`."""

    @property
    def listings(self) -> Iterable[StoredListing]:
        return (listing for one in self.signatures for listing in one.listings)


class Review(NamedTuple):
    """A pair of signatures, by their ids, for a person to judge."""

    a: int
    b: int
    doubt: Doubt
    impact: int


class Judgement(NamedTuple):
    """Result for a component of blocks."""

    groups: Sequence[Group]
    reviews: Sequence[Review]


class Summary(NamedTuple):
    """A canonical product as its row has it, but for its number."""

    brand_id: int | None
    name: str
    category: str | None
    form: str | None
    strain: str | None
    anchor_product_id: int
    listings: int
    stores: int


def judge(
    signatures: Sequence[StoredSignature],
    corrections: Mapping[tuple[UUID, UUID], bool],
    group: Grouper,
    context: BlockContext,
) -> Judgement:
    """Groups the signatures whose listings were read. `context` is that of all signatures that have listings."""
    used = sorted((one for one in signatures if one.listings), key=lambda one: one.key)
    if not used:
        return Judgement((), ())
    where = places(
        Lifetime(one.id, listing.store, size, listing.since or 0.0, listing.until)
        for one in used
        for listing in one.listings
        for size in listing.sizes or ("",)
    )
    members = [
        Member(
            signature=one.signature,
            listings=len(one.listings),
            places=where[one.id],
            platform_ids=frozenset(text for listing in one.listings for text in listing.platform_ids),
        )
        for one in used
    ]
    grouping = group(members, corrections, context)
    by_group: dict[int, list[int]] = {}
    for at, number in enumerate(grouping.groups):
        by_group.setdefault(number, []).append(at)
    lowest: dict[int, int] = {}
    for one, component in zip(used, grouping.components, strict=True):
        lowest[component] = min(one.id, lowest.get(component, one.id))
    groups = [
        Group(
            [used[at] for at in members_of],
            [grouping.links[at] for at in members_of],
            [None if (to := grouping.links[at].to) is None else used[to].id for at in members_of],
            [lowest[grouping.components[at]] for at in members_of],
        )
        for members_of in by_group.values()
    ]
    return Judgement(groups, _reviews(used, grouping))


def _reviews(used: Sequence[StoredSignature], grouping: Grouping) -> Sequence[Review]:
    """The most doubtful and most used pairs. Of two groups the smaller one is what a decision moves; within one group, the signature
    with fewer listings."""
    size: Counter[int] = Counter()
    for at, number in enumerate(grouping.groups):
        size[number] += len(used[at].listings)
    found: dict[tuple[int, int], Review] = {}
    for doubt in grouping.doubts:
        pair = (doubt.a, doubt.b)
        parts = [len(used[at].listings) if doubt.together else size[grouping.groups[at]] for at in pair]
        a, b = sorted((used[doubt.a].id, used[doubt.b].id))
        found[a, b] = Review(a, b, doubt, min(parts))
    ranked = sorted(
        found.values(),
        key=lambda one: (-(0.5 - abs(one.doubt.confidence - 0.5)) * log1p(one.impact), one.a, one.b),
    )
    of_component: Counter[int] = Counter()
    chosen = []
    for one in ranked:
        component = grouping.components[one.doubt.a]
        of_component[component] += 1
        if of_component[component] <= MAX_REVIEWS:
            chosen.append(one)
    return chosen


def summarize(signatures: Sequence[tuple[Signature, int]], brands: Mapping[str, int], **counted: int) -> Summary:
    """What the product is, as most of its listings say, from its signatures with how many listings each has. `brands` has the numbers
    of brands by their words, `counted` the rest of the summary."""

    def most(read: Callable[[Signature], str | None]) -> str | None:
        counts: Counter[str] = Counter()
        for signature, listings in signatures:
            if value := read(signature):
                counts[value] += listings
        return min(counts, key=lambda value: (-counts[value], value)) if counts else None

    brand = most(lambda one: " ".join(one.brand))
    return Summary(
        brand_id=brands.get(brand) if brand else None,
        name=(most(lambda one: one.name) or "Unnamed")[:_LONGEST_NAME],
        category=most(lambda one: one.kind),
        form=most(lambda one: " ".join(one.form)),
        strain=most(lambda one: one.strain),
        **counted,
    )
