"""Groups the listings of a file without a database."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from menuwatch.core.errors import InvalidField
from menuwatch.exports.atomic_files import atomic_file
from menuwatch.matching import packages
from menuwatch.matching.brand_names import KnownBrands, brand_core
from menuwatch.matching.compare import block_of, compare
from menuwatch.matching.groups import group
from menuwatch.matching.model import Listing, Member, Signature
from menuwatch.matching.names import sign
from menuwatch.matching.weights import WEIGHTS, Pair, Weights, train

_TRAINING_PAIRS = 40_000
_GUESSED_SIZE = 0.9
"""Share of the confidence that remains where a listing does not tell its size and is taken for its product's usual one."""


class GroupedListing(NamedTuple):
    """The group of one listing: the same product, and but for loose flower in the same size, as brands' own catalogs number
    their goods. `confidence` is 1 for what is written alike.
    """

    listing_id: str
    group_id: int
    confidence: float


def group_listings(listings: Sequence[Listing], weights: Weights = WEIGHTS) -> list[GroupedListing]:
    """Groups listings; the result is in their order. Groups are numbered from 1 in the order of their first listing."""
    alike, blocks = _sign_all(listings)
    keys: list[Any] = [None] * len(listings)
    confidences = [1.0] * len(listings)
    for name, signatures in blocks.items():
        members = [_member(signature, [listings[i] for i in alike[key]]) for key, signature in signatures.items()]
        found = group(members, {}, weights=weights)
        products: dict[int, list[int]] = defaultdict(list)
        for key, number, link in zip(signatures, found.groups, found.links, strict=True):
            products[number] += alike[key]
            for i in alike[key]:
                confidences[i] = link.confidence
        shown = {number: member.signature for number, member in zip(found.groups, members, strict=True)}
        for number, rows in products.items():
            if shown[number].kind == "flower" and "preroll" not in shown[number].form:
                for i in rows:
                    keys[i] = (name, number)
                continue
            sizes = [packages.size_of(listings[i], shown[number].kind) for i in rows]
            for i, size, chosen in zip(rows, sizes, packages.split(sizes), strict=True):
                keys[i] = (name, number, chosen)
                if chosen is not None and not size.known:
                    confidences[i] *= _GUESSED_SIZE
    numbers: dict[Any, int] = {}
    return [
        GroupedListing(listing.listing_id, numbers.setdefault(key, len(numbers) + 1), round(confidence, 4))
        for listing, key, confidence in zip(listings, keys, confidences, strict=True)
    ]


def _sign_all(listings: Sequence[Listing]) -> tuple[dict[UUID, list[int]], dict[str, dict[UUID, Signature]]]:
    """Positions of the listings by signature, and signatures by block."""
    known = KnownBrands.of({brand_core(one.brand) for one in listings if one.brand})
    alike: dict[UUID, list[int]] = defaultdict(list)
    blocks: dict[str, dict[UUID, Signature]] = defaultdict(dict)
    for i, listing in enumerate(listings):
        signature = sign(listing, known)
        alike[signature.key].append(i)
        blocks[signature.block].setdefault(signature.key, signature)
    return alike, blocks


def learn_weights(listings: Sequence[Listing]) -> Weights:
    """Learns weights from listings without labels: pairs of a block in different stores, at most 40,000 of each block."""
    alike, blocks = _sign_all(listings)
    pairs = []
    for name in sorted(blocks):
        members = [_member(one, [listings[i] for i in alike[key]]) for key, one in sorted(blocks[name].items())]
        block = block_of([one.signature for one in members])
        every = list(combinations(members, 2))
        if len(every) > _TRAINING_PAIRS:
            every = Random(name).sample(every, _TRAINING_PAIRS)  # noqa: S311 - a sample, and the same one each time
        for a, b in every:
            if {store for store, _ in a.places}.isdisjoint(store for store, _ in b.places):
                found = compare(a.signature, b.signature, block)
                if found.veto is None:
                    pairs.append(Pair(found.levels, found.rarity))
    return train(pairs)


def _member(signature: Signature, listings: Sequence[Listing]) -> Member:
    return Member(
        signature=signature,
        listings=len(listings),
        places=frozenset((one.store, str(packages.size_of(one, signature.kind).amounts)) for one in listings),
        platform_ids=frozenset(x for one in listings for x in one.platform_ids),
    )


class _Row(msgspec.Struct):
    """A line of a file. `id` and `name` are required; other fields that are there are ignored."""

    id: str | int
    name: str
    store: str | int | None = None
    seller: str | None = None
    source: str | None = None
    source_id: str | int | None = None
    brand: str | None = None
    category: str | None = None
    subcategory: str | None = None
    strain: str | None = None
    size: str | float | None = None
    size_g: float | None = None


_decoder = msgspec.json.Decoder(_Row)


def read_listings(path: Path) -> list[Listing]:
    """Reads JSON lines, also compressed with gzip. Raises InvalidField that names the line and what is wrong with it."""
    found: list[Listing] = []
    seen: dict[str, int] = {}
    for number, line in _lines(path):
        try:
            row = _decoder.decode(line)
        except msgspec.DecodeError as error:
            raise InvalidField(
                "file", f'line {number} is not a listing: {error}; a line is {{"id": …, "name": …}}'
            ) from None
        listing_id = str(row.id)
        if listing_id in seen:
            raise InvalidField(
                "file", f"line {number} has the id {listing_id!r} of line {seen[listing_id]}; ids must differ"
            )
        seen[listing_id] = number
        found.append(_listing(row, listing_id))
    if not found:
        raise InvalidField("file", 'has no listing; a line is {"id": …, "name": …}')
    return found


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as probe:
        packed = probe.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path, "rb") if packed else path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line
    except (EOFError, gzip.BadGzipFile) as error:
        raise InvalidField("file", f"is a damaged gzip file: {error}") from None


def _listing(row: _Row, listing_id: str) -> Listing:
    sizes = tuple(text for text in (str(row.size or ""), f"{row.size_g:g} g" if row.size_g else "") if text)
    store = row.store if row.store is not None else row.seller
    return Listing(
        listing_id=listing_id,
        # Without a store, nothing is known to be of one store.
        store=str(store) if store is not None else f"listing {listing_id}",
        seller=row.seller,
        name=row.name,
        brand=row.brand,
        category=row.category,
        subcategory=row.subcategory,
        strain=row.strain,
        sizes=sizes,
        platform_ids=(f"{row.source}:{row.source_id}",) if row.source and row.source_id is not None else (),
    )


def write_groups(path: Path, groups: Sequence[GroupedListing], *, overwrite: bool = False) -> None:
    """Writes `listing_id,group_id,confidence` with a header line; the file appears when it is complete."""
    with atomic_file(path, overwrite=overwrite) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text)
        writer.writerow(GroupedListing._fields)
        writer.writerows(groups)
        text.flush()
        text.detach()
