"""Brands of matched products: their spellings, merges and names."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import Refused
from menuwatch.core.format import pluralize
from menuwatch.dashboard import screen, tables
from menuwatch.dashboard.decode import decoded
from menuwatch.dashboard.pages.matching import TABS
from menuwatch.matching import brand_edits
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/matching/brands", dependencies=[require(Permission.READ)])

BrandPath = Annotated[int, Path(ge=1, le=2**31 - 1)]


@router.get("")
async def list_brands(
    request: Request,
    form: Annotated[FormInput, fields("q", "merged", longest=200)],
    conn: ReadConn,
    cursor: Annotated[str, Query(max_length=2000)] = "",
) -> Response:
    """Brands by name, with the spellings that menus use."""
    merged = form.parse_choice("merged", ("yes",)) is not None
    rows = await brand_edits.list_brands(
        conn,
        q=form.text("q"),
        merged=merged,
        after=screen.parse_cursor(request, cursor, tuple[str, int]),
        limit=tables.page_size(request) + 1,
    )
    shown, page = tables.page(request, rows, "key", "id")
    context = {
        "tabs": TABS,
        "tab": "/brands",
        "form": form,
        "brands": decoded(shown),
        "page": page,
        "may": screen.may(request, Permission.MATCHING),
    }
    return screen.render(request, "matching/brands.html", context, live="products")


@router.get("/{brand_id}")
async def one_brand(request: Request, conn: ReadConn, brand_id: BrandPath) -> Response:
    """One brand: its spellings, and forms to merge, rename and move."""
    (brand,) = decoded([await brand_edits.get_brand(conn, brand_id)])
    context = {"brand": brand, "may": screen.may(request, Permission.MATCHING)}
    return screen.render(request, "matching/brand.html", context)


@router.post("/{brand_id}/rename", dependencies=[require(Permission.MATCHING)])
async def rename(
    request: Request, form: Annotated[FormInput, fields("name", longest=400)], conn: WriteConn, brand_id: BrandPath
) -> Response:
    """Changes the name that is shown."""
    edit = await brand_edits.rename_brand(conn, brand_id, form.value("name"))
    return screen.flash_to(request, f"/matching/brands/{brand_id}", f"The brand is now named {edit.brand.name}.")


@router.post("/{brand_id}/merge", dependencies=[require(Permission.MATCHING)])
async def merge(
    request: Request, form: Annotated[FormInput, fields("into", longest=400)], conn: WriteConn, brand_id: BrandPath
) -> Response:
    """Merges it into another one, and shows that."""
    text = form.text("into")
    if text is None:
        raise Refused("enter the brand to merge into: its name, a spelling or its id")
    into = await brand_edits.find_brand(conn, text)
    name = (await brand_edits.get_brand(conn, brand_id)).name
    edit = await brand_edits.merge_brands(conn, brand_id, into.id)
    said = f"{name} is merged into {into.name}: {pluralize(edit.listings, 'listing')} will be matched again."
    undo = screen.Undo(f"/matching/brands/{brand_id}/unmerge")
    return screen.flash_to(request, f"/matching/brands/{into.id}", said, undo=undo)


@router.post("/{brand_id}/unmerge", dependencies=[require(Permission.MATCHING)])
async def unmerge(request: Request, conn: WriteConn, brand_id: BrandPath) -> Response:
    """Undoes its merge."""
    edit = await brand_edits.unmerge_brand(conn, brand_id)
    return screen.flash_to(request, f"/matching/brands/{brand_id}", f"{edit.brand.name} is a separate brand again.")


@router.post("/{brand_id}/spellings", dependencies=[require(Permission.MATCHING)])
async def move_spelling(
    request: Request,
    form: Annotated[FormInput, fields("spelling", "to", "new", longest=400)],
    conn: WriteConn,
    brand_id: BrandPath,
) -> Response:
    """Moves a spelling of it to another brand or a new one; without either, adds a spelling to it."""
    spelling, to, new = form.value("spelling"), form.text("to"), form.text("new")
    if to is not None and new is not None:
        raise Refused("enter either a brand or the name of a new one")
    target = None if new is not None else brand_id if to is None else (await brand_edits.find_brand(conn, to)).id
    edit = await brand_edits.move_spelling(conn, spelling, brand_id=target, new_brand=new)
    text = f"{edit.spellings[0]} is a spelling of {edit.brand.name}: {pluralize(edit.listings, 'listing')} will be matched again."
    return screen.flash_to(request, f"/matching/brands/{edit.brand.id}", text)
