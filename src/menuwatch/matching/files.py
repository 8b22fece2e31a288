"""Groups listings of a file without a database. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from menuwatch.matching import names
from menuwatch.matching.groups import group
from menuwatch.matching.model import Listing, Member, Signature


class GroupedListing(NamedTuple):
    """The group of one listing: the same product in the same size. `confidence` is 1 for what is written alike."""

    listing_id: str
    group_id: str
    confidence: float


def group_listings(listings: Sequence[Listing]) -> list[GroupedListing]:
    """Groups listings, in their order."""
    known = names.KnownBrands.of({names.brand_core(one.brand) for one in listings if one.brand})
    signatures = [names.sign(one, known) for one in listings]
    by_key: dict[object, list[int]] = defaultdict(list)
    for i, one in enumerate(signatures):
        by_key[one.key].append(i)
    blocks: dict[str, list[Signature]] = defaultdict(list)
    for at in by_key.values():
        blocks[signatures[at[0]].block].append(signatures[at[0]])
    found: list[GroupedListing | None] = [None] * len(listings)
    for block, of_block in sorted(blocks.items()):
        members = []
        for one in of_block:
            rows = by_key[one.key]
            places = frozenset((listings[i].store, size) for i in rows for size in sizes(listings[i]))
            ids = frozenset(x for i in rows for x in listings[i].platform_ids)
            members.append(Member(signature=one, listings=len(rows), places=places, platform_ids=ids))
        result = group(members, {})
        for number, link, one in zip(result.groups, result.links, of_block, strict=True):
            for i in by_key[one.key]:
                found[i] = GroupedListing(listings[i].listing_id, f"{block}#{number}", link.confidence)
    return [one for one in found if one is not None]


def sizes(listing: Listing) -> tuple[str, ...]:
    return tuple(listing.sizes) or ("",)
