"""Judges the groups of every side by the recorded truth, whole, by category and kind, and with brands left out of training."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from tests.recorded.matching_truth import Pair, Score, Truth, between_sellers, brand_family, by, score

from menuwatch.matching.files import group_listings, learn_weights
from menuwatch.matching.model import Listing

FOLDS = 5


def answers(file: Path) -> dict[str, dict[str, str]]:
    """Groups by listing, for each column of groups in a side's file."""
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    columns = [name for name in rows[0] if name != "listing_id"] if rows else []
    return {name: {row["listing_id"]: row[name] for row in rows} for name in columns}


def best(truth: Truth, found: Mapping[str, Mapping[str, str]]) -> tuple[str, Mapping[str, str]]:
    """The column of groups with the best F1 between sellers."""
    pairs = between_sellers(truth)
    return max(found.items(), key=lambda one: score(pairs, one[1]).f1 or 0.0)


def fold_of(brand: str | None) -> str:
    """One of five folds, by the brand's family."""
    return str(crc32(brand_family(brand).encode()) % FOLDS + 1)


def leave_brands_out(truth: Truth, others: Sequence[Listing] = ()) -> dict[str, Any]:
    """Menuwatch with weights learned from the brands of the other folds, judged on each fold's pairs; `all` is their sum. `others` are
    further listings without labels to learn from, of which the fold's brands are left out, too.
    """
    brands = {one.listing_id: one.brand for one in truth.listings}
    pairs = by(between_sellers(truth), lambda pair: fold_of(brands[pair.a]))
    found, total = {}, Score(0, 0, 0, 0)
    for fold, part in pairs.items():
        weights = learn_weights([one for one in (*truth.listings, *others) if fold_of(one.brand) != fold])
        groups = {one.listing_id: one.group_id for one in group_listings(truth.listings, weights)}
        scored = score(part, groups)
        found[fold] = _figures(scored)
        total = Score(*(a + b for a, b in zip(total, scored, strict=True)))
    return {**found, "all": _figures(total)}


def report(truth: Truth, groups: Mapping[str, str]) -> dict[str, Any]:
    """Every figure of one side."""
    pairs = between_sellers(truth)
    decide = set(pairs)
    inside = [pair for pair in truth.pairs if pair not in decide]
    return {
        "all": _figures(score(pairs, groups)),
        "category": _split(by(pairs, lambda pair: pair.category), groups),
        "kind": _split(by(pairs, lambda pair: pair.kind), groups),
        "inside": _split(by(inside, lambda pair: pair.kind), groups),
    }


def _split(parts: Mapping[str, Sequence[Pair]], groups: Mapping[str, str]) -> dict[str, Any]:
    return {name: _figures(score(part, groups)) for name, part in parts.items()}


def _figures(found: Score) -> dict[str, Any]:
    rounded = {
        name: None if value is None else round(value, 4)
        for name, value in (("precision", found.precision), ("recall", found.recall), ("f1", found.f1))
    }
    return {**rounded, **found._asdict()}
