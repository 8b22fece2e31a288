"""Carries the numbers of canonical products over when listings are grouped again. Pure, and independent of the order of groups.

| event | effect on the numbers |
|--------------|-----------------------------|
| a group has listings of one number | it keeps the number |
| a group has listings of several numbers | it keeps that of most of its listings, of equally many the lower one |
| a number's listings are in several groups | the group with most keeps it |
| no group keeps a number, and no listing elsewhere has it | it redirects to the group with most of its listings |
| a group has no number | one that was merged away and whose anchor it has returns; else it gets a new one |

Of equally large parts of a product, the one whose listings are written as before keeps the number, then the one with its anchor.
A number's *anchor* is the listing that it was made for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple


class Holder(NamedTuple):
    """Listings with a number in a block that is not being grouped."""

    listings: int
    first: int
    """The lowest of them."""
    settled: bool
    """Whether the block is not waiting to be grouped: then the number stays there."""


class Retired(NamedTuple):
    """A number that was merged into another one."""

    number: int
    into: int
    anchor: int


class Move(NamedTuple):
    """Listings of number `number` that are now in a group that does not have it."""

    number: int
    group: int
    listings: int


class Numbering(NamedTuple):
    """Numbers of groups. `new`: groups that need a new number, in the order in which new numbers are given. `moves` has those to the
    group that an ended number redirects to as well."""

    numbers: tuple[int | None, ...]
    new: tuple[int, ...]
    merged: Mapping[int, int]
    """Ended numbers, with the group that each redirects to."""
    returned: Mapping[int, int]
    """Retired numbers that are in use again, with their groups."""
    redirected: Mapping[int, int]
    """Retired numbers whose redirect now leads to another group."""
    moves: tuple[Move, ...]


def carry(
    groups: Sequence[Sequence[int]],
    former: Mapping[int, int],
    *,
    anchors: Mapping[int, int] | None = None,
    unchanged: Collection[int] = (),
    elsewhere: Mapping[int, Sequence[Holder]] | None = None,
    retired: Sequence[Retired] = (),
) -> Numbering:
    """The numbers of `groups` of listings. `former` has the number of each listing that had one, with redirects resolved; `anchors`
    the anchor of each of these numbers; `unchanged` are listings that are written as they were."""
    anchors, elsewhere = anchors or {}, elsewhere or {}
    place = {listing: at for at, listings in enumerate(groups) for listing in listings}
    holders: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for listing, number in former.items():
        if listing in place:
            holders[number][place[listing]].append(listing)
    claims = sorted(
        (
            -len(listings),
            number,
            -sum(listing in unchanged for listing in listings),
            place.get(anchors.get(number, -1)) != at,
            min(listings),
            at,
        )
        for number, by_group in holders.items()
        for at, listings in by_group.items()
    )
    parting = {
        (one.into, at)
        for one in retired
        if (at := place.get(one.anchor)) is not None
        and (home := place.get(anchors.get(one.into, -1), at)) != at
        and home in holders.get(one.into, {})
    }
    numbers: list[int | None] = [None] * len(groups)
    kept: dict[int, int] = {}
    for count, number, _, _, first, at in claims:
        if (number, at) in parting:
            continue  # it parts from the product that it was merged into, and has a number of its own
        if numbers[at] is None and number not in kept and not _is_outbid(-count, first, elsewhere.get(number, ())):
            numbers[at] = number
            kept[number] = at
    returned, redirected = _return_retired(numbers, place, holders, retired)
    merged = {
        number: max(by_group, key=lambda at: (len(by_group[at]), -min(by_group[at])))
        for number, by_group in holders.items()
        if number not in kept and not elsewhere.get(number)
    }
    moves = sorted(
        Move(number, at, len(listings))
        for number, by_group in holders.items()
        for at, listings in by_group.items()
        if kept.get(number) != at
    )
    new = sorted((at for at, number in enumerate(numbers) if number is None), key=lambda at: min(groups[at]))
    return Numbering(tuple(numbers), tuple(new), merged, returned, redirected, tuple(moves))


def _is_outbid(listings: int, first: int, holders: Sequence[Holder]) -> bool:
    """Whether another block keeps the number. Two blocks that wait both come to the same answer, whichever is grouped first."""
    return any(holder.settled or (-holder.listings, holder.first) < (-listings, first) for holder in holders)


def _return_retired(
    numbers: list[int | None],
    place: Mapping[int, int],
    holders: Mapping[int, Mapping[int, Sequence[int]]],
    retired: Sequence[Retired],
) -> tuple[dict[int, int], dict[int, int]]:
    """Gives groups without a number the lowest retired one whose anchor they have, if it was merged into a number of their
    listings."""
    returned: dict[int, int] = {}
    redirected: dict[int, int] = {}
    taken: set[int] = set()
    for one in sorted(retired):
        at = place.get(one.anchor)
        if at is None or at not in holders.get(one.into, {}):
            continue
        if numbers[at] is None:
            numbers[at] = one.number
            returned[one.number] = at
            taken.add(at)
        elif at in taken:
            redirected[one.number] = at
    return returned, redirected
