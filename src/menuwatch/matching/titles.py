"""What a product is called beside its brand, category and sizes. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from menuwatch.catalog.taxonomy.text import words
from menuwatch.matching import lexicon
from menuwatch.matching.brand_names import brand_core, says_nothing
from menuwatch.matching.name_parts import plain, without_sizes

_PARTS = re.compile(r"\s*[|•·~]\s*|\s+[-–—]+\s*|\s*[–—]+\s+|\s*[-–—]+\s+|\s+/\s+")
_DOSES = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:\s*:\s*\d+(?:\.\d+)?)+\s*mg\b", re.IGNORECASE)
_EMPTY = re.compile(r"\(\s*\)|\[\s*\]|\{\s*\}")
_BRACKETED = re.compile(r"[(\[{]([^()\[\]{}]*)[)\]}]")
_EDGES = " ,;:-–—|/*+&"
_OF_CATEGORY = {
    "flower": {"flower"},
    "preroll": {"preroll", "prerolls", "pre roll", "pre rolls", "joint"},
    "vaporizer": {"vape", "vapes"},
    "edible": {"edible", "edibles"},
    "tincture": {"tincture", "tinctures"},
    "topical": {"topical", "topicals"},
    "concentrate": {"concentrate", "concentrates"},
}
_MOST_PARTS = 3


@lru_cache(maxsize=16_384)
def title(name: str, brand: str | None, category: str | None) -> str:
    """The name without brand, size, category and remarks such as "(REC)": "Raspberry" for "Wyld | Raspberry | Sativa Gummies |
    100mg" by Wyld. Never empty: a name of nothing else stays as it is.
    """
    kept: list[str] = []
    seen: set[tuple[str, ...]] = set()
    spellings = {words(brand or ""), brand_core(brand) if brand else ()} - {()}
    for part in _PARTS.split(without_sizes(_DOSES.sub(" ", plain(name)))):
        text = _EMPTY.sub(" ", _BRACKETED.sub(_without_remark, part))
        text = _without_category(_without_brand(text, spellings), category)
        text = " ".join(text.split()).strip(_EDGES)
        said = words(text)
        if (
            len("".join(said)) < (1 if category == "apparel" else 2)
            or said in seen
            or said in spellings
            or _is_remark(said)
        ):
            continue
        seen.add(said)
        kept.append(text)
    return " – ".join(kept[:_MOST_PARTS]) or " ".join(name.split()) or "Unnamed product"


def _without_remark(match: re.Match[str]) -> str:
    return " " if _is_remark(words(match[1])) else match[0]


def _is_remark(said: tuple[str, ...]) -> bool:
    """Whether a part says only what stands beside the title: form, strain type, size."""
    phrase = " ".join(said)
    if any((lexicon.CUTS - {"preroll"}) & set(lexicon.FORMS.get(word, ())) for word in (phrase, *said)):
        return False
    if phrase in lexicon.FORMS or phrase in lexicon.STRAINS:
        return True
    return all(says_nothing(word) or word.isdigit() or word in lexicon.CANNABINOIDS for word in said) and not all(
        word.isdigit() for word in said
    )


def _without_brand(text: str, spellings: set[tuple[str, ...]]) -> str:
    """The text without the brand at its start, or after "by" at its end."""
    parts = text.split()
    for spelling in sorted(spellings, key=len, reverse=True):
        joined = "".join(spelling)
        for count in range(1, min(len(parts), len(spelling) + 2) + 1):
            rest = parts[count:]
            if "".join(words(" ".join(parts[:count]))) == joined and len("".join(words(" ".join(rest)))) > 2:
                return " ".join(rest)
        for at in range(1, len(parts) - 1):
            if parts[at].lower() == "by" and words(" ".join(parts[at + 1 :])) == spelling:
                return " ".join(parts[:at])
    return text


def _without_category(text: str, category: str | None) -> str:
    """The text without the word of its category at its end."""
    parts = text.split()
    for count in (2, 1):
        ends = " ".join(words(" ".join(parts[-count:]))) in _OF_CATEGORY.get(category or "", ())
        if ends and not all(says_nothing(word) for word in words(" ".join(parts[:-count]))):
            return " ".join(parts[:-count])
    return text
