"""Screens of matching: what viewers see, hostile names, wrong input, and products that are not matched yet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import httpx
import psycopg
import pytest

from menuwatch.dashboard.pages.matching import judge, mark_words, sort_reasons
from menuwatch.db.pool import Pool
from tests.matching.match_rows import MatchRows

EVIL = '"><script>alert(1)</script>\' onmouseover="alert(1)'


@pytest.fixture
def rows(database_url: str, pool: Pool) -> Iterator[MatchRows]:
    """A pair of one product with hostile names, and a product that is not matched."""
    with psycopg.connect(database_url, autocommit=True) as conn:

        def run(statement: str, values: Any = None) -> list[tuple[Any, ...]]:
            cursor = conn.execute(statement, values)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

        made = MatchRows(run)
        made.brand("Acme", EVIL)
        product = made.canonical(f"Blue Dream {EVIL}", brand="Acme")
        a, b = made.product(f"Blue {EVIL}", brand=EVIL, store="One"), made.product("Blue Dream", store="Two")
        first = made.signature("a", [a], canonical=product)
        reasons = [{"code": "other_words", "detail": EVIL, "weight": -2.0}]
        made.review(
            first,
            made.signature("b", [b], canonical=product, linked_to=first, confidence=0.8, reasons=reasons),
            reasons=reasons,
        )
        made.product("Not matched", store="Three")
        yield made


def _attributes(html: str) -> set[str]:
    """The names of all attributes of a page, as a browser reads it."""
    names: set[str] = set()

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            names.update(name for name, _ in attrs)

    Reader().feed(html)
    return names


def _words(answer: httpx.Response) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", answer.text).split())


PAGES = (
    "/admin/matching", "/admin/matching/corrections", "/admin/matching/brands", "/admin/matching/brands/1", "/admin/matching/overview",
    "/admin/matching/products/1", "/admin/products/1",
)  # fmt: skip


@pytest.mark.parametrize("path", PAGES)
async def test_hostile_names_stay_text(admin: httpx.AsyncClient, rows: MatchRows, path: str) -> None:
    await admin.post("/admin/matching/corrections", data={"a": "1", "b": "3", "same": "no", "note": EVIL})
    answer = await admin.get(path)
    assert answer.status_code == 200, answer.text
    assert "<script>alert" not in answer.text
    assert "onmouseover" not in _attributes(answer.text)


@pytest.mark.parametrize("path", PAGES)
async def test_a_viewer_sees_no_buttons(viewer: httpx.AsyncClient, rows: MatchRows, path: str) -> None:
    answer = await viewer.get(path)
    assert answer.status_code == 200
    assert '/matching/corrections"' not in "".join(re.findall(r'<form[^>]*method="post"[^>]*>', answer.text))
    assert "data-press" not in answer.text


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("corrections", {"a": "1", "b": "2", "same": "yes"}),
        ("corrections/1/withdraw", {}),
        ("skip", {"a": "1", "b": "2"}),
        ("brands/1/merge", {"into": "2"}),
        ("brands/1/unmerge", {}),
        ("brands/1/rename", {"name": "x"}),
        ("brands/1/spellings", {"spelling": "x"}),
    ],
)
async def test_a_viewer_changes_nothing(
    viewer: httpx.AsyncClient, rows: MatchRows, path: str, form: dict[str, str]
) -> None:
    assert (await viewer.post(f"/admin/matching/{path}", data=form)).status_code == 403
    assert rows.sql("SELECT count(*) FROM audit_log") == [(0,)]


@pytest.mark.parametrize(
    "query",
    ["?brand=nothing", "?impact=many", "?now=never", "?skipped=maybe", "?cursor=x", "?category=none"],
)
async def test_filters_that_select_nothing_say_so(admin: httpx.AsyncClient, rows: MatchRows, query: str) -> None:
    answer = await admin.get(f"/admin/matching{query}")
    assert answer.status_code == (200 if query in ("?cursor=x", "?category=none") else 422)
    shown = _words(answer)
    assert {"?cursor=x": "not valid: this is the first page", "?category=none": "No matching pairs"}.get(
        query, "Invalid filters"
    ) in shown


async def test_a_product_says_where_else_it_is(admin: httpx.AsyncClient, rows: MatchRows) -> None:
    text = _words(await admin.get("/admin/products/2"))
    assert "Same product elsewhere 2 listings in 2 stores" in text
    assert "Not matched yet" in _words(await admin.get("/admin/products/3"))
    rows.sql("UPDATE product_matches SET canonical_product_id = NULL WHERE product_id = 1")
    assert "Only here" in _words(await admin.get("/admin/products/2"))


async def test_wrong_ids_are_refused_with_a_message(admin: httpx.AsyncClient, rows: MatchRows) -> None:
    for form in (
        {"a": "x", "b": "2", "same": "yes"},
        {"a": "1", "b": "", "same": "yes"},
        {"a": "1", "b": "2", "same": "?"},
        {"a": "1", "b": "1", "same": "no"},
    ):
        answer = await admin.post("/admin/matching/corrections", data=form)
        assert answer.status_code == 303
    assert rows.sql("SELECT count(*) FROM match_corrections") == [(0,)]
    for path in ("brands/99", "products/99"):
        assert (await admin.get(f"/admin/matching/{path}")).status_code == 404


def test_words_that_differ_are_marked() -> None:
    assert mark_words("LA Kush Cake (K)", "kush-cake") == [
        ("LA", True),
        (" Kush Cake (", False),
        ("K", True),
        (")", False),
    ]
    assert mark_words("Jack's", "jacks") == [("Jack's", False)]
    assert mark_words("", "x") == []
    assert mark_words("🌿", "x") == [("🌿", False)]


@pytest.mark.parametrize(
    ("confidence", "text"),
    [
        (1.0, "almost certainly the same"),
        (0.6, "perhaps the same"),
        (0.5, "undecided"),
        (0.1, "probably different"),
        (0.0, "almost certainly different"),
    ],
)
def test_confidence_in_words(confidence: float, text: str) -> None:
    assert judge(confidence) == text


def test_reasons_are_for_or_against_and_the_strongest_first() -> None:
    reasons = [
        {"code": "shared_words", "weight": 1.0},
        {"code": "same_brand", "weight": 7.0},
        {"code": "other_form"},
        {"code": "same_platform_id"},
        {"code": "other_words", "detail": "la", "weight": -3.0},
        {"code": "person"},
    ]
    found = sort_reasons(reasons, together=False)
    assert [(one["label"], one["strength"]) for one in found["for"]] == [
        ("same id on the platform", "decides"), ("same brand", "strong"), ("shared words", "weak"),
    ]  # fmt: skip
    assert [one["label"] for one in found["against"]] == ["different form", "decided by a person", "different words"]
