"""Brands by their spellings on menus: aliases are resolved before a listing is parsed, and new spellings are learned afterwards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec.structs import replace
from psycopg import AsyncConnection

from menuwatch.catalog.taxonomy.text import slug, words
from menuwatch.db import sql
from menuwatch.matching.brand_names import KnownBrands, brand_core, brand_named_in, words_of_brand
from menuwatch.matching.model import Listing, Signature
from menuwatch.matching.names import sign

_q = sql.load(__package__, "brands.sql")

OUTDATED_BY_PERSON = -2
"""`match_stores.rules_version` of a store that is matched again because a person changed an alias."""


def alias_of(spelling: str) -> str:
    """The spelling in comparable form, as in `brand_aliases.alias`; empty if it has no letter or digit."""
    return " ".join(words(spelling))


def slug_of(core: Sequence[str]) -> str:
    """The slug that the brand with these words was made with."""
    return slug(" ".join(core))


@dataclass(slots=True)
class BrandIndex:
    """The brands that listings are parsed with."""

    state: str | None = None
    known: KnownBrands = field(default_factory=KnownBrands)
    """Brands that some menu names in its brand field."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Words of brands' slugs by their aliases that people made spellings of other brands. Their names may be other ones."""

    async def load(self, conn: AsyncConnection[Any]) -> None:
        """Reads the brands again if some were changed."""
        row = await (await conn.execute(_q.state)).fetchone()
        assert row is not None, "an aggregate returns one row"
        if row[0] == self.state:
            return
        cores: list[tuple[str, ...]] = []
        self.renamed = {}
        for alias, origin, brand_slug in await (await conn.execute(_q.aliases)).fetchall():
            # A brand's own words are its core as they are: read again as a spelling they might lose one more.
            core = tuple(alias.split()) if slug(alias) == brand_slug else brand_core(alias)
            if origin != "learned":
                cores.append(core)
            if slug_of(core) != brand_slug:
                self.renamed[alias] = brand_slug.replace("-", " ")
        self.known, self.state = KnownBrands.of(cores), row[0]

    def sign(self, listing: Listing) -> tuple[Listing, Signature]:
        """The listing with the name of its brand, and its signature. A brand's own spellings stay as they are, so that a listing is
        parsed alike before and after its brand is known."""
        if listing.brand and (name := self.renamed.get(alias_of(listing.brand))) is not None:
            listing = replace(listing, brand=name)
        signature = sign(listing, self.known)
        if (name := self.renamed.get(" ".join(signature.brand))) is not None:
            listing = replace(listing, brand=name)
            signature = sign(listing, self.known)
        return listing, signature

    def add(self, cores: Iterable[tuple[str, ...]]) -> Mapping[str, frozenset[tuple[str, ...]]]:
        """Adds brands, and returns those that names may begin with and did not before, by their first word."""
        new = {
            first: found
            for first, cores_of in KnownBrands.of(cores).by_first.items()
            if (found := cores_of - self.known.by_first.get(first, frozenset()))
        }
        before = self.known.by_first
        self.known = KnownBrands({**before, **{first: before.get(first, frozenset()) | new[first] for first in new}})
        return new


@dataclass(slots=True)
class Spellings:
    """How many listings of the catalog have each spelling of a brand, counted once for all stores that wait."""

    menus: Mapping[int, datetime] = field(default_factory=dict)
    """When the menus were fetched that stores had before anything was counted."""
    listings: dict[str, int] = field(default_factory=dict)

    def cover(self, menus: Mapping[int, datetime]) -> bool:
        """Whether these menus are counted."""
        return all(self.menus.get(store) == at for store, at in menus.items())

    async def count(self, conn: AsyncConnection[Any], spellings: Iterable[str]) -> None:
        """Counts those that are not counted yet."""
        if new := sorted(set(spellings) - self.listings.keys()):
            cursor = await conn.execute(_q.count_spellings, {"spellings": new}, prepare=False)
            self.listings.update(await cursor.fetchall())


