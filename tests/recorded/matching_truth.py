"""Recorded listings with the truth about which are one product, and how an answer is judged. The bench and the tests read it.

The rules are those of `../shared/data/matching/README.md`. Shares no code with the matcher but the shape of a listing.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from menuwatch.matching.model import Listing

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
FOUND_BY_LAB = frozenset({"lab_cross", "catalogue_id"})
"""Kinds of pairs of two sellers that no rule on names found: recall counts these."""


class Pair(NamedTuple):
    """A labelled pair of listings, by id."""

    a: str
    b: str
    same: bool
    kind: str
    category: str


@dataclass(frozen=True, slots=True)
class Truth:
    """Listings with their labelled pairs."""

    listings: tuple[Listing, ...]
    pairs: tuple[Pair, ...]
    grams: Mapping[str, float]
    """Size of the listings that tell one, by id: for rules that read no sizes."""
    prices: Mapping[str, float]
    """US dollars, by listing id."""


class Score(NamedTuple):
    """Of the pairs that were put together, those that are same; of the same pairs, those that were put together."""

    right: int
    wrong: int
    found: int
    same: int

    @property
    def precision(self) -> float | None:
        """None if nothing labelled was put together."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else None

    @property
    def recall(self) -> float | None:
        """None if there are no pairs to find."""
        return self.found / self.same if self.same else None

    @property
    def f1(self) -> float | None:
        """Harmonic mean of both."""
        if self.precision is None or self.recall is None or not self.precision + self.recall:
            return None
        return 2 * self.precision * self.recall / (self.precision + self.recall)


