"""Brands: merged, undone, spellings moved, renamed; listings are read again."""

from __future__ import annotations

import pytest

from menuwatch.core.errors import Conflict, InvalidField, NotFound
from menuwatch.db.pool import Connection
from menuwatch.matching.brand_edits import (
    decode_spellings,
    find_brand,
    get_brand,
    list_brands,
    merge_brands,
    move_spelling,
    rename_brand,
    unmerge_brand,
)
from tests.matching.match_rows import MatchRows


async def _spellings(conn: Connection, brand_id: int) -> list[tuple[str, str]]:
    return [(one.spelling, one.origin) for one in decode_spellings(await get_brand(conn, brand_id))]


def _listed(rows: MatchRows, brand: str, *names: str) -> list[int]:
    """Listings of a brand, each with a product and a signature of its own."""
    ids = []
    for name in names:
        ids.append(rows.product(name, brand=brand, store=f"Store of {name}"))
        rows.signature(name, ids[-1:], canonical=rows.canonical(name, brand=brand))
    return ids


async def test_a_brand_is_merged_and_its_listings_are_read_again(rows: MatchRows, conn: Connection) -> None:
    old, new = rows.brand("Acme Farms", "Acme Frams"), rows.brand("Acme")
    (moved,), (kept,) = _listed(rows, "Acme Farms", "one"), _listed(rows, "Acme", "two")
    edit = await merge_brands(conn, old, new)
    assert (edit.brand.id, edit.listings, edit.spellings) == (new, 1, ["Acme Farms", "Acme Frams"])
    assert await _spellings(conn, new) == [("Acme", "spelling"), ("Acme Farms", "person"), ("Acme Frams", "person")]
    assert (await get_brand(conn, old)).merged_into == new
    versions = dict(rows.sql("SELECT product_id, source_version FROM product_matches"))
    assert versions == {moved: 8, kept: 7}
    due = rows.sql(
        "SELECT d.name FROM match_stores s JOIN dispensaries d ON d.id = s.dispensary_id WHERE s.rules_version = -2"
    )
    assert due == [("Store of one",)]
    audited = rows.sql("SELECT actor, action, subject_id, details->>'into' FROM audit_log")
    assert audited == [("ann", "brand_merged", str(old), str(new))]
    assert [one.name for one in await list_brands(conn)] == ["Acme"]
    assert [one.name for one in await list_brands(conn, merged=True)] == ["Acme Farms"]


async def test_merges_are_undone_one_by_one(rows: MatchRows, conn: Connection) -> None:
    a, b, c = rows.brand("Aa", "Aaa"), rows.brand("Bb"), rows.brand("Cc")
    await merge_brands(conn, a, b)
    await merge_brands(conn, b, c)
    assert [name for name, _ in await _spellings(conn, c)] == ["Aa", "Aaa", "Bb", "Cc"]
    edit = await unmerge_brand(conn, b)
    assert edit.spellings == ["Aa", "Aaa", "Bb"]
    assert [name for name, _ in await _spellings(conn, c)] == ["Cc"]
    await unmerge_brand(conn, a)
    assert [name for name, _ in await _spellings(conn, a)] == ["Aa", "Aaa"]
    assert [name for name, _ in await _spellings(conn, b)] == ["Bb"]
    with pytest.raises(Conflict, match=r"Aa \(brand 1\) was not merged"):
        await unmerge_brand(conn, a)


async def test_the_first_of_two_merges_can_be_undone_alone(rows: MatchRows, conn: Connection) -> None:
    a, b, c = rows.brand("Aa"), rows.brand("Bb"), rows.brand("Cc")
    await merge_brands(conn, a, b)
    await merge_brands(conn, b, c)
    await unmerge_brand(conn, a)
    assert [name for name, _ in await _spellings(conn, a)] == ["Aa"]
    assert [name for name, _ in await _spellings(conn, c)] == ["Bb", "Cc"]


async def test_what_cannot_be_merged(rows: MatchRows, conn: Connection) -> None:
    a, b, c = rows.brand("Aa"), rows.brand("Bb"), rows.brand("Cc")
    with pytest.raises(InvalidField, match="into itself"):
        await merge_brands(conn, a, a)
    for one, other in ((a, 99), (99, a)):
        with pytest.raises(NotFound, match="brand 99 does not exist"):
            await merge_brands(conn, one, other)
    await merge_brands(conn, a, b)
    with pytest.raises(Conflict, match=r"Aa \(brand 1\) was merged into Bb: it cannot be merged again"):
        await merge_brands(conn, a, c)
    with pytest.raises(Conflict, match="merge into brand 2 instead"):
        await merge_brands(conn, c, a)
    with pytest.raises(Conflict, match="merge into brand 2 instead"):
        await merge_brands(conn, b, a)