async def learn(conn: AsyncConnection[Any], signed: Iterable[tuple[Listing, Signature]], counted: Spellings) -> None:
    """Adds brands and aliases that these listings name for the first time. What only names begin with is a `learned` alias until some
    menu has it in its brand field."""
    aliases: dict[str, tuple[str, str, str]] = {}
    written_as: dict[str, set[str]] = defaultdict(set)
    for listing, signature in signed:
        if listing.brand and (brand_slug := slug_of(core := brand_core(listing.brand))):
            written = listing.brand.strip()
            written_as[brand_slug].add(written)
            for alias in (" ".join(core), alias_of(written)):
                if aliases.get(alias, ("", "", "learned"))[2] == "learned":
                    aliases[alias] = (written, brand_slug, "spelling")
        if signature.brand and (brand_slug := slug_of(signature.brand)):
            alias = " ".join(signature.brand)
            aliases.setdefault(alias, (alias.title(), brand_slug, "learned"))
    if not aliases:
        return
    known = dict(await (await conn.execute(_q.origins, {"aliases": sorted(aliases)})).fetchall())
    new = {
        alias: one
        for alias, one in sorted(aliases.items())
        if alias not in known or (known[alias] == "learned" and one[2] == "spelling")
    }
    if new:
        names = {brand_slug: name for name, brand_slug, _ in reversed(new.values())}
        await conn.execute(_q.put_brands, {"slugs": list(names), "names": list(names.values())})
        spellings, slugs, origins = zip(*new.values(), strict=True)
        values = {"aliases": list(new), "spellings": list(spellings), "slugs": list(slugs), "origins": list(origins)}
        await conn.execute(_q.put_aliases, values)
    await _rename(conn, written_as, counted)


async def _rename(conn: AsyncConnection[Any], written_as: Mapping[str, set[str]], counted: Spellings) -> None:
    """Calls brands as most listings write them, unless a person named them. `written_as` has spellings by slugs."""
    if not written_as:
        return
    cursor = await conn.execute(_q.brand_names, {"slugs": list(written_as)})
    named = {one: name for one, name in await cursor.fetchall() if written_as[one] - {name}}
    await counted.count(conn, (one for brand, name in named.items() for one in (name, *written_as[brand])))
    renamed = {}
    for brand, name in named.items():
        best = min(written_as[brand], key=lambda one: (-counted.listings[one], one))
        if counted.listings[best] > counted.listings[name]:
            renamed[brand] = best
    if renamed:
        await conn.execute(_q.rename, {"slugs": list(renamed), "names": list(renamed.values())})


async def rematch_names(conn: AsyncConnection[Any], new: Mapping[str, frozenset[tuple[str, ...]]]) -> None:
    """Outdates listings whose brand is read from the name, and whose names contain one of these brands (by their first words)."""
    if not new:
        return
    known = KnownBrands(new)
    spelled = {"words": [word for first in sorted(new) for word in words_of_brand(first)]}
    rows = await (await conn.execute(_q.names, spelled, prepare=False)).fetchall()
    if ids := [number for number, name in rows if brand_named_in(name, known)]:
        await conn.execute(_q.rematch_products, {"ids": ids})


async def rematch(conn: AsyncConnection[Any], aliases: Iterable[str], brand_ids: Iterable[int] = ()) -> int:
    """Has the listings whose brand is written as one of `aliases`, or whose product is of one of these brands, matched again; returns
    how many. To be called in the transaction that changes their brand."""
    wanted = set(aliases)
    rows = await (await conn.execute(_q.spellings)).fetchall()
    spellings = [name for (name,) in rows if alias_of(name) in wanted or " ".join(brand_core(name)) in wanted]
    values = {"spellings": spellings, "brands": list(brand_ids), "mark": OUTDATED_BY_PERSON}
    row = await (await conn.execute(_q.rematch_stores, values, prepare=False)).fetchone()
    assert row is not None, "an aggregate returns one row"
    return int(row[0])
