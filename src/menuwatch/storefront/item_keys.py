"""Matches products across stores: item keys and search words. Pure."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from decimal import Decimal
from hashlib import blake2b

from menuwatch.catalog.taxonomy.text import words

RULES = 2
"""Version of the rules here and of how offers are built; raise it to have all offers rebuilt."""

_WEIGHT = re.compile(
    r"(?<![\w.])[\[(|/-]?\s*(?:\d*\.?\d+\s*(?:grams?|gr?|oz)|1/[248]\s*(?:oz|ounce)?)\.?\s*[\])|]?(?!\w)", re.IGNORECASE
)


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


def spellings(word: str) -> set[str]:
    """The word and its variants with one letter deleted; short words and numbers only as they are, since any change to them gives
    another word.
    """
    if len(word) < 4 or any(c.isdigit() for c in word):
        return {word}
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def cents(price: Decimal | None) -> int | None:
    """A price in cents; None without a price or for an implausible one."""
    return None if price is None or not 0 <= price < 10_000_000 else int((price * 100).to_integral_value())
