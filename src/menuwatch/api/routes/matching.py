"""Product matching: pairs to review, corrections, brands, and canonical products."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import BIGINT_MAX, INTEGER_MAX, BigId, Input, PageQuery, Search, StoreId, Text
from menuwatch.api.paging import Keyset
from menuwatch.api.responses import answer, page, returns, returns_page
from menuwatch.matching import brand_edits, corrections, products, review
from menuwatch.matching.brand_edits import BrandEdit, MatchedBrand
from menuwatch.matching.corrections import MAX_NOTE_CHARS, Correction, CorrectionFilter, CorrectionResult
from menuwatch.matching.products import MatchedProduct, ProductEvent, ProductListing
from menuwatch.matching.review import MatchReview, ReviewFilter, Skip
from menuwatch.web.auth import require_by_method
from menuwatch.web.dependencies import ReadConn, WriteConn

router = APIRouter(prefix="/api/matching", tags=["matching"], dependencies=[require_by_method(Permission.MATCHING)])

CorrectionPath = Annotated[int, Path(ge=1, le=BIGINT_MAX, description="Id of the correction.")]
BrandPath = Annotated[int, Path(ge=1, le=INTEGER_MAX, description="Id of the brand.")]
CanonicalPath = Annotated[int, Path(ge=1, le=BIGINT_MAX, description="Id of the canonical product.")]
BrandName = Annotated[Text, Field(min_length=1, max_length=brand_edits.MAX_NAME_CHARS)]


class ReviewQuery(PageQuery):
    """Which pairs."""

    category: Search | None = Field(
        None,
        description="Only this kind of product: flower, vaporizer, concentrate, edible, topical, accessory, "
        "cultivation or other.",
    )
    brand: Search | None = Field(None, description="Only pairs of this brand: id, name or a spelling.")
    together: bool | None = Field(None, description="Whether they are in one canonical product now.")
    min_impact: int | None = Field(None, ge=0, le=INTEGER_MAX, description="Minimum number of listings it moves.")
    skipped: bool = Field(
        False, description="Only skipped pairs (`true`), or only pairs that were not skipped (`false`)."
    )

    def where(self) -> ReviewFilter:
        return ReviewFilter(
            category=self.category,
            brand=self.brand,
            together=self.together,
            min_impact=self.min_impact,
            skipped=self.skipped,
        )


class SkipInput(Input):
    """A pair to skip, or to put back into the queue."""

    a: BigId = Field(description="Id of a product.")
    b: BigId = Field(description="Id of a product.")
    skipped: bool = Field(True, strict=True, description="Whether to skip the pair; `false` puts it back.")


class NewCorrection(Input):
    """What you say of two products, and of everything that is written like them."""

    a: BigId = Field(description="Id of a product.")
    b: BigId = Field(description="Id of a product.")
    same: bool = Field(strict=True, description="Whether they are one product.")
    note: Annotated[Text, Field(max_length=MAX_NOTE_CHARS)] | None = Field(None, description="Why.")
    replace: bool = Field(False, strict=True, description="Withdraw an earlier correction of the two to the contrary.")


class CorrectionQuery(PageQuery):
    """Which corrections."""

    same: bool | None = Field(None, description="Only those that say same (`true`) or different (`false`).")
    active: bool | None = Field(None, description="Only those in force (`true`), or only withdrawn ones (`false`).")
    made_by: Search | None = Field(None, description="Only those by this user.")
    product: list[BigId] | None = Field(None, max_length=50, description="Only those about these products.")


class BrandQuery(PageQuery):
    """Which brands."""

    q: Search | None = Field(None, description="Text that the name or a spelling contains, case-insensitive.")
    merged: bool | None = Field(
        None, description="Only brands that were merged into others (`true`), or only the others (`false`)."
    )


class BrandMerge(Input):
    """The brand to merge into."""

    into: StoreId = Field(description="Id of the brand that stays.")


class SpellingMove(Input):
    """Which brand a spelling names: an existing one, or a new one."""

    spelling: BrandName = Field(description="As menus write it; it may be one that no menu has yet.")
    brand_id: StoreId | None = Field(None, description="Id of the brand.")
    new_brand: BrandName | None = Field(None, description="Name of a new brand.")


class BrandChange(Input):
    """The new name of a brand."""

    name: BrandName = Field(description="Name to display; the address of the brand stays.")


_TOTAL = {
    "type": "integer",
    "description": f"Number of pairs that the filters select; {review.MOST_COUNTED + 1} if there are more than "
    f"{review.MOST_COUNTED}.",
}


@router.get("/reviews", **returns_page(MatchReview, total=_TOTAL), summary="List pairs to review")
async def list_match_reviews(request: Request, conn: ReadConn, query: Annotated[ReviewQuery, Query()]) -> Response:
    """Lists pairs that a person should judge, the most doubtful and most used first."""
    where = query.where()
    selection = (where.category, where.brand, where.together, where.min_impact, where.skipped)
    keys = Keyset(query, tuple[float, int, int], "match reviews", *selection)
    found = await review.list_reviews(conn, where, after=keys.after, limit=query.limit)
    total = await review.count_reviews(conn, where)
    return page(request, found.items, keys.cursor(found.next), total=total)


@router.post("/reviews/skip", **returns(Skip), summary="Skip a pair to review")
async def skip_match_review(request: Request, conn: WriteConn, pair: SkipInput) -> Response:
    """Removes a pair from the queue without a decision, or puts it back."""
    return answer(request, await review.skip_review(conn, pair.a, pair.b, skipped=pair.skipped))


@router.get("/corrections", **returns_page(Correction), summary="List corrections, newest first")
async def list_corrections(request: Request, conn: ReadConn, query: Annotated[CorrectionQuery, Query()]) -> Response:
    """Lists decisions of people about pairs of products, and whether the matcher has applied them."""
    where = CorrectionFilter(same=query.same, active=query.active, made_by=query.made_by, products=query.product)
    keys = Keyset(query, int, "match corrections", where.same, where.active, where.made_by, where.products)
    rows = await corrections.list_corrections(conn, where, after=keys.after, limit=keys.limit)
    return keys.page(request, rows, lambda row: row.id)


@router.post("/corrections", **returns(CorrectionResult), summary="Correct the matching of two products")
async def correct_match(request: Request, conn: WriteConn, new: NewCorrection) -> Response:
    """Records that two products are the same, or different. Applies to everything that is written like them, and overrides the
    matcher. A correction that contradicts earlier ones is refused with their ids."""
    result = await corrections.correct(conn, new.a, new.b, new.same, note=new.note, replace=new.replace)
    return answer(request, result)


@router.post("/corrections/{correction_id}/withdraw", **returns(Correction), summary="Withdraw a correction")
async def withdraw_correction(request: Request, conn: WriteConn, correction_id: CorrectionPath) -> Response:
    """Ends a correction: the matcher decides again."""
    return answer(request, await corrections.withdraw(conn, correction_id))


@router.get("/brands", **returns_page(MatchedBrand), summary="List brands with their spellings")
async def list_matched_brands(request: Request, conn: ReadConn, query: Annotated[BrandQuery, Query()]) -> Response:
    """Lists canonical brands by name."""
    keys = Keyset(query, tuple[str, int], "matched brands", query.q, query.merged)
    rows = await brand_edits.list_brands(conn, q=query.q, merged=query.merged, after=keys.after, limit=keys.limit)
    return keys.page(request, rows, lambda row: (row.key, row.id))


@router.post("/brands/spellings", **returns(BrandEdit), summary="Move a spelling to another brand")
async def move_brand_spelling(request: Request, conn: WriteConn, move: SpellingMove) -> Response:
    """Assigns a spelling to a brand. This overrides what the matcher learned."""
    edit = await brand_edits.move_spelling(conn, move.spelling, brand_id=move.brand_id, new_brand=move.new_brand)
    return answer(request, edit)


@router.get("/brands/{brand_id}", **returns(MatchedBrand), summary="Get a brand")
async def get_matched_brand(request: Request, conn: ReadConn, brand_id: BrandPath) -> Response:
    """Returns one brand with its spellings; `merged_into` names the successor of a merged one."""
    return answer(request, await brand_edits.get_brand(conn, brand_id))


@router.patch("/brands/{brand_id}", **returns(BrandEdit), summary="Rename a brand")
async def rename_brand(request: Request, conn: WriteConn, brand_id: BrandPath, change: BrandChange) -> Response:
    """Changes the displayed name."""
    return answer(request, await brand_edits.rename_brand(conn, brand_id, change.name))


@router.post("/brands/{brand_id}/merge", **returns(BrandEdit), summary="Merge a brand into another one")
async def merge_brand(request: Request, conn: WriteConn, brand_id: BrandPath, merge: BrandMerge) -> Response:
    """Makes its spellings those of the other brand; it stays as a redirect."""
    return answer(request, await brand_edits.merge_brands(conn, brand_id, merge.into))


@router.post("/brands/{brand_id}/unmerge", **returns(BrandEdit), summary="Undo the merge of a brand")
async def unmerge_brand(request: Request, conn: WriteConn, brand_id: BrandPath) -> Response:
    """Gives a merged brand its spellings back."""
    return answer(request, await brand_edits.unmerge_brand(conn, brand_id))


@router.get("/products/{canonical_id}", **returns(MatchedProduct), summary="Get the matching of a canonical product")
async def get_matched_product(request: Request, conn: ReadConn, canonical_id: CanonicalPath) -> Response:
    """Returns one canonical product; `merged_into` names the successor of a merged one."""
    return answer(request, await products.get_canonical_product(conn, canonical_id))


@router.get(
    "/products/{canonical_id}/listings", **returns_page(ProductListing), summary="List listings of a canonical product"
)
async def list_canonical_listings(
    request: Request, conn: ReadConn, canonical_id: CanonicalPath, query: Annotated[PageQuery, Query()]
) -> Response:
    """Lists its listings at all stores: those on a menu first, then by price."""
    await products.get_canonical_product(conn, canonical_id)
    keys = Keyset(query, tuple[bool, Decimal, int], "canonical listings", canonical_id)
    found = await products.list_listings(conn, canonical_id, after=keys.after, limit=query.limit)
    return page(request, found.items, keys.cursor(found.next))


@router.get(
    "/products/{canonical_id}/events", **returns_page(ProductEvent), summary="List merges and splits of a product"
)
async def list_canonical_events(
    request: Request, conn: ReadConn, canonical_id: CanonicalPath, query: Annotated[PageQuery, Query()]
) -> Response:
    """Lists merges and splits that concern the product, newest first."""
    await products.get_canonical_product(conn, canonical_id)
    keys = Keyset(query, int, "canonical events", canonical_id)
    rows = await products.list_events(conn, canonical_id, after=keys.after, limit=keys.limit)
    return keys.page(request, rows, lambda row: row.id)