def pennsylvania(folder: Path = DATA / "matching", half: str = "dev") -> Truth:
    """Four sellers of Pennsylvania. Raises FileNotFoundError without the recorded data."""
    with gzip.open(folder / f"pa_listings_{half}.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    with gzip.open(folder / f"pa_truth_{half}.csv.gz", "rt", encoding="utf-8", newline="") as lines:
        pairs = tuple(
            Pair(row["a"], row["b"], row["label"] == "same", row["kind"], row["category"])
            for row in csv.DictReader(lines)
            if row["label"] != "unclear"
        )
    return Truth(
        tuple(_listing(row) for row in rows),
        pairs,
        {row["id"]: float(row["size_g"]) for row in rows if row["size_g"]},
        {row["id"]: float(row["price_usd"]) for row in rows if row["price_usd"]},
    )


def _listing(row: Mapping[str, Any]) -> Listing:
    ids = (f"jane:{row['source_id']}",) if row["source_id"] else ()
    return Listing(
        listing_id=row["id"],
        seller=row["seller"],
        store=row["store"],
        name=row["name"],
        brand=row["brand"],
        category=row["category"],
        subcategory=row["subcategory"],
        sizes=(row["size"],) if row["size"] else (),
        platform_ids=ids,
    )


_GRAMS = {"1/2 g": 0.5, "1 g": 1.0, "2 g": 2.0, "1/8 oz": 3.5, "1/4 oz": 7.0, "1/2 oz": 14.0, "1 oz": 28.0}
_SIZE = re.compile(
    r"(?:\d+\s*(?:mg)?\s*:\s*)*\d*\.?\d+\s*(?:grams?|g|mg|oz|ml|pk|pack|ct)\b|[^0-9a-z]+"  # "100:50mg" too
)


def new_mexico(folder: Path = DATA / "matching", half: str = "dev", *, ids: bool = True) -> Truth:
    """Items that Weedmaps ties to a catalog entry of their brand; without `ids` the listings do not tell which.

    Kinds: `catalog_same`, one entry in two stores; `catalog_other`, two entries of one brand and category in any stores;
    `catalog_size`, two entries whose names differ by size or punctuation only: sizes of one product, or entries made twice.
    Those are pairs of which neither is right or wrong, and count nowhere.
    """
    with (folder / f"nm_catalog_truth_{half}.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    listings = tuple(
        Listing(
            listing_id=row["item_id"],
            store=row["listing_id"],
            name=row["name"],
            brand=row["brand"] or None,
            category=row["category"] or None,
            subcategory=row["subcategory"] or None,
            sizes=(row["size"],) if row["size"] else (),
            platform_ids=(f"weedmaps:{row['catalogue_id']}",) if ids else (),
        )
        for row in rows
    )
    names: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        names[row["catalogue_id"]].add(_SIZE.sub("", row["name"].lower()))
    by_brand: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        by_brand[row["brand_id"], row["category"]].append(row)
    pairs = []
    for (_, category), members in sorted(by_brand.items()):
        for a, b in combinations(members, 2):
            same = a["catalogue_id"] == b["catalogue_id"]
            if same and a["listing_id"] == b["listing_id"]:
                continue
            kind = "catalog_same" if same else "catalog_other"
            if not same and names[a["catalogue_id"]] & names[b["catalogue_id"]]:
                kind = "catalog_size"
            pairs.append(Pair(a["item_id"], b["item_id"], same, kind, category.lower()))
    return Truth(
        listings,
        tuple(pairs),
        {row["item_id"]: _GRAMS[row["size"]] for row in rows if row["size"] in _GRAMS},
        {row["item_id"]: float(row["price"]) for row in rows if row["price"]},
    )


def new_mexico_menus(archive: Path = DATA / "weedmaps" / "nm_menus_2024-05.tar.gz") -> list[Listing]:
    """All items of 133 Weedmaps menus, as the menus write them, with the catalog ids of those that have one.

    A few items stand on two pages of their menu; they count once.
    """
    found: dict[str, Listing] = {}
    with tarfile.open(archive) as files:
        for member in sorted(files.getmembers(), key=lambda one: one.name):
            file = files.extractfile(member) if member.name.endswith(".json") else None
            if file is None:
                continue
            for item in json.load(file)["data"]:
                one = _weedmaps_item(item, Path(member.name).stem)
                found.setdefault(one.listing_id, one)
    return list(found.values())


def _weedmaps_item(item: Mapping[str, Any], store: str) -> Listing:
    at = item["attributes"]
    related = item["relationships"]
    entry = ((related.get("product") or {}).get("data") or {}).get("id")
    return Listing(
        listing_id=str(item["id"]),
        store=store,
        name=at["name"],
        brand=at["brand_name"] or None,
        category=at["category_name"],
        subcategory=at["sub_category"].get("name"),
        strain=at["genetics"],
        sizes=tuple(variant["label"] for variant in at["variants"]),
        platform_ids=(f"weedmaps:{entry}",) if entry else (),
        image=None if "placeholder" in at["avatar_image_url"] else at["avatar_image_url"],
    )


def sellers(truth: Truth) -> dict[str, str]:
    """The seller of each listing; a store of no chain is its own."""
    return {one.listing_id: one.seller or one.store for one in truth.listings}


def between_sellers(truth: Truth) -> list[Pair]:
    """The pairs that decide: of two sellers, and for New Mexico of two stores or two catalog entries."""
    of = sellers(truth)
    return [
        pair
        for pair in truth.pairs
        if pair.kind != "catalog_size" and (pair.kind.startswith("catalog_") or of[pair.a] != of[pair.b])
    ]


def score(pairs: Iterable[Pair], groups: Mapping[str, object]) -> Score:
    """`groups` maps listing ids to groups; a listing without one is alone. Of same pairs found by a rule on names (`read`) only
    precision counts.
    """
    right = wrong = found = same = 0
    for pair in pairs:
        together = pair.a in groups and groups[pair.a] == groups.get(pair.b)
        right += together and pair.same
        wrong += together and not pair.same
        if pair.same and pair.kind != "read":
            same += 1
            found += together
    return Score(right, wrong, found, same)


def by(pairs: Sequence[Pair], key: Callable[[Pair], str]) -> dict[str, list[Pair]]:
    """Pairs by category, kind or fold."""
    split: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        split[key(pair)].append(pair)
    return dict(sorted(split.items()))


def brand_family(brand: str | None) -> str:
    """The first word of a brand, marks aside: lines of one brand ("R.O.", "R.O. Ground") share it."""
    found = re.findall(r"[^\W_]+", re.sub(r"(?<=\b\w)\.", "", (brand or "").lower().replace("™", "")))
    return found[0] if found else ""
