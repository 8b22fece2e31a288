"""A catalog whose menus go through the real apply, and the matcher on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import psycopg
import pytest

from menuwatch.accounts.audit import Actor, actor_context
from menuwatch.db.pool import Connection, Pool
from menuwatch.matching import groups
from menuwatch.matching.correction_keys import sign_listings
from menuwatch.matching.engine import MatchRun, match_all
from menuwatch.matching.judging import Grouper
from menuwatch.matching.model import Listing
from tests import market
from tests.matching.match_rows import MatchRows


@dataclass(slots=True)
class Matched:
    """Stores with menus. Listings are named by their store and the id on its menu."""

    pool: Pool
    group: Grouper = groups.group
    crawls: int = 0
    stores: dict[str, int] = field(default_factory=dict)

    async def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        async with self.pool.connection() as conn:
            cursor = await conn.execute(query.encode(), values or None)
            return await cursor.fetchall() if cursor.description else []

    async def crawl(self, store: str, **names: str | tuple[str, str]) -> None:
        """One menu of a store: the name of each item, or its name and brand; Acme is the brand of the others."""
        pairs = {item: value if isinstance(value, tuple) else (value, "Acme") for item, value in names.items()}
        await self.crawl_items(
            store, {item: {"name": name, "brand": brand or None} for item, (name, brand) in pairs.items()}
        )

    async def crawl_items(self, store: str, items: Mapping[str, Mapping[str, Any]], provider: str = "dutchie") -> None:
        """One menu of a store, as values of `market.item` by the ids of its items."""
        self.crawls += 1
        async with self.pool.connection() as conn:
            if store not in self.stores:
                self.stores[store] = await market.add_store(conn, store)
            menu = [
                market.item(item, **{"category": "flower", "price": str(10 + self.crawls), **values})
                for item, values in items.items()
            ]
            await market.crawl(conn, self.stores[store], self.crawls, menu, trusted=True, provider=provider)

    async def match(self) -> MatchRun:
        return await match_all(self.pool, group=self.group)

    async def refresh(self, store: str, **names: str | tuple[str, str]) -> MatchRun:
        """A menu that is matched at once."""
        await self.crawl(store, **names)
        return await self.match()

    async def numbers(self) -> dict[str, int]:
        """The canonical product of each listing, by `store/item`."""
        query = """SELECT d.slug || '/' || p.provider_product_id, m.canonical_product_id FROM catalog_products p
                     JOIN dispensaries d ON d.id = p.dispensary_id LEFT JOIN product_matches m ON m.product_id = p.id"""
        return dict(await self.rows(query))

    async def product_id(self, name: str) -> int:
        store, item = name.split("/")
        ((number,),) = await self.rows(
            "SELECT id FROM catalog_products WHERE dispensary_id = %s AND provider_product_id = %s",
            self.stores[store],
            item,
        )
        return int(number)

    async def events(self) -> list[tuple[str, int, int, int, str]]:
        return await self.rows("SELECT kind, from_id, to_id, listings, cause FROM match_events ORDER BY id")  # type: ignore[return-value]

    async def correct(self, a: str | tuple[str, str], b: str | tuple[str, str], *, same: bool) -> None:
        """What a person says of two items, each a name or a name and brand, and the marks that go with it."""
        pairs = [value if isinstance(value, tuple) else (value, "Acme") for value in (a, b)]
        listings = [
            Listing(listing_id=str(n), store="x", name=name, brand=brand, category="flower")
            for n, (name, brand) in enumerate(pairs)
        ]
        async with self.pool.connection() as conn, conn.transaction():
            signed = zip(await sign_listings(conn, listings), listings, strict=True)
            (one, first), (two, second) = sorted(signed, key=lambda pair: pair[0].key)
            texts = [msgspec.json.encode(listing).decode() for listing in (first, second)]
            await conn.execute(
                "INSERT INTO match_corrections (same, a_key, b_key, a, b, made_by) VALUES (%s, %s, %s, %s, %s, 'ann')",
                (same, one.key, two.key, *texts),
            )
            await conn.execute(
                "INSERT INTO match_dirty_blocks (block) SELECT DISTINCT unnest(%s::text[]) ON CONFLICT DO NOTHING",
                ([one.block, two.block],),
            )

    async def withdraw_corrections(self) -> None:
        await self.rows("UPDATE match_corrections SET withdrawn_at = now(), withdrawn_by = 'ann'")
        await self.rows("INSERT INTO match_dirty_blocks (block) SELECT DISTINCT block FROM match_signatures")

    async def group_again(self) -> MatchRun:
        """Reads all listings again, and groups all blocks, whether they wait or not."""
        await self.rows("UPDATE product_matches SET source_version = source_version + 1")
        await self.rows("UPDATE match_stores SET rules_version = 0")
        await self.rows("INSERT INTO match_dirty_blocks (block) SELECT DISTINCT block FROM match_signatures")
        return await self.match()


@pytest.fixture
async def matched(pool: Pool) -> Matched:
    async with pool.connection() as conn:
        await conn.execute("SELECT ensure_product_history_partition(%s)", [market.START])
    return Matched(pool)


@pytest.fixture
def rows(database_url: str) -> Iterator[MatchRows]:
    """Writes and reads rows, each statement committed."""
    with psycopg.connect(database_url, autocommit=True) as conn:

        def run(statement: str, values: Any = None) -> list[tuple[Any, ...]]:
            cursor = conn.execute(statement, values)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

        yield MatchRows(run)


@pytest.fixture
async def conn(pool: Pool) -> AsyncIterator[Connection]:
    """A connection of Ann, an operator."""
    with actor_context(Actor(name="ann", kind="user", via="api")):
        async with pool.connection() as opened:
            await opened.set_autocommit(True)
            yield opened
            await opened.set_autocommit(False)
