"""Matches products across stores: item keys, search words and sizes. Pure."""

from __future__ import annotations

import re
import unicodedata
import uuid
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from menuwatch.catalog.taxonomy.package import GRAMS_PER_OUNCE, mass, shortest

RULES = 2
"""Version of the rules here and of how offers are built; raise it to have all offers rebuilt."""

LONGEST_WORD = 40
MOST_WORDS = 40
"""Maximum indexed words per name."""

_APART = re.compile(r"[\W_]+")
_WEIGHT = re.compile(
    r"(?<![\w.])[\[(|/-]?\s*(?:\d*\.?\d+\s*(?:grams?|gr?|oz)|1/[248]\s*(?:oz|ounce)?)\.?\s*[\])|]?(?!\w)", re.IGNORECASE
)
_NONE = frozenset({"", "n a", "na", "each", "ea", "none", "unit", "default"})


@lru_cache(maxsize=16_384)
def words(text: str) -> tuple[str, ...]:
    """Words of a text in comparable form: lower case, without accents, split at anything but letters and digits."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    # Apostrophes are removed (jack's, jacks); other punctuation separates words.
    found = _APART.sub(" ", plain.replace("'", "").replace("’", "")).split()
    return tuple(word[:LONGEST_WORD] for word in found[:MOST_WORDS])


def slug(text: str) -> str:
    """URL slug of a text; empty if it has no letter or digit."""
    return "-".join(words(text))[:80].strip("-")


def item_key(name: str, brand: str | None, category: str, store_id: int) -> uuid.UUID:
    """A key that is equal for the same product in all stores: brand, name and category regardless of spelling, without the weight
    that some stores put into the name. A product without a brand gets a key of its own store.
    """
    of = words(brand) if brand else ()
    own = words(_WEIGHT.sub(" ", name)) or words(name) or (name.casefold(),)
    if of and own[: len(of)] == of and len(own) > len(of):
        own = own[len(of) :]  # "Acme Blue Dream" of Acme
    whose = " ".join(of) if of else f"store {store_id}"
    digest = blake2b("\n".join((whose, " ".join(own), category)).encode(), digest_size=16).digest()
    return uuid.UUID(bytes=digest)


def document(name: str, brand: str | None, more: Iterable[str | None]) -> tuple[str, str, str]:
    """The search texts of an item by rank: its name, its brand, its kind."""
    kinds = [word for text in more if text for word in words(text)]
    return " ".join(words(name)), " ".join(words(brand or "")), " ".join(kinds)


def sizes(variants: Sequence[Mapping[str, Any]]) -> list[str]:
    """A product's distinct sizes: by weight if known, else by content, by pieces, or as the menu says."""
    return list(dict.fromkeys(size for one in variants if (size := size_of(one)) is not None))


def size_of(variant: Mapping[str, Any]) -> str | None:
    """`3.5 g`, `100 mg`, `10 pieces`, or the menu's own word; None if it has none."""
    if (grams := variant.get("weight_g")) is not None and Decimal(str(grams)) > 0:
        return f"{shortest(_by_ounces(Decimal(str(grams))))} g"
    if (content := variant.get("content_mg")) is not None:
        return f"{shortest(Decimal(str(content)))} mg"
    if (pieces := variant.get("pieces")) is not None:
        return "1 piece" if pieces == 1 else f"{pieces} pieces"
    option = str(variant.get("option", "")).strip()
    if (said := mass(option)) is not None:
        return f"{shortest(_by_ounces(Decimal(str(said))))} g"
    return None if " ".join(words(option)) in _NONE or len(option) > 30 else option


_OUNCE = Decimal("28.3495")
_CLOSE = Decimal("0.0025")
"""Share by which menus round the grams of an ounce: 28.3 and 28.4 for 28.3495."""


def _by_ounces(grams: Decimal) -> Decimal:
    """The weight, or 28, 14, 7 or 3.5 g for an ounce or a fraction of it in exact grams, as menus call the same package both."""
    for part in (1, 2, 4, 8):
        if abs(grams * part / _OUNCE - 1) <= _CLOSE:
            return GRAMS_PER_OUNCE / part
    return grams


def spellings(word: str) -> set[str]:
    """The word and its variants with one letter deleted; short words and numbers only as they are, since any change to them gives
    another word.
    """
    if len(word) < 4 or any(c.isdigit() for c in word):
        return {word}
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def is_one_error_apart(a: str, b: str) -> bool:
    """Whether two words have Damerau-Levenshtein distance 1: one letter wrong, missing, extra, or two neighbours swapped."""
    if a == b or abs(len(a) - len(b)) > 1:
        return False
    start = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    x, y = a[start:], b[start:]
    return x[1:] == y[1:] or x[1:] == y or x == y[1:] or (x[:2] == y[1::-1] and x[2:] == y[2:] and len(x) > 1)


def cents(price: Decimal | None) -> int | None:
    """A price in cents; None without a price or for an implausible one."""
    return None if price is None or not 0 <= price < 10_000_000 else int((price * 100).to_integral_value())
