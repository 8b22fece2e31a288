"""Items of stores as the matcher reads them, with the signature that each was matched by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from menuwatch.catalog.taxonomy.sizes import sizes
from menuwatch.core.errors import NotFound
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all
from menuwatch.matching.correction_keys import sign_listings
from menuwatch.matching.model import Listing, Signature

_q = sql.load(__package__, "signed_listings.sql")
_variants = msgspec.json.Decoder(list[dict[str, Any]], float_hook=Decimal)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedListing:
    """A listing with its signature. Until it was matched, `signature_id` is None, and key and block are what the parser gives now."""

    id: int
    listing: Listing
    key: UUID
    block: str
    signature_id: int | None
    canonical_product_id: int | None


async def load(conn: Connection, ids: Iterable[int]) -> dict[int, SignedListing]:
    """Listings by their id, which is that of the product; raises NotFound naming those that do not exist."""
    wanted = sorted(set(ids))
    rows = await fetch_all(conn, _q.listings, {"ids": wanted})
    missing = sorted(set(wanted) - {row["id"] for row in rows})
    if missing:
        listed = ", ".join(map(str, missing[:5])) + (f" and {len(missing) - 5:,} more" if len(missing) > 5 else "")
        one = len(missing) == 1
        raise NotFound(f"product{'' if one else 's'} {listed} {'does' if one else 'do'} not exist")
    read = {row["id"]: _listing(row) for row in rows}
    new = [row["id"] for row in rows if row["key"] is None]
    signatures = dict(zip(new, await sign_listings(conn, [read[number] for number in new]), strict=True)) if new else {}
    return {row["id"]: _signed(row, read[row["id"]], signatures.get(row["id"])) for row in rows}


def _listing(row: dict[str, Any]) -> Listing:
    return Listing(
        listing_id=str(row["id"]),
        store=str(row["dispensary_id"]),
        seller=row["enterprise_id"],
        store_name=row["store"],
        name=row["name"],
        brand=row["brand"],
        category=row["category"],
        subcategory=row["subcategory"],
        strain=row["strain"],
        sizes=tuple(sizes(_variants.decode(row["variants"]))),
        platform_ids=tuple(row["platform_ids"]),
        image=row["image"],
    )


def _signed(row: dict[str, Any], listing: Listing, signature: Signature | None) -> SignedListing:
    key, block = (row["key"], row["block"]) if signature is None else (signature.key, signature.block)
    return SignedListing(
        id=row["id"],
        listing=listing,
        key=key,
        block=block,
        signature_id=row["signature_id"],
        canonical_product_id=row["canonical_product_id"],
    )
