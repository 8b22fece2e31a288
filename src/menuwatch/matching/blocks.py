"""Groups dirty blocks and writes what changed, one batch of blocks per transaction."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import msgspec
from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.matching.groups import BlockContext
from menuwatch.matching.judging import (
    Group,
    Grouper,
    Judgement,
    StoredListing,
    StoredSignature,
    Summary,
    judge,
    summarize,
)
from menuwatch.matching.model import Signature
from menuwatch.matching.numbers import Holder, Numbering, Retired, carry
from menuwatch.matching.outdated import outdated, with_components

_q = sql.load(__package__, "blocks.sql")
_encode = msgspec.json.encode
_signature = msgspec.json.Decoder(Signature).decode
_T = TypeVar("_T")

BATCH = 5_000
"""Signatures that are grouped, or listings that are taken in, in one transaction. It limits memory and how long locks are kept."""

_CAUSES = ("menu", "rules", "correction")
"""Of several causes of one change the last one is given."""


@dataclass(slots=True, kw_only=True)
class BlockRun:
    """What grouping changed."""

    blocks: int = 0
    products: int = 0
    """New canonical products."""
    merged: int = 0
    split: int = 0
    moved: int = 0
    """Listings that had a number and have another one now."""

    def add(self, more: BlockRun) -> None:
        """Adds what another run changed."""
        for name in BlockRun.__slots__:
            setattr(self, name, getattr(self, name) + getattr(more, name))


class _Read(NamedTuple):
    components: Sequence[Sequence[StoredSignature]]
    contexts: Sequence[BlockContext]
    corrections: Mapping[tuple[UUID, UUID], bool]
    causes: Sequence[str]


@dataclass(slots=True)
class _Plan:
    groups: list[Group] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    causes: list[str] = field(default_factory=list)


async def mark_dirty(
    conn: AsyncConnection[Any], blocks: Iterable[str], cause: str, signatures: Iterable[int] = ()
) -> None:
    """Marks blocks to be grouped again. `cause` is `menu`, `correction` or `rules`. For a menu, only outdated signatures are compared:
    `signatures` and those of their components are outdated because their listings changed."""
    if names := sorted(set(blocks)):
        await conn.execute(_q.mark_dirty, {"blocks": names, "cause": cause})
    if ids := sorted(set(signatures)):
        await conn.execute(_q.leave_components, {"ids": ids})
        await conn.execute(_q.mark_joined, {"ids": ids})


class Waiting(NamedTuple):
    """Components of blocks that wait and of those that people joined with them, each with the number of its signatures; in the order
    in which new numbers are given. And the number of all listings."""

    components: list[tuple[list[str], int]]
    listings: int


async def waiting_blocks(conn: AsyncConnection[Any], exclude: Sequence[str]) -> Waiting:
    """What waits to be grouped, without the blocks `exclude`."""
    rows = await (await conn.execute(_q.waiting, {"exclude": exclude}, prepare=False)).fetchall()
    if not rows:
        return Waiting([], 0)
    sizes = {block: signatures for block, signatures, _ in rows}
    joined: dict[str, set[str]] = defaultdict(set)
    for a, b in await (await conn.execute(_q.joined_blocks)).fetchall():
        joined[a].add(b)
        joined[b].add(a)
    found: list[tuple[list[str], int]] = []
    seen: set[str] = set()
    for block in sizes:
        if block in seen:
            continue
        component, ahead = [], [block]
        seen.add(block)
        while ahead:
            component.append(one := ahead.pop())
            ahead += sorted(other for other in joined[one] if other not in seen)
            seen.update(joined[one])
        found.append((sorted(component), sum(sizes.get(one, 1) for one in component)))
    return Waiting(found, sum(listings for *_, listings in rows))


def batches(sized: Iterable[tuple[_T, int]], *, most: int | None = None) -> Iterator[list[_T]]:
    """Splits items with their sizes, in their order, into those of one transaction each: together no larger than `BATCH`, and at most
    `most` of them. One that is larger is alone."""
    batch: list[_T] = []
    total = 0
    for item, size in sized:
        if batch and (total + size > BATCH or len(batch) == most):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size
    if batch:
        yield batch


async def group_blocks(
    conn: AsyncConnection[Any], components: Sequence[Sequence[str]], group: Grouper, run: BlockRun
) -> None:
    """Groups components of blocks, all or nothing."""
    done = BlockRun(blocks=sum(len(component) for component in components))
    async with conn.transaction():
        read = await _read(conn, components)
        judgements = await asyncio.to_thread(_judge, read, group)
        plan, numbering, stored = await _number(conn, judgements, read.causes)
        await _write_products(conn, plan, numbering, stored, done)
        await _write_links(conn, plan, done)
        await _write_reviews(conn, read, judgements)
        orphans = [one.id for signatures in read.components for one in signatures if not one.used]
        if orphans:
            await conn.execute(_q.delete_signatures, {"ids": orphans})
    run.add(done)


def _judge(read: _Read, group: Grouper) -> list[Judgement]:
    parts = zip(read.components, read.contexts, strict=True)
    return [judge(signatures, read.corrections, group, context) for signatures, context in parts]


async def _read(conn: AsyncConnection[Any], components: Sequence[Sequence[str]]) -> _Read:
    place = {block: at for at, component in enumerate(components) for block in component}
    marks = await (await conn.execute(_q.take, {"blocks": list(place)})).fetchall()
    causes = [_CAUSES[0]] * len(components)
    for block, cause in marks:
        causes[place[block]] = max(causes[place[block]], cause, key=_CAUSES.index)
    read: list[list[StoredSignature]] = [[] for _ in components]
    for row in await (await conn.execute(_q.signatures, {"blocks": list(place)}, prepare=False)).fetchall():
        read[place[row[2]]].append(StoredSignature(row[0], row[1], row[2], _signature(row[3]), *row[4:]))
    keys = [one.key for signatures in read for one in signatures]
    found = await (await conn.execute(_q.corrections, {"keys": keys}, prepare=False)).fetchall()
    corrections = {(a, b): same for a, b, same in found}
    contexts = [BlockContext([one.signature for one in signatures if one.used]) for signatures in read]
    again = await asyncio.to_thread(_outdated, read, contexts, causes, corrections)
    if again and not all(one.id in again for signatures in read for one in signatures if one.used):
        values = {"signatures": sorted(again), "blocks": list(place)}
        sharing = {number for (number,) in await (await conn.execute(_q.sharing_ids, values, prepare=False)).fetchall()}
        again = {number for signatures in read for number in with_components(signatures, again | sharing)}
    by_id = {one.id: one for signatures in read for one in signatures if one.id in again}
    listings = await conn.execute(_q.listings, {"signatures": list(by_id)}, prepare=False)
    for row in await listings.fetchall():
        by_id[row[2]].listings.append(StoredListing(*row))
    return _Read(read, contexts, corrections, causes)


def _outdated(
    read: Sequence[Sequence[StoredSignature]],
    contexts: Sequence[BlockContext],
    causes: Sequence[str],
    corrections: Mapping[tuple[UUID, UUID], bool],
) -> set[int]:
    """The ids of the signatures to group again: what a menu outdates of a block; for any other cause, all of it."""
    found: set[int] = set()
    for signatures, context, cause in zip(read, contexts, causes, strict=True):
        if cause == "menu":
            found |= outdated(signatures, corrections, context)
        else:
            found |= {one.id for one in signatures if one.used}
    return found


async def _number(
    conn: AsyncConnection[Any],
    judgements: Sequence[Judgement],
    causes: Sequence[str],
) -> tuple[_Plan, Numbering, dict[int, Summary]]:
    plan = _Plan()
    for judgement, cause in zip(judgements, causes, strict=True):
        plan.groups += judgement.groups
        plan.causes += [cause] * len(judgement.groups)
    former = {
        listing.product_id: listing.number
        for group in plan.groups
        for listing in group.listings
        if listing.number is not None
    }
    unchanged = {
        listing.product_id
        for group in plan.groups
        for one in group.signatures
        for listing in one.listings
        if listing.number == one.number
    }
    held = Counter(former.values())
    stored = await stored_products(conn, sorted(held))
    retired = await (await conn.execute(_q.retired, {"ids": sorted(held)}, prepare=False)).fetchall() if held else []
    elsewhere: dict[int, list[Holder]] = defaultdict(list)
    if spread := sorted(number for number, listings in held.items() if stored[number].listings != listings):
        signatures = [one.id for group in plan.groups for one in group.signatures]
        found = await conn.execute(_q.elsewhere, {"ids": spread, "signatures": signatures}, prepare=False)
        for number, *holder in await found.fetchall():
            elsewhere[number].append(Holder(*holder))
    numbering = carry(
        [[listing.product_id for listing in group.listings] for group in plan.groups],
        former,
        anchors={number: one.anchor_product_id for number, one in stored.items()},
        unchanged=unchanged,
        elsewhere=elsewhere,
        retired=[Retired(*row) for row in retired],
    )
    fresh: dict[int, int] = {}
    if numbering.new:
        given = await (await conn.execute(_q.new_numbers, {"count": len(numbering.new)})).fetchall()
        fresh = dict(zip(numbering.new, (number for (number,) in given), strict=True))
    plan.numbers = [fresh[at] if number is None else number for at, number in enumerate(numbering.numbers)]
    return plan, numbering, stored


async def _write_products(
    conn: AsyncConnection[Any], plan: _Plan, numbering: Numbering, stored: Mapping[int, Summary], run: BlockRun
) -> None:
    brands = await brand_ids(conn, (one.signature for group in plan.groups for one in group.signatures))
    summaries: dict[int, Summary] = {}
    for group, number in zip(plan.groups, plan.numbers, strict=True):
        ids = {listing.product_id for listing in group.listings}
        anchor = stored[number].anchor_product_id if number in stored else None
        summaries[number] = summarize(
            [(one.signature, len(one.listings)) for one in group.signatures],
            brands,
            anchor_product_id=anchor if anchor in ids else min(ids),
            listings=len(ids),
            stores=len({listing.store for listing in group.listings}),
        )
    await put_products(conn, {number: one for number, one in summaries.items() if stored.get(number) != one})
    if numbering.redirected:
        targets = [plan.numbers[at] for at in numbering.redirected.values()]
        await conn.execute(_q.redirect_products, {"ids": list(numbering.redirected), "targets": targets})
    if numbering.merged:
        targets = [plan.numbers[at] for at in numbering.merged.values()]
        await conn.execute(_q.merge_products, {"ids": list(numbering.merged), "targets": targets})
    await _write_events(conn, plan, numbering, run)
    run.products += len(numbering.new)
    run.merged += len(numbering.merged)


async def stored_products(conn: AsyncConnection[Any], ids: Sequence[int]) -> dict[int, Summary]:
    """What these products are so far, by their numbers."""
    rows = await (await conn.execute(_q.products, {"ids": ids}, prepare=False)).fetchall() if ids else []
    return {number: Summary(*row) for number, *row in rows}


async def brand_ids(conn: AsyncConnection[Any], signatures: Iterable[Signature]) -> Mapping[str, int]:
    """The numbers of the signatures' brands, by their words."""
    names = {" ".join(one.brand) for one in signatures} - {""}
    return dict(await (await conn.execute(_q.brand_ids, {"aliases": sorted(names)})).fetchall()) if names else {}