async def test_a_spelling_moves_to_another_brand_or_a_new_one(rows: MatchRows, conn: Connection) -> None:
    a, b = rows.brand("Aa", "Aaa"), rows.brand("Bb")
    _listed(rows, "Aa", "one")
    edit = await move_spelling(conn, "  AAA! ", brand_id=b)
    assert (edit.brand.id, edit.listings, edit.spellings) == (b, 1, ["Aaa"])
    assert await _spellings(conn, b) == [("Aaa", "person"), ("Bb", "spelling")]
    new = (await move_spelling(conn, "aaa", new_brand="Triple  Ä")).brand
    assert (new.name, new.slug) == ("Triple Ä", "triple-a")
    assert await _spellings(conn, new.id) == [("Aaa", "person")]
    assert await _spellings(conn, a) == [("Aa", "spelling")]


async def test_a_spelling_that_no_menu_has_yet_is_recorded(rows: MatchRows, conn: Connection) -> None:
    a = rows.brand("Aa")
    edit = await move_spelling(conn, "Double-A", brand_id=a)
    assert (edit.listings, await _spellings(conn, a)) == (0, [("Aa", "spelling"), ("Double-A", "person")])


async def test_listings_with_a_spelling_are_read_again_whatever_their_brand_is(
    rows: MatchRows, conn: Connection
) -> None:
    a = rows.brand("Aa")
    product = rows.product("one", brand="DOUBLE A")
    rows.signature("one", [product], canonical=rows.canonical("one"))
    assert (await move_spelling(conn, "Double A", brand_id=a)).listings == 1


async def test_what_cannot_be_moved(rows: MatchRows, conn: Connection) -> None:
    a, b = rows.brand("Aa"), rows.brand("Bb")
    for empty in ("", "  ", "®", "🌿"):
        with pytest.raises(InvalidField, match="no letter or digit"):
            await move_spelling(conn, empty, brand_id=a)
    with pytest.raises(NotFound, match="brand 99"):
        await move_spelling(conn, "x", brand_id=99)
    with pytest.raises(Conflict, match="'Aa' is a spelling of Aa already"):
        await move_spelling(conn, "aa", brand_id=a)
    with pytest.raises(Conflict, match="brand 2 is named Bb"):
        await move_spelling(conn, "x", new_brand="bb")
    with pytest.raises(InvalidField, match="either"):
        await move_spelling(conn, "x")
    await merge_brands(conn, a, b)
    with pytest.raises(Conflict, match="use brand 2 instead"):
        await move_spelling(conn, "x", brand_id=a)


async def test_a_brand_is_renamed_and_keeps_its_address(rows: MatchRows, conn: Connection) -> None:
    a = rows.brand("Aa")
    rows.brand("Bb", "Bee")
    edit = await rename_brand(conn, a, " Alpha  Farms ")
    assert (edit.brand.name, edit.brand.slug) == ("Alpha Farms", "aa")
    assert (await find_brand(conn, "alpha farms")).id == a
    with pytest.raises(Conflict, match=r"'Bee' is a spelling of Bb \(brand 2\)"):
        await rename_brand(conn, a, "Bee")
    with pytest.raises(InvalidField, match="no letter or digit"):
        await rename_brand(conn, a, "--")
    assert rows.sql("SELECT action, details->>'was' FROM audit_log") == [("brand_renamed", "Aa")]


async def test_brands_are_listed_with_their_counts(rows: MatchRows, conn: Connection) -> None:
    for name in ("Bb", "aa", "Cc"):
        rows.brand(name)
    rows.sql("INSERT INTO brand_aliases VALUES ('sea', 'Sea', 3, 'learned')")
    _listed(rows, "aa", "one", "two")
    found = await list_brands(conn)
    assert [(one.name, one.products, one.listings, one.stores) for one in found] == [
        ("aa", 2, 2, 2),
        ("Bb", 0, 0, 0),
        ("Cc", 0, 0, 0),
    ]
    assert [one.name for one in await list_brands(conn, q="SEA")] == ["Cc"]
    assert [one.name for one in await list_brands(conn, q="100%")] == []
    assert [one.name for one in await list_brands(conn, after=("aa", 2), limit=1)] == ["Bb"]
