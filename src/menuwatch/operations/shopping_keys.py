"""What makes two products of different stores the same item, which words find it, and by what sizes it is sold. Pure."""

from __future__ import annotations

import re
import unicodedata
import uuid
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from menuwatch.catalog.canon.package import mass, shortest

RULES = 1
"""Raised whenever something here, or in how offers are made, means that all of them are to be made anew."""

LONGEST_WORD = 40
MOST_WORDS = 40
"""Words of one name that it is found by."""

_APART = re.compile(r"[\W_]+")
_WEIGHT = re.compile(
    r"(?<![\w.])[\[(|/-]?\s*(?:\d*\.?\d+\s*(?:grams?|gr?|oz)|1/[248]\s*(?:oz|ounce)?)\.?\s*[\])|]?(?!\w)", re.IGNORECASE
)
_NONE = frozenset({"", "n a", "na", "each", "ea", "none", "unit", "default"})
_NAMESPACE = uuid.UUID("5b8f0f5e-0a43-4b0c-9d0a-6f2f1f0c7a10")


@lru_cache(maxsize=16_384)
def words(text: str) -> tuple[str, ...]:
    """The words of a text as they are compared: lower case, without accents, split at whatever is neither letter nor digit."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    # A name's apostrophe is left out (jack's, jacks), other marks stand between words.
    found = _APART.sub(" ", plain.replace("'", "").replace("’", "")).split()
    return tuple(word[:LONGEST_WORD] for word in found[:MOST_WORDS])


def slug(text: str) -> str:
    """What stands for a text in an address; empty where it has no letter and no digit."""
    return "-".join(words(text))[:80].strip("-")


def item_key(name: str, brand: str | None, category: str, store_id: int) -> uuid.UUID:
    """Equal for products that a shopper would call the same: brand, name and category, however they are written, without the weight
    that some stores put into the name. Of a product without a brand nobody can tell, so it is its store's own."""
    of = words(brand) if brand else ()
    own = words(_WEIGHT.sub(" ", name)) or words(name) or (name.casefold(),)
    if of and own[: len(of)] == of and len(own) > len(of):
        own = own[len(of) :]  # "Acme Blue Dream" of Acme
    whose = " ".join(of) if of else f"store {store_id}"
    digest = blake2b("\n".join((whose, " ".join(own), category)).encode(), digest_size=16).digest()
    return uuid.UUID(bytes=digest)


def document(name: str, brand: str | None, more: Iterable[str | None]) -> tuple[str, str, str]:
    """The texts that an item is found by, best first: its name, its brand, and what kind of thing it is."""
    kinds = [word for text in more if text for word in words(text)]
    return " ".join(words(name)), " ".join(words(brand or "")), " ".join(kinds)


def sizes(variants: Sequence[Mapping[str, Any]]) -> list[str]:
    """How a product is sold, each way once: by weight where that is known, else by content, by pieces, or as the menu says."""
    return list(dict.fromkeys(size for one in variants if (size := size_of(one)) is not None))


def size_of(variant: Mapping[str, Any]) -> str | None:
    """`3.5 g`, `100 mg`, `10 pieces`, or the menu's own word; None where it says nothing."""
    if (grams := variant.get("weight_g")) is not None and Decimal(str(grams)) > 0:
        return f"{shortest(Decimal(str(grams)))} g"
    if (content := variant.get("content_mg")) is not None:
        return f"{shortest(Decimal(str(content)))} mg"
    if (pieces := variant.get("pieces")) is not None:
        return "1 piece" if pieces == 1 else f"{pieces} pieces"
    option = str(variant.get("option", "")).strip()
    if (said := mass(option)) is not None:
        return f"{said} g"
    return None if " ".join(words(option)) in _NONE or len(option) > 30 else option


def spellings(word: str) -> set[str]:
    """The word, and the word with each of its letters left out; of short words and numbers only themselves, for there every error
    is another word."""
    if len(word) < 4 or any(c.isdigit() for c in word):
        return {word}
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def is_one_error_apart(a: str, b: str) -> bool:
    """Whether one letter is wrong, missing, too many, or two neighbours are swapped (Damerau-Levenshtein distance 1)."""
    if a == b or abs(len(a) - len(b)) > 1:
        return False
    start = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    x, y = a[start:], b[start:]
    return x[1:] == y[1:] or x[1:] == y or x == y[1:] or (x[:2] == y[1::-1] and x[2:] == y[2:] and len(x) > 1)


def cents(price: Decimal | None) -> int | None:
    """A price in cents; None where there is none, or where it is no price anybody pays."""
    return None if price is None or not 0 <= price < 10_000_000 else int((price * 100).to_integral_value())