async def put_products(conn: AsyncConnection[Any], summaries: Mapping[int, Summary]) -> None:
    """Writes what products are, by their numbers."""
    if summaries:
        rows = [{"id": number, **summary._asdict()} for number, summary in summaries.items()]
        await conn.execute(_q.put_products, {"rows": _encode(rows).decode()})


async def put_sizes(conn: AsyncConnection[Any], sizes: Iterable[tuple[int, str]]) -> None:
    """Adds sizes to products, as pairs of a product's number and a size."""
    if pairs := sorted(set(sizes)):
        ids, texts = zip(*pairs, strict=True)
        await conn.execute(_q.put_sizes, {"ids": list(ids), "sizes": list(texts)}, prepare=False)


async def _write_events(conn: AsyncConnection[Any], plan: _Plan, numbering: Numbering, run: BlockRun) -> None:
    if not numbering.moves:
        return
    kinds = ["merged" if numbering.merged.get(one.number) == one.group else "split" for one in numbering.moves]
    values = {
        "kinds": kinds,
        "from_ids": [one.number for one in numbering.moves],
        "to_ids": [plan.numbers[one.group] for one in numbering.moves],
        "listings": [one.listings for one in numbering.moves],
        "causes": [plan.causes[one.group] for one in numbering.moves],
    }
    await conn.execute(_q.put_events, values)
    run.split += kinds.count("split")
    run.moved += sum(one.listings for one in numbering.moves)


