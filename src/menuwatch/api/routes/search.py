"""Search for stores, tasks, payloads, hosts, workers, proxies, schedules and users by number or name."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from msgspec import Struct
from pydantic import Field

from menuwatch.accounts.model import Permission, Principal
from menuwatch.api.inputs import Input, Text
from menuwatch.api.responses import answer, returns
from menuwatch.ops import quick_search
from menuwatch.ops.quick_search import MOST, SearchResult
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn

router = APIRouter(prefix="/api/search", tags=["search"], dependencies=[require(Permission.READ)])


class SearchQuery(Input):
    """What to search for."""

    q: Annotated[Text, Field(min_length=1, max_length=200)] = Field(
        description="A number, or words that the name contains; a misspelled word of a store's name finds it too."
    )


class SearchResults(Struct, kw_only=True, frozen=True):
    """What was found, the best first."""

    items: list[SearchResult]


@router.get("", **returns(SearchResults), summary="Search by number or name")
async def search(
    request: Request,
    conn: ReadConn,
    who: Annotated[Principal, require(Permission.READ)],
    query: Annotated[SearchQuery, Query()],
) -> Response:
    found = await quick_search.search(conn, query.q, accounts=who.may(Permission.ACCOUNTS))
    return answer(request, SearchResults(items=found))


search.__doc__ = f"Up to {MOST} results of each kind. Users are found with the permission `accounts:write`."
