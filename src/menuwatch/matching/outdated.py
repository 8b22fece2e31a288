"""Which signatures of a block have to be grouped again after a menu, so that the result equals grouping the whole block. Pure.

Whether two signatures are one product depends on both, on what the names of their block say together (`compare.Block`), on how common
their keys are, and on the ids and stores of their component. So those are outdated that are new, whose words became more or less
common, or whose component lost or may gain a member; all of a component are outdated together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from uuid import UUID

from menuwatch.matching.compare import Block, block_of, compare, line_key, name_level, word_level
from menuwatch.matching.groups import BlockContext, Keys, is_near
from menuwatch.matching.judging import StoredSignature
from menuwatch.matching.model import Signature


def outdated(
    signatures: Sequence[StoredSignature], corrections: Mapping[tuple[UUID, UUID], bool], context: BlockContext
) -> set[int]:
    """The ids of the outdated signatures of a component of blocks; those without a component are. `context` is that of all signatures
    that have listings."""
    used = [one for one in signatures if one.used]
    fresh = {one.id for one in used if one.component is None}
    if len(fresh) == len(used):
        return fresh
    new, keys = context.block, context.keys
    changed = fresh
    if any(one.used != (one.number is not None) for one in signatures):
        before = [one.signature for one in signatures if one.number is not None]
        old = block_of(before)
        if name_level(old.names) != name_level(new.names):
            return {one.id for one in used}
        is_affected = _affected(old, new, Keys(before), keys)
        changed = fresh | {one.id for one in used if one.id not in fresh and is_affected(one.signature)}
    lost = {one.component for one in signatures if not one.used}
    first = with_components(used, changed, lost)
    return with_components(used, first | _near(used, changed, first, new, keys, corrections))


def _affected(old: Block, new: Block, old_keys: Keys, keys: Keys) -> Callable[[Signature], bool]:
    """Whether the block says something else of a signature than before, or it is looked up by other keys."""
    words = {
        word
        for word in {*old.frequency, *new.frequency}
        if word_level(old.frequency.get(word, 0)) != word_level(new.frequency.get(word, 0))
    }
    lines = old.lines ^ new.lines

    def is_affected(one: Signature) -> bool:
        every = {*one.words, *one.aside}
        return (
            not words.isdisjoint(every)
            or (bool(lines) and any((line_key(one), word) in lines for word in every))
            or old.forms_of(one) != new.forms_of(one)
            or old_keys.distinctive(one) != keys.distinctive(one)
        )

    return is_affected


def with_components(
    signatures: Sequence[StoredSignature], ids: Collection[int], components: Iterable[int | None] = ()
) -> set[int]:
    """The ids, with those of all signatures of their components and of other ones."""
    wanted = {*components, *(one.component for one in signatures if one.id in ids)} - {None}
    return {one.id for one in signatures if one.id in ids or one.component in wanted}


def _near(
    used: Sequence[StoredSignature],
    changed: Collection[int],
    first: Collection[int],
    block: Block,
    keys: Keys,
    corrections: Mapping[tuple[UUID, UUID], bool],
) -> set[int]:
    """Signatures outside `first` that changed ones may be one product with."""
    by_key: dict[str, list[StoredSignature]] = defaultdict(list)
    for one in used:
        for key in keys.every(one.signature):
            by_key[key].append(one)
    said = {key for pair in corrections for key in pair}
    found = {one.id for one in used if one.key in said}
    for one in used:
        if one.id not in changed:
            continue
        distinctive = keys.distinctive(one.signature)
        compared: set[int] = set()
        for key in keys.every(one.signature):
            for other in by_key[key]:
                if other.id in first or other.id in found or other.id in compared:
                    continue
                if key not in distinctive and key not in keys.distinctive(other.signature):
                    continue
                compared.add(other.id)
                if is_near(compare(one.signature, other.signature, block)):
                    found.add(other.id)
    return found
