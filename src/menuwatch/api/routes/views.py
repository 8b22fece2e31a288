"""Saved views: your own filters of dashboard screens."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from msgspec import Struct
from pydantic import Field

from menuwatch.accounts import saved_views
from menuwatch.accounts.model import Permission, Principal
from menuwatch.accounts.saved_views import MAX_NAME_CHARS, SCREENS, SavedView
from menuwatch.api.inputs import BIGINT_MAX, Input, Search, Text
from menuwatch.api.responses import answer, returns
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn, WriteConn

router = APIRouter(prefix="/api/views", tags=["accounts"], dependencies=[require(Permission.READ)])

Who = Annotated[Principal, require(Permission.READ)]
ViewPath = Annotated[int, Path(ge=1, le=BIGINT_MAX, description="Id of the view.")]


class ViewQuery(Input):
    """Which views."""

    screen: Search | None = Field(None, description="Only views of this screen, for example `/tasks`.")


class NewView(Input):
    """A view to save."""

    screen: Annotated[Text, Field(max_length=64)] = Field(description=f"Screen: {', '.join(SCREENS)}.")
    name: Annotated[Text, Field(min_length=1, max_length=400)] = Field(
        description=f"Name, of up to {MAX_NAME_CHARS} characters; a view with this name is replaced."
    )
    query: Annotated[Text, Field(max_length=4000)] = Field(
        "", description="Filters, as the query string of the screen's URL; the cursor is left out."
    )


class SavedViewList(Struct, kw_only=True, frozen=True):
    """Your saved views, by screen and name."""

    items: list[SavedView]


@router.get("", **returns(SavedViewList), summary="List your saved views")
async def list_views(request: Request, conn: ReadConn, who: Who, query: Annotated[ViewQuery, Query()]) -> Response:
    """Lists the views that you saved, of one screen or of all."""
    return answer(request, SavedViewList(items=await saved_views.list_views(conn, who.name, query.screen)))


@router.post("", **returns(SavedView), summary="Save a view")
async def save_view(request: Request, conn: WriteConn, who: Who, new: NewView) -> Response:
    """Saves the filters of a screen under a name, for yourself."""
    return answer(request, await saved_views.save_view(conn, who.name, new.screen, new.name, new.query))


@router.delete("/{view_id}", **returns(SavedView), summary="Delete a saved view")
async def delete_view(request: Request, conn: WriteConn, who: Who, view_id: ViewPath) -> Response:
    """Deletes one of your views; returns it."""
    return answer(request, await saved_views.delete_view(conn, who.name, view_id))
