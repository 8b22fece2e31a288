"""Brands by what menus call them: aliases are resolved before a listing is parsed, and new spellings are learned after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from psycopg import AsyncConnection

from menuwatch.catalog.taxonomy.text import slug, words
from menuwatch.db import sql
from menuwatch.db.query import fetch_structs
from menuwatch.matching.model import Listing, Signature

_q = sql.load(__package__, "brands.sql")

OUTDATED_BY_PERSON = -2
"""`match_stores.rules_version` of a store that is matched again because a person changed an alias."""


class Brand(Struct, kw_only=True, frozen=True):
    """A brand as an alias names it, redirects resolved."""

    alias: str
    id: int
    slug: str
    name: str


def alias_of(spelling: str) -> str:
    """The spelling in comparable form, as in `brand_aliases.alias`; empty if it has no letter or digit."""
    return " ".join(words(spelling))


async def known(conn: AsyncConnection[Any], spellings: Iterable[str | None]) -> dict[str, Brand]:
    """Brands by alias, of the spellings whose brand is known."""
    aliases = sorted({alias for spelling in spellings if spelling and (alias := alias_of(spelling))})
    if not aliases:
        return {}
    return {brand.alias: brand for brand in await fetch_structs(conn, Brand, _q.known, {"aliases": aliases})}


def resolve(listing: Listing, brands: Mapping[str, Brand]) -> Listing:
    """The listing with the name of the brand that its brand is an alias of. A brand's own spellings stay as they are, so that a
    listing is parsed alike before and after its brand is known."""
    brand = brands.get(alias_of(listing.brand)) if listing.brand else None
    if brand is None or listing.brand is None or slug(listing.brand) == brand.slug:
        return listing
    return replace(listing, brand=brand.name)


async def learn(conn: AsyncConnection[Any], signed: Iterable[tuple[Listing, Signature]]) -> None:
    """Adds brands and aliases that the signatures name for the first time. A brand that the parser did not accept as one, such as the
    store's own name, is none."""
    spellings: dict[str, str] = {}
    raw: dict[str, set[str]] = {}
    for listing, signature in signed:
        if not (alias := " ".join(signature.brand)):
            continue
        written = listing.brand.strip() if listing.brand and alias_of(listing.brand) == alias else None
        spellings.setdefault(alias, written or alias.title())
        if written:
            raw.setdefault(alias, set()).add(written)
    found = await known(conn, spellings)
    if new := {alias: slug(alias) for alias in sorted(spellings.keys() - found.keys()) if slug(alias)}:
        by_slug = {brand_slug: spellings[alias] for alias, brand_slug in reversed(new.items())}
        await conn.execute(_q.put_brands, {"slugs": list(by_slug), "names": list(by_slug.values())})
        aliases = {"aliases": list(new), "spellings": [spellings[alias] for alias in new], "slugs": list(new.values())}
        await conn.execute(_q.put_aliases, aliases)
    other = [
        (brand.id, text)
        for alias, brand in found.items()
        for text in sorted(raw.get(alias, ()))
        if text != brand.name and slug(text) == brand.slug
    ]
    if other:
        await conn.execute(_q.rename, {"ids": [i for i, _ in other], "spellings": [text for _, text in other]})


async def rematch(conn: AsyncConnection[Any], aliases: Iterable[str]) -> None:
    """Has the listings whose brand is written as one of `aliases` matched again. To be called in the transaction that changes their
    brand."""
    wanted = set(aliases)
    rows = await (await conn.execute(_q.spellings)).fetchall()
    spellings = [name for (name,) in rows if alias_of(name) in wanted]
    if spellings:
        await conn.execute(_q.rematch_stores, {"spellings": spellings, "mark": OUTDATED_BY_PERSON})
