"""Groups the members of a block: which signatures are one product. Pure, and independent of the order of the members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from menuwatch.matching.model import Grouping, Link, Member


def group(members: Sequence[Member], corrections: Mapping[tuple[UUID, UUID], bool]) -> Grouping:
    """Groups members. `corrections` says of pairs of signature keys, the smaller one first, whether people judged them the same."""
    seen: dict[tuple[str, ...], int] = {}
    groups = tuple(seen.setdefault(tuple(sorted(set(m.signature.words))), len(seen)) for m in members)
    return Grouping(groups, tuple(Link(None, 1.0, ()) for _ in members), ())
