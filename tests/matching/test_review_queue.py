"""The review queue: its order, filters and pages, and what leaves it."""

from __future__ import annotations

import msgspec
import pytest

from menuwatch.core.errors import Conflict, NotFound
from menuwatch.db.pool import Connection
from menuwatch.matching.corrections import correct, withdraw
from menuwatch.matching.review import (
    ReviewFilter,
    count_matches,
    count_reviews,
    decode_side,
    list_categories,
    list_reviews,
    skip_review,
)
from tests.matching.match_rows import MatchRows


async def _words(conn: Connection, where: ReviewFilter | None = None) -> list[str]:
    """The words of the left sides, in the order of the queue."""
    page = await list_reviews(conn, where or ReviewFilter())
    return [" ".join(decode_side(one.a).parsed.words) for one in page.items]


def _pair(rows: MatchRows, word: str, *, confidence: float, impact: int, category: str = "flower", together: bool = False,
          canonical: int | None = None) -> list[int]:  # fmt: skip
    ids = [rows.product(f"{word} {n}", store=f"Store {n}", category=category) for n in (1, 2)]
    first = rows.signature(word, ids[:1], category=category, canonical=canonical)
    rows.review(
        first,
        rows.signature(f"{word} b", ids[1:], category=category),
        confidence=confidence,
        impact=impact,
        together=together,
    )
    return ids


async def test_doubtful_and_much_used_pairs_come_first(rows: MatchRows, conn: Connection) -> None:
    # (0.5 - |confidence - 0.5|) × ln(1 + impact): 0.5 × ln 3 = 0.55, 0.2 × ln 101 = 0.92, 0.1 × ln 101 = 0.46
    _pair(rows, "medium", confidence=0.5, impact=2)
    _pair(rows, "first", confidence=0.8, impact=100)
    _pair(rows, "last", confidence=0.1, impact=100)
    assert await _words(conn) == ["first", "medium", "last"]
    assert await count_reviews(conn, ReviewFilter()) == 3


async def test_pages_follow_each_other(rows: MatchRows, conn: Connection) -> None:
    for n in range(5):
        _pair(rows, f"pair{n}", confidence=0.5, impact=7)  # all alike: only the ids tell them apart
    seen, after = [], None
    for _ in range(3):
        page = await list_reviews(conn, ReviewFilter(), after=after, limit=2)
        seen += [" ".join(decode_side(one.a).parsed.words) for one in page.items]
        # A cursor is JSON.
        after = (
            None
            if page.next is None
            else msgspec.json.decode(msgspec.json.encode(page.next), type=tuple[float, int, int])
        )
    assert seen == [f"pair{n}" for n in range(5)]
    assert after is None


async def test_a_side_is_shown_by_a_listing_with_a_picture(rows: MatchRows, conn: Connection) -> None:
    gone, plain, pictured = (rows.product("Blue Dream", store=f"Store {n}", price=30 + n) for n in range(3))
    rows.sql("UPDATE catalog_products SET local_image_path = 'a/b.webp' WHERE id IN (%s, %s)", [gone, pictured])
    rows.sql("UPDATE catalog_products SET last_seen_at = now() WHERE id = %s", [gone])
    other = rows.product("Blue Dreem", store="Store 0", price=99)
    product = rows.canonical("Blue Dream")
    one = rows.signature("blue dream", [gone, plain, pictured], canonical=product)
    rows.review(
        one, rows.signature("blue dreem", [other]), reasons=[{"code": "spelling", "detail": "dream", "weight": 3.5}]
    )
    (found,) = (await list_reviews(conn, ReviewFilter())).items
    a, b = decode_side(found.a), decode_side(found.b)
    assert (a.product_id, a.local_image_path, str(a.price), a.store, a.listings, a.stores) == (
        pictured, "a/b.webp", "32", "Store 2", 3, 3,
    )  # fmt: skip
    assert (a.canonical_product_id, a.sizes, a.parsed.words) == (product, ["3.5 g"], ("blue", "dream"))
    assert (b.product_id, b.listings, b.canonical_product_id, b.local_image_path) == (other, 1, None, None)
    assert msgspec.json.decode(found.reasons) == [{"code": "spelling", "detail": "dream", "weight": 3.5}]


async def test_filters(rows: MatchRows, conn: Connection) -> None:
    rows.brand("Acme Farms", "Acme")
    product = rows.canonical("Acme One", brand="Acme Farms")
    _pair(rows, "one", confidence=0.5, impact=2, canonical=product)
    _pair(rows, "two", confidence=0.5, impact=9, category="vaporizer", together=True)
    assert await _words(conn, ReviewFilter(category="vaporizer")) == ["two"]
    assert await _words(conn, ReviewFilter(together=False)) == ["one"]
    assert await _words(conn, ReviewFilter(min_impact=3)) == ["two"]
    for spelling in ("acme farms", "ACME", str(rows.brands["Acme Farms"]), "acme-farms"):
        assert await _words(conn, ReviewFilter(brand=spelling)) == ["one"], spelling
    with pytest.raises(NotFound, match=r"there is no brand 'farm'; did you mean Acme Farms\?"):
        await _words(conn, ReviewFilter(brand="farm"))
    assert [(one.category, one.pairs, one.together) for one in await list_categories(conn)] == [
        ("flower", 1, 0),
        ("vaporizer", 1, 1),
    ]


async def test_a_corrected_pair_leaves_the_queue_until_it_is_withdrawn(rows: MatchRows, conn: Connection) -> None:
    ids = _pair(rows, "one", confidence=0.5, impact=2)
    await correct(conn, ids[1], ids[0], False)
    assert (await _words(conn), await count_reviews(conn, ReviewFilter())) == ([], 0)
    await withdraw(conn, 1)
    assert await _words(conn) == ["one"]


async def test_a_pair_is_skipped_and_put_back(rows: MatchRows, conn: Connection) -> None:
    ids = _pair(rows, "one", confidence=0.5, impact=2)
    await skip_review(conn, ids[1], ids[0])
    assert (await _words(conn), await _words(conn, ReviewFilter(skipped=True))) == ([], ["one"])
    await skip_review(conn, *ids, skipped=False)
    assert await _words(conn) == ["one"]
    assert rows.sql("SELECT action FROM audit_log ORDER BY id") == [
        ("match_review_skipped",),
        ("match_review_unskipped",),
    ]


async def test_what_cannot_be_skipped(rows: MatchRows, conn: Connection) -> None:
    a, b = rows.written("one", "two")
    with pytest.raises(NotFound, match="not a pair to review"):
        await skip_review(conn, a, b)
    with pytest.raises(Conflict, match="not matched yet cannot be skipped"):
        await skip_review(conn, a, rows.product("new"))


async def test_a_pair_without_listings_is_not_shown(rows: MatchRows, conn: Connection) -> None:
    ids = _pair(rows, "one", confidence=0.5, impact=2)
    rows.sql("DELETE FROM product_matches WHERE product_id = %s", [ids[0]])
    assert (await _words(conn), await count_reviews(conn, ReviewFilter())) == ([], 0)


async def test_matches_are_counted_by_category(rows: MatchRows, conn: Connection) -> None:
    shared, alone, empty = (
        rows.canonical("Shared"),
        rows.canonical("Alone"),
        rows.canonical("Empty", category="vaporizer"),
    )
    rows.written("one", "two", canonical=(shared, shared))
    rows.signature("three", [rows.product("three")], canonical=alone)
    assert empty
    assert [
        (one.category, one.products, one.listings, one.shared, one.shared_listings) for one in await count_matches(conn)
    ] == [("flower", 2, 3, 1, 2)]
