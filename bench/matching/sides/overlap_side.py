"""Word overlap of at least one half (Jaccard) within brand family, category and size, with one row per store, best pairs first.

The plain rule that `../shared/data/matching/README.md` measured; it has its own small list of words that say nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import combinations

import side

_WORD = re.compile(r"[a-z0-9]+")
_SIZE = re.compile(r"\d*\.?\d+\s*(?:mg|grams?|g|oz|ml)\b|\b\d+\s*(?:ct|pk|pack)\b")
_NOTHING = frozenset(
    "the a of and in premium flower indica sativa hybrid cart cartridge vape whole pre packaged".split()
)
_LEAST = 0.5


def group(rows: side.type_rows) -> list[int]:
    blocks: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    told: list[frozenset[str]] = []
    for i, row in enumerate(rows):
        brand = _WORD.findall((row.get("brand") or "").lower())
        found = frozenset(_WORD.findall(_SIZE.sub(" ", row["name"].lower()))) - _NOTHING
        told.append(found - frozenset(brand) or found)
        size = str(row.get("grams") or "")
        blocks[brand[0] if brand else row["store"], row.get("category") or "", size].append(i)
    root = list(range(len(rows)))
    stores = [{row["store"]} for row in rows]

    def find(i: int) -> int:
        while root[i] != i:
            i = root[i]
        return i

    edges = []
    for members in blocks.values():
        for i, j in combinations(members, 2):
            if rows[i]["store"] != rows[j]["store"] and (both := told[i] | told[j]):
                share = len(told[i] & told[j]) / len(both)
                if share >= _LEAST:
                    edges.append((-share, i, j))
    for _, i, j in sorted(edges):
        a, b = find(i), find(j)
        if a != b and not stores[a] & stores[b]:
            root[b] = a
            stores[a] |= stores[b]
    return [find(i) for i in range(len(rows))]


if __name__ == "__main__":
    side.serve("", group)
