"""Brands as people see and edit them: spellings, merges and names. What a person says wins over what the engine learned.

A merged brand keeps its row as a redirect, and its spellings become those of the other brand. Listings of the brands are read again by
the engine, within seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Raw, Struct

from menuwatch.accounts import audit
from menuwatch.catalog.taxonomy.text import clean, slug, words
from menuwatch.core.errors import Conflict, InvalidField, NotFound
from menuwatch.core.shapes import doc, json_of
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all, fetch_one, fetch_structs, like_pattern
from menuwatch.matching import brands

_q = sql.load(__package__, "brand_edits.sql")

MAX_NAME_CHARS = 200
_INTEGER_MAX = 2**31 - 1


class BrandSpelling(Struct, kw_only=True, frozen=True):
    """How menus write a brand."""

    alias: Annotated[str, doc("In comparable form: lower case, no accents, no punctuation.")]
    spelling: Annotated[str, doc("As a menu writes it.")]
    origin: Annotated[
        Literal["spelling", "learned", "person"],
        doc("`spelling`: written differently; `learned` by the matcher; `person`: decided by a person."),
    ]


class MatchedBrand(Struct, kw_only=True, frozen=True):
    """A brand with its spellings."""

    id: int
    slug: str
    name: str
    merged_into: Annotated[int | None, doc("Brand that it was merged into; null if it was not.")]
    merged_into_name: str | None
    spellings: Annotated[Raw, json_of(list[BrandSpelling]), doc("Spellings on menus.")]
    products: Annotated[int, doc("Number of canonical products.")]
    listings: Annotated[int, doc("Number of their listings.")]
    stores: Annotated[int, doc("Number of stores that list one.")]
    key: Annotated[str, doc("Position in the list: its name in lower case.")]


class BrandEdit(Struct, kw_only=True, frozen=True):
    """The result of editing a brand."""

    brand: MatchedBrand
    listings: Annotated[int, doc("Number of listings that the matcher reads again.")]
    spellings: Annotated[list[str], doc("Spellings that moved to another brand.")]


Key = tuple[str, int]


async def list_brands(
    conn: Connection,
    *,
    q: str | None = None,
    merged: bool | None = False,
    after: Key | None = None,
    limit: int = 50,
) -> list[MatchedBrand]:
    """Brands by name after `after`, whose name or a spelling contains `q`. `merged`: those that were merged into others; None: all."""
    key, brand_id = after if after is not None else (None, None)
    pattern = None if q is None else like_pattern(q)
    values = {"id": None, "q": pattern, "merged": merged, "after_key": key, "after_id": brand_id, "limit": limit}
    return await fetch_structs(conn, MatchedBrand, _q.list_brands, values, prepare=False)


async def get_brand(conn: Connection, brand_id: int) -> MatchedBrand:
    """One brand, also one that was merged; raises NotFound."""
    values = {"id": brand_id, "q": None, "merged": None, "after_key": None, "after_id": None, "limit": 1}
    rows = await fetch_structs(conn, MatchedBrand, _q.list_brands, values)
    if not rows:
        raise NotFound(f"brand {brand_id} does not exist: `menuwatch match brands` lists them")
    return rows[0]


async def find_brand(conn: Connection, text: str) -> MatchedBrand:
    """A brand by its id, slug, name or a spelling; raises NotFound, naming similar brands."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 11 else None
    values = {
        "id": number if number is not None and number <= _INTEGER_MAX else None,
        "slug": text.lower(),
        "text": text,
        "alias": " ".join(words(text)),
    }
    row = await fetch_one(conn, _q.find_brand, values)
    if row is None:
        similar = await fetch_all(conn, _q.similar, {"q": like_pattern(text)}, prepare=False)
        hint = f"; did you mean {' or '.join(one['name'] for one in similar)}?" if similar else ""
        raise NotFound(f"there is no brand {text[:100]!r}{hint or ': `menuwatch match brands` lists them'}")
    return await get_brand(conn, row["id"])


async def merge_brands(conn: Connection, brand_id: int, into_id: int) -> BrandEdit:
    """Makes a brand another spelling of `into_id`. Raises NotFound, InvalidField for itself, Conflict for one that was merged."""
    if brand_id == into_id:
        raise InvalidField("into", "a brand cannot be merged into itself: choose another one")
    brand, into = await _locked(conn, brand_id, into_id)
    for one, what in ((brand, "it cannot be merged again"), (into, f"merge into brand {into.merged_into} instead")):
        if one.merged_into is not None:
            raise Conflict(f"{one.name} (brand {one.id}) was merged into {one.merged_into_name}: {what}")
    await conn.execute(_q.merge, {"id": brand.id, "into": into.id})
    moved = await fetch_all(conn, _q.move_aliases, {"id": brand.id, "into": into.id})
    edit = await _finish(conn, into.id, [brand.id], moved)
    await audit.record(
        conn,
        "brand_merged",
        ("brand", brand.id),
        into=into.id,
        name=brand.name,
        into_name=into.name,
        spellings=edit.spellings,
    )
    return edit


