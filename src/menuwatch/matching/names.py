"""Parses a listing into its signature. Pure."""

from __future__ import annotations

import uuid
from hashlib import blake2b

from menuwatch.catalog.taxonomy.text import words
from menuwatch.matching.model import Listing, Signature

RULES = 1
"""Version of the parser and of the comparison; raise it to have all listings matched again."""


def sign(listing: Listing) -> Signature:
    """The listing as it is compared."""
    brand = words(listing.brand or "")
    own = words(listing.name)
    if brand and own[: len(brand)] == brand and len(own) > len(brand):
        own = own[len(brand) :]
    house = None if brand else listing.seller or listing.store
    category = listing.category or "other"
    block = f"{(brand or own or ('',))[0]}|{category}"
    text = "\n".join((str(RULES), block, " ".join(brand), house or "", " ".join(own), category))
    key = uuid.UUID(bytes=blake2b(text.encode(), digest_size=16).digest())
    return Signature(key=key, block=block, brand=brand, house=house, words=own, category=category, name=listing.name)
