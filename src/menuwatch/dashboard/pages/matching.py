"""Matching: one pair at a time to review, and how much is matched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.catalog.taxonomy.text import words
from menuwatch.core.errors import Refused
from menuwatch.dashboard import screen
from menuwatch.dashboard.decode import decoded
from menuwatch.dashboard.pages.products import picture
from menuwatch.matching import review
from menuwatch.matching.corrections import CorrectionFilter, list_corrections
from menuwatch.matching.model import ReasonCode
from menuwatch.matching.review import ReviewFilter
from menuwatch.web import paging
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/matching", dependencies=[require(Permission.READ)])

_PICTURE = 400
_TOKEN = re.compile(r"[\w'’]+|[^\w'’]+")
TABS = (
    ("", "Review"),
    ("/corrections", "Corrections"),
    ("/brands", "Brands"),
    ("/overview", "Overview"),
)


def judge(confidence: float) -> str:
    """A confidence in words."""
    steps = ((0.97, "almost certainly the same"), (0.8, "probably the same"), (0.6, "perhaps the same"), (0.4, "undecided"),
             (0.2, "perhaps different"), (0.03, "probably different"))  # fmt: skip
    return next((text for least, text in steps if confidence >= least), "almost certainly different")


def mark_words(name: str, other: str) -> list[tuple[str, bool]]:
    """A name in parts, each with whether it is a word that the other name does not have."""
    known = set(words(other))
    parts: list[tuple[str, bool]] = []
    for token in _TOKEN.findall(name):
        own = words(token)
        differs = bool(own) and not known.issuperset(own)
        if parts and parts[-1][1] == differs:
            parts[-1] = (parts[-1][0] + token, differs)
        else:
            parts.append((token, differs))
    return parts


def sort_reasons(reasons: Sequence[dict[str, Any]], together: bool) -> dict[str, list[dict[str, Any]]]:
    """Reasons for and against one product, the strongest first. `strength`: decides, strong, fair or weak."""
    sorted_reasons: dict[str, list[dict[str, Any]]] = {"for": [], "against": []}
    for one in reasons:
        code = ReasonCode(one["code"])
        weight = one.get("weight")
        supports = float(weight) > 0 if weight is not None else together if code is ReasonCode.PERSON else code.supports
        size = None if weight is None else abs(float(weight))
        strength = "decides" if size is None else "strong" if size >= 6 else "fair" if size >= 2 else "weak"
        shown = {"label": code.label, "why": code.explanation, "detail": one.get("detail", ""), "strength": strength}
        sorted_reasons["for" if supports else "against"].append(
            {**shown, "size": float("inf") if size is None else size}
        )
    for side in sorted_reasons.values():
        side.sort(key=lambda shown: -shown["size"])
    return sorted_reasons


_READ = (
    ("brand", "Brand"),
    ("words", "Words"),
    ("form", "Form"),
    ("strain", "Strain type"),
    ("ratio", "Ratio"),
    ("actives", "Cannabinoids"),
    ("aside", "In brackets"),
    ("kind", "Category"),
)


def compare_parsed(a: dict[str, Any], b: dict[str, Any]) -> list[tuple[str, str, str, bool]]:
    """(label, text of a, text of b, whether they differ) of what the matcher compares; what neither has is left out."""

    def text(parsed: dict[str, Any], name: str) -> str:
        value = parsed.get(name)
        return " ".join(value) if isinstance(value, list) else str(value or "")

    rows = [(label, text(a, name), text(b, name)) for name, label in _READ]
    return [(label, one, other, one != other) for label, one, other in rows if one or other]


def _where(form: FormInput) -> ReviewFilter:
    together = form.parse_choice("now", ("together", "apart"))
    return ReviewFilter(
        category=form.text("category"),
        brand=form.text("brand"),
        together=None if together is None else together == "together",
        min_impact=form.parse_int("impact", low=1, high=1_000_000),
        skipped=form.parse_choice("skipped", ("yes",)) is not None,
    )


@router.get("")
async def review_pair(
    request: Request,
    form: Annotated[FormInput, fields("category", "brand", "now", "impact", "skipped", longest=200)],
    conn: ReadConn,
    cursor: Annotated[str, Query(max_length=400)] = "",
) -> Response:
    """The pair at the head of the queue, or the one after the cursor."""
    where = _where(form)
    pair, after, total = None, None, 0
    if form.ok:
        try:
            key = screen.parse_cursor(request, cursor, tuple[float, int, int])
            page = await review.list_reviews(conn, where, after=key, limit=1)
            total = await review.count_reviews(conn, where)
        except Refused as error:
            form.add_error("brand", str(error))
        else:
            pair = next(iter(decoded(page.items)), None)
            after = paging.encode(*page.next) if page.next else None
    categories = await review.list_categories(conn)
    context: dict[str, Any] = {
        "form": form,
        "tabs": TABS,
        "tab": "",
        "categories": [(one.category, f"{one.category} · {one.pairs:,}") for one in categories if one.category],
        "filtered": any(form.text(name) for name in ("category", "brand", "now", "impact", "skipped")),
        "pair": pair,
        "total": total,
        "most": review.MOST_COUNTED,
        "may": screen.may(request, Permission.MATCHING),
        **screen.page_links(request, after),
    }
    if pair is not None:
        a, b = pair["a"], pair["b"]
        context |= {
            "sides": [
                (a, mark_words(a["name"], b["name"]), picture(a["local_image_path"], _PICTURE)),
                (b, mark_words(b["name"], a["name"]), picture(b["local_image_path"], _PICTURE)),
            ],
            "judged": judge(pair["confidence"]),
            "reasons": sort_reasons(pair["reasons"], pair["together"]),
            "parsed": compare_parsed(a["parsed"], b["parsed"]),
        }
    return screen.render(request, "matching/review.html", context)


@router.post("/skip", dependencies=[require(Permission.MATCHING)])
async def skip(
    request: Request, form: Annotated[FormInput, fields("a", "b", "skipped", longest=20)], conn: WriteConn
) -> Response:
    """Skips a pair and shows the next one, or puts it back."""
    a, b = (form.parse_int(name, low=1, high=2**63 - 1) for name in ("a", "b"))
    skipped = form.value("skipped") != "no"
    if a is None or b is None:
        raise Refused("the form names no pair")
    await review.skip_review(conn, a, b, skipped=skipped)
    if not skipped:
        return screen.flash_back(request, "The pair is back in the queue.")
    undo = screen.Undo("/matching/skip", [("a", str(a)), ("b", str(b)), ("skipped", "no")])
    return screen.flash_back(request, "Skipped.", undo=undo)


@router.get("/overview")
async def overview(request: Request, conn: ReadConn) -> Response:
    """How much is matched, and how much waits for a person, by category."""
    matched = await review.count_matches(conn)
    waiting = {one.category: one for one in await review.list_categories(conn)}
    rows = [{"category": one.category, "matched": one, "waiting": waiting.pop(one.category, None)} for one in matched]
    rows += [{"category": name, "matched": None, "waiting": one} for name, one in waiting.items()]
    recent = await list_corrections(conn, CorrectionFilter(active=True), limit=5)
    context = {
        "tabs": TABS,
        "tab": "/overview",
        "rows": rows,
        "products": sum(one.products for one in matched),
        "listings": sum(one.listings for one in matched),
        "shared": sum(one.shared for one in matched),
        "pairs": await review.count_reviews(conn, ReviewFilter()),
        "skipped": await review.count_reviews(conn, ReviewFilter(skipped=True)),
        "most": review.MOST_COUNTED,
        "corrections": decoded(recent),
    }
    return screen.render(request, "matching/overview.html", context, live="products")