async def _write_links(conn: AsyncConnection[Any], plan: _Plan, run: BlockRun) -> None:
    links: list[tuple[int, int]] = []
    signatures: list[tuple[int, int, int | None, float, str, int]] = []
    sizes: list[tuple[int, str]] = []
    for group, number in zip(plan.groups, plan.numbers, strict=True):
        links += [(listing.product_id, number) for listing in group.listings if listing.number != number]
        parts = zip(group.signatures, group.links, group.targets, group.components, strict=True)
        for one, link, target, component in parts:
            new = (number, target, link.confidence, _encode(link.reasons).decode(), component)
            if new != (one.number, one.linked_to, one.confidence, one.reasons, one.component):
                signatures.append((one.id, *new))
        sizes += [(number, size) for listing in group.listings for size in listing.sizes]
    if links:
        ids, numbers = zip(*links, strict=True)
        await conn.execute(_q.put_links, {"ids": list(ids), "numbers": list(numbers)})
    if signatures:
        columns = zip(
            ("ids", "numbers", "linked", "confidences", "reasons", "components"),
            zip(*signatures, strict=True),
            strict=True,
        )
        await conn.execute(_q.put_signatures, {name: list(values) for name, values in columns})
    await put_sizes(conn, sizes)


async def _write_reviews(conn: AsyncConnection[Any], read: _Read, judgements: Sequence[Judgement]) -> None:
    reviews = [review for judgement in judgements for review in judgement.reviews]
    pairs: dict[str, Any] = {"a": [one.a for one in reviews], "b": [one.b for one in reviews]}
    signatures = [one.id for component in read.components for one in component if one.listings or not one.used]
    if renewed := dict(_renewed(read)):
        await conn.execute(_q.move_skipped, {"old": list(renewed), "new": list(renewed.values())})
    await conn.execute(_q.delete_reviews, {**pairs, "signatures": signatures}, prepare=False)
    if reviews:
        values = {
            "confidences": [one.doubt.confidence for one in reviews],
            "together": [one.doubt.together for one in reviews],
            "impacts": [one.impact for one in reviews],
            "reasons": [_encode(one.doubt.reasons).decode() for one in reviews],
        }
        await conn.execute(_q.put_reviews, {**pairs, **values})


def _renewed(read: _Read) -> Iterable[tuple[int, int]]:
    """Signatures that a rebuild dropped, each with the one that was made from the same listings afterwards, under another key."""
    made = {one.key: one.id for component in read.components for one in component}
    for component in read.components:
        for one in component:
            if one.signature.key != one.key and one.signature.key in made:
                yield one.id, made[one.signature.key]