async def unmerge_brand(conn: Connection, brand_id: int) -> BrandEdit:
    """Undoes `merge_brands`: the brand gets its spellings back. Raises NotFound, or Conflict if it was not merged."""
    (brand,) = await _locked(conn, brand_id)
    if brand.merged_into is None:
        raise Conflict(f"{brand.name} (brand {brand.id}) was not merged into another brand")
    await conn.execute(_q.merge, {"id": brand.id, "into": None})
    holder = await _final(conn, brand.merged_into)
    moved = await fetch_all(conn, _q.return_aliases, {"id": brand.id, "from": holder})
    edit = await _finish(conn, brand.id, [holder], moved)
    await audit.record(
        conn, "brand_unmerged", ("brand", brand.id), was=brand.merged_into, name=brand.name, spellings=edit.spellings
    )
    return edit


async def move_spelling(
    conn: Connection, spelling: str, *, brand_id: int | None = None, new_brand: str | None = None
) -> BrandEdit:
    """Says which brand a spelling names: an existing one, or a new one of that name. The spelling may be one that no menu has yet.

    Raises InvalidField for a spelling without letters or digits, NotFound, and Conflict for a brand that was merged or exists.
    """
    alias = _alias("spelling", spelling)
    if (brand_id is None) == (new_brand is None):
        raise InvalidField("brand_id", "give either a brand or the name of a new one")
    before = await fetch_one(conn, _q.alias, {"alias": alias})
    if new_brand is not None:
        brand_id = await _insert_brand(conn, new_brand)
    assert brand_id is not None, "checked above"
    (brand,) = await _locked(conn, brand_id)
    if brand.merged_into is not None:
        raise Conflict(
            f"{brand.name} (brand {brand.id}) was merged into {brand.merged_into_name}: use brand {brand.merged_into} instead"
        )
    if before is not None and before["brand_id"] == brand_id:
        raise Conflict(f"{before['spelling']!r} is a spelling of {brand.name} already")
    shown = clean(spelling) if before is None else before["spelling"]
    await conn.execute(_q.put_alias, {"alias": alias, "spelling": shown, "brand_id": brand_id})
    old = [] if before is None else [before["brand_id"]]
    edit = await _finish(conn, brand_id, old, [{"spelling": shown}])
    await audit.record(
        conn,
        "brand_spelling_moved",
        ("brand", brand_id),
        spelling=shown,
        was=None if before is None else before["brand"],
    )
    return edit


async def rename_brand(conn: Connection, brand_id: int, name: str) -> BrandEdit:
    """Changes the name that is shown; its address stays. Raises InvalidField, NotFound, or Conflict if another brand is spelled so."""
    name, alias = clean(name), _alias("name", name)
    (brand,) = await _locked(conn, brand_id)
    other = await fetch_one(conn, _q.alias, {"alias": alias})
    if other is not None and other["brand_id"] != brand_id:
        raise Conflict(
            f"{name!r} is a spelling of {other['brand']} (brand {other['brand_id']}): merge the brands, or move the spelling first"
        )
    await conn.execute(_q.rename, {"id": brand_id, "name": name})
    if other is None:
        await conn.execute(_q.put_alias, {"alias": alias, "spelling": name, "brand_id": brand_id})
    await audit.record(conn, "brand_renamed", ("brand", brand_id), name=name, was=brand.name)
    return BrandEdit(brand=await get_brand(conn, brand_id), listings=0, spellings=[])


def _alias(field: str, text: str) -> str:
    alias = " ".join(words(text))
    if not alias:
        raise InvalidField(field, f"{text[:40]!r} has no letter or digit: a brand needs at least one")
    if len(text) > MAX_NAME_CHARS or not clean(text).isprintable():
        raise InvalidField(field, f"must be text of at most {MAX_NAME_CHARS} characters")
    return alias


async def _insert_brand(conn: Connection, name: str) -> int:
    _alias("new_brand", name)
    row = await fetch_one(conn, _q.insert_brand, {"slug": slug(name), "name": clean(name)})
    if row is None:
        taken = await find_brand(conn, slug(name))
        raise Conflict(f"brand {taken.id} is named {taken.name}: choose it, or give another name")
    return int(row["id"])


async def _locked(conn: Connection, *ids: int) -> Sequence[MatchedBrand]:
    await fetch_all(conn, _q.lock_brands, {"ids": list(ids)})
    return [await get_brand(conn, one) for one in ids]


async def _final(conn: Connection, brand_id: int) -> int:
    """The brand that a merged one leads to."""
    while (into := (await get_brand(conn, brand_id)).merged_into) is not None:
        brand_id = into
    return brand_id


async def _finish(conn: Connection, brand_id: int, old: Iterable[int], moved: Sequence[Row]) -> BrandEdit:
    """Has the engine read the listings that may have another brand now."""
    spellings = [row["spelling"] for row in moved]
    listings = await brands.rematch(conn, map(brands.alias_of, spellings), old)
    return BrandEdit(brand=await get_brand(conn, brand_id), listings=listings, spellings=sorted(spellings))


_spellings = msgspec.json.Decoder(list[BrandSpelling])


def decode_spellings(brand: MatchedBrand) -> list[BrandSpelling]:
    """The spellings of a brand as Structs."""
    return _spellings.decode(brand.spellings)
