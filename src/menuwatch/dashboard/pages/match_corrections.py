"""Corrections of matches: made from a pair or a product, listed, and withdrawn."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import InvalidField, Refused
from menuwatch.dashboard import screen, tables
from menuwatch.dashboard.decode import decoded
from menuwatch.dashboard.pages.matching import TABS
from menuwatch.matching import corrections, signed_listings
from menuwatch.matching.corrections import Contradicts, CorrectionFilter, CorrectionState, Outcome
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/matching", dependencies=[require(Permission.READ)])

CorrectionPath = Annotated[int, Path(ge=1, le=2**63 - 1)]
SAID = {"yes": True, "no": False}


@router.get("/corrections")
async def list_corrections(
    request: Request,
    form: Annotated[FormInput, fields("by", "same", "active", "product", longest=200)],
    conn: ReadConn,
    cursor: Annotated[str, Query(max_length=400)] = "",
) -> Response:
    """Corrections, newest first."""
    same, active = form.parse_choice("same", tuple(SAID)), form.parse_choice("active", tuple(SAID))
    product = form.parse_int("product", low=1, high=2**63 - 1)
    where = CorrectionFilter(
        same=None if same is None else SAID[same],
        active=None if active is None else SAID[active],
        made_by=form.text("by"),
        products=None if product is None else [product],
    )
    rows = []
    if form.ok:
        after = screen.parse_number_cursor(request, cursor)
        rows = await corrections.list_corrections(conn, where, after=after, limit=tables.page_size(request) + 1)
    shown, page = tables.page(request, rows, "id")
    context = {
        "tabs": TABS,
        "tab": "/corrections",
        "form": form,
        "corrections": decoded(shown),
        "states": CorrectionState,
        "filtered": any(form.text(name) for name in form.values),
        "page": page,
        "may": screen.may(request, Permission.MATCHING),
    }
    return screen.render(request, "matching/corrections.html", context, live="products")


@router.post("/corrections", dependencies=[require(Permission.MATCHING)])
async def correct(
    request: Request, form: Annotated[FormInput, fields("a", "b", "same", "note", "replace")], conn: WriteConn
) -> Response:
    """Says that two products are the same or different, and goes back to the page of the form. An earlier correction that says
    otherwise is replaced only after a question."""
    a, b = (form.parse_int(name, low=1, high=2**63 - 1) for name in ("a", "b"))
    same = SAID.get(form.value("same"))
    if not form.ok or a is None or b is None or same is None:
        wrong = next(iter(form.errors.values()), "enter the ids of two products")
        return screen.flash_back(request, f"Nothing was changed: {wrong}.", "bad")
    try:
        result = await corrections.correct(
            conn, a, b, same, note=form.text("note"), replace=form.value("replace") == "yes"
        )
    except Contradicts as error:
        found = await signed_listings.load(conn, (a, b))
        context = {
            "a": found[a],
            "b": found[b],
            "same": same,
            "note": form.value("note"),
            "why": str(error).partition(": withdraw it")[0],
            "back": screen.referer_path(request),
        }
        return screen.render(request, "matching/replace.html", context, status=409)
    except InvalidField as error:
        return screen.flash_back(request, f"Nothing was changed: {error}.", "bad")
    verdict = "the same product" if same else "different products"
    if result.outcome in (Outcome.ALIKE, Outcome.REPEATED):
        return screen.flash_back(request, f"Nothing was changed: {result.detail}.", "warn")
    assert result.correction is not None, "one that was recorded"
    undo = screen.Undo(f"/matching/corrections/{result.correction.id}/withdraw")
    text = f"Recorded: {verdict}. The matcher applies it within seconds."
    if form.value("replace") == "yes":
        return screen.flash_to(request, "/matching/corrections", text, undo=undo)
    return screen.flash_back(request, text, undo=undo)


@router.post("/corrections/{correction_id}/withdraw", dependencies=[require(Permission.MATCHING)])
async def withdraw(request: Request, conn: WriteConn, correction_id: CorrectionPath) -> Response:
    """Withdraws it: the matcher decides again."""
    try:
        await corrections.withdraw(conn, correction_id)
    except Refused as error:
        return screen.flash_back(request, f"Nothing was changed: {error}.", "bad")
    return screen.flash_back(request, f"Correction {correction_id} withdrawn; the matcher decides again.")
