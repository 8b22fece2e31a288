"""Canonical products: which listings are the same product, over stores and platforms."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import BIGINT_MAX
from menuwatch.api.responses import answer, returns
from menuwatch.matching import stats
from menuwatch.matching.explain import MatchExplanation, explain
from menuwatch.matching.stats import CanonicalProduct, MatchStats
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn

router = APIRouter(prefix="/api", tags=["catalog"], dependencies=[require(Permission.READ)])

_Listing = Annotated[int, Query(ge=1, le=BIGINT_MAX, description="Id of a product of a store.")]


@router.get("/match/stats", **returns(MatchStats), summary="Get the state of product matching")
async def get_match_stats(request: Request, conn: ReadConn) -> Response:
    """Counts matched and waiting listings, canonical products, brands, and pairs to review."""
    return answer(request, await stats.read_stats(conn))


@router.get("/match/explain", **returns(MatchExplanation), summary="Explain a match")
async def explain_match(request: Request, conn: ReadConn, a: _Listing, b: _Listing) -> Response:
    """Explains why two products of stores are, or are not, one canonical product."""
    return answer(request, await explain(conn, a, b))


@router.get("/canonical-products/{number}", **returns(CanonicalProduct), summary="Get a canonical product")
async def get_canonical_product(
    request: Request,
    conn: ReadConn,
    number: Annotated[int, Path(ge=1, le=BIGINT_MAX, description="Number of the canonical product.")],
) -> Response:
    """Returns the product with this number, or the one that it was merged into: then its `id` differs."""
    return answer(request, await stats.get_canonical_product(conn, number))
