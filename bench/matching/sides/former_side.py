"""The rule that the site had before: brand, name without its weight, category, spelled alike."""

from __future__ import annotations

import re

import side

from menuwatch.catalog.taxonomy.text import words

_WEIGHT = re.compile(
    r"(?<![\w.])[\[(|/-]?\s*(?:\d*\.?\d+\s*(?:grams?|gr?|oz)|1/[248]\s*(?:oz|ounce)?)\.?\s*[\])|]?(?!\w)", re.IGNORECASE
)


def group(rows: side.type_rows) -> list[str]:
    return [_key(row["name"], row.get("brand"), row.get("category") or "", row["store"]) for row in rows]


def _key(name: str, brand: str | None, category: str, store: str) -> str:
    of = words(brand) if brand else ()
    own = words(_WEIGHT.sub(" ", name)) or words(name) or (name.casefold(),)
    if of and own[: len(of)] == of and len(own) > len(of):
        own = own[len(of) :]
    return "|".join((" ".join(of) if of else f"store {store}", " ".join(own), category))


if __name__ == "__main__":
    side.serve("0.2", group)
