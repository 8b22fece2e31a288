"""The review queue: pairs of listings that a person should judge, the most doubtful and most used first."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

import msgspec
from msgspec import Raw, Struct

from menuwatch.accounts import audit
from menuwatch.core.errors import Conflict, NotFound
from menuwatch.core.shapes import Instant, doc, json_of
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all, fetch_structs
from menuwatch.matching import signed_listings
from menuwatch.matching.brand_edits import find_brand
from menuwatch.matching.model import Reason, Signature

_q = sql.load(__package__, "review.sql")

MOST_COUNTED = 10_000
"""Maximum number of pairs that are counted."""

Reasons = Annotated[Raw, json_of(list[Reason]), doc("Evidence for and against one product, the strongest first.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewFilter:
    """Which pairs; None takes all. `brand` is an id, a name or a spelling. `together`: in one canonical product now. `skipped`: only
    those that were skipped, else only those that were not."""

    category: str | None = None
    brand: str | None = None
    together: bool | None = None
    min_impact: int | None = None
    skipped: bool = False


class ReviewSide(Struct, kw_only=True, frozen=True):
    """One side of a pair: all listings that are written alike, shown by one of them."""

    signature_id: int
    product_id: Annotated[int, doc("The listing that is shown: id of a product.")]
    name: Annotated[str, doc("As on the menu.")]
    brand: Annotated[str | None, doc("As on the menu; null if it has none.")]
    store_id: int | None
    store: str | None
    platform: str
    currency: Annotated[str, doc("Currency of the price: USD, or CAD at stores in Canada.")]
    price: Annotated[Decimal | None, doc("Of its cheapest option, specials included; null if unknown.")]
    sizes: list[str]
    stock_status: Annotated[str, doc("`in_stock`, `oos` or `unknown`.")]
    image_url: Annotated[str | None, doc("URL of the image on the platform; null if it has none.")]
    local_image_path: Annotated[str | None, doc("Path of the stored image, for `/img/`; null if none is stored.")]
    canonical_product_id: int | None
    listings: Annotated[int, doc("Number of listings that are written like it.")]
    stores: Annotated[int, doc("Number of stores with such listings.")]
    parsed: Annotated[Signature, doc("How it is compared.")]


SideJson = Annotated[Raw, json_of(ReviewSide)]
_side = msgspec.json.Decoder(ReviewSide)


class MatchReview(Struct, kw_only=True, frozen=True):
    """A pair of listings that a person should judge."""

    a: SideJson
    b: SideJson
    confidence: Annotated[float, doc("Probability that both are one product, 0 to 1.")]
    together: Annotated[bool, doc("Whether they are in one canonical product now.")]
    impact: Annotated[int, doc("Number of listings that a decision moves.")]
    reasons: Reasons
    skipped_at: Annotated[Instant | None, doc("When it was skipped; null if it was not.")]
    doubt: Annotated[float, doc("Position in the queue: doubt times impact.")]


Key = tuple[float, int, int]
"""Sort values of a pair: doubt and the signatures' ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewPage:
    """Pairs, and the key of the next page (None at the end)."""

    items: list[MatchReview]
    next: Key | None


async def _values(conn: Connection, where: ReviewFilter) -> dict[str, Any]:
    brand = None if where.brand is None else (await find_brand(conn, where.brand)).id
    return {
        "category": where.category,
        "brand": brand,
        "together": where.together,
        "min_impact": where.min_impact,
        "skipped": where.skipped,
    }


async def list_reviews(
    conn: Connection, where: ReviewFilter, *, after: Key | None = None, limit: int = 50
) -> ReviewPage:
    """Pairs after `after`. Raises NotFound for an unknown brand."""
    last, after_a, after_b = after if after is not None else (None, None, None)
    keys = {"after": last, "after_a": after_a, "after_b": after_b, "limit": limit + 1}
    rows = await fetch_structs(
        conn, MatchReview, _q.list_reviews, {**await _values(conn, where), **keys}, prepare=False
    )
    shown = rows[:limit]
    return ReviewPage(items=shown, next=_key(shown[-1]) if len(rows) > limit else None)


def _key(review: MatchReview) -> Key:
    return (review.doubt, decode_side(review.a).signature_id, decode_side(review.b).signature_id)


def decode_side(side: Raw) -> ReviewSide:
    """A side of a pair as a Struct."""
    return _side.decode(side)


async def count_reviews(conn: Connection, where: ReviewFilter) -> int:
    """Number of pairs, at most MOST_COUNTED + 1."""
    values = {**await _values(conn, where), "most": MOST_COUNTED + 1}
    return int((await fetch_all(conn, _q.count_reviews, values, prepare=False))[0]["n"])


class ReviewCategory(Struct, kw_only=True, frozen=True):
    """Waiting pairs of one category."""

    category: str | None
    pairs: int
    together: Annotated[int, doc("Of these, pairs that are in one canonical product now.")]


async def list_categories(conn: Connection) -> list[ReviewCategory]:
    """Categories of the queue, the largest first."""
    return await fetch_structs(conn, ReviewCategory, _q.categories, {})


class Skip(Struct, kw_only=True, frozen=True):
    """Whether a pair is skipped."""

    a: Annotated[int, doc("Id of a product.")]
    b: Annotated[int, doc("Id of a product.")]
    skipped: bool


async def skip_review(conn: Connection, a: int, b: int, *, skipped: bool = True) -> Skip:
    """Takes the pair of these two products out of the queue without a decision, or puts it back. Raises NotFound if they are no pair
    to review."""
    found = await signed_listings.load(conn, (a, b))
    ids = sorted(one.signature_id or 0 for one in (found[a], found[b]))
    if ids[0] == 0:
        raise Conflict("products that are not matched yet cannot be skipped: try again in a few seconds")
    if not await fetch_all(conn, _q.skip, {"a": ids[0], "b": ids[-1], "skipped": skipped}):
        raise NotFound(f"products {a} and {b} are not a pair to review: `menuwatch match review` lists the pairs")
    action = "match_review_skipped" if skipped else "match_review_unskipped"
    await audit.record(conn, action, ("product", a), other=b)
    return Skip(a=a, b=b, skipped=skipped)


class CategoryMatches(Struct, kw_only=True, frozen=True):
    """How much of one category is matched."""

    category: str | None
    products: Annotated[int, doc("Number of canonical products.")]
    listings: Annotated[int, doc("Number of their listings.")]
    shared: Annotated[int, doc("Number of canonical products in at least two stores.")]
    shared_listings: Annotated[int, doc("Number of the listings of these.")]


async def count_matches(conn: Connection) -> list[CategoryMatches]:
    """Canonical products by category, the most listings first."""
    return await fetch_structs(conn, CategoryMatches, _q.category_counts, {})
