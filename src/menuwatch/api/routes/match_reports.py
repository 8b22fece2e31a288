"""Product matching: its state, and why two listings are or are not one product."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import BIGINT_MAX
from menuwatch.api.responses import answer, returns
from menuwatch.matching import stats
from menuwatch.matching.explain import MatchExplanation, explain
from menuwatch.matching.stats import MatchStats
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn

router = APIRouter(prefix="/api/matching", tags=["matching"], dependencies=[require(Permission.READ)])

_Listing = Annotated[int, Query(ge=1, le=BIGINT_MAX, description="Id of a product of a store.")]


@router.get("/stats", **returns(MatchStats), summary="Get the state of product matching")
async def get_match_stats(request: Request, conn: ReadConn) -> Response:
    """Counts matched and waiting listings, canonical products, brands, and pairs to review."""
    return answer(request, await stats.read_stats(conn))


@router.get("/explain", **returns(MatchExplanation), summary="Explain a match")
async def explain_match(request: Request, conn: ReadConn, a: _Listing, b: _Listing) -> Response:
    """Explains why two products of stores are, or are not, one canonical product."""
    return answer(request, await explain(conn, a, b))
