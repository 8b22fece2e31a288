"""A store's history made anew from a time on: what came before is as it was, what came later is what a whole rebuilding makes of it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from menuwatch.pipeline.rebuild import Counts, rebuild
from tests.api.shop import Shop, at
from tests.rebuild.stories import lived, parts

NONE = Counts(added=0, removed=0, changed=0)
_LOOKED_AT = {
    "products": "SELECT * FROM catalog_products WHERE dispensary_id = %(id)s ORDER BY id",
    "states": "SELECT s.* FROM product_states s JOIN catalog_products p ON p.id = s.product_id WHERE p.dispensary_id = %(id)s ORDER BY 1, 2",
    "crawls": "SELECT * FROM store_crawls WHERE dispensary_id = %(id)s ORDER BY crawled_at",
    "payloads": "SELECT * FROM raw_crawl_payloads WHERE dispensary_id = %(id)s ORDER BY id",
    "store": "SELECT first_crawled_at, last_crawled_at, last_payload_id, product_count FROM dispensaries WHERE id = %(id)s",
}


async def all_of(shop: Shop, store: int) -> dict[str, list[dict[str, Any]]]:
    """Everything that is known of a store."""
    found = {}
    async with shop.pool.connection() as conn:
        for what, query in _LOOKED_AT.items():
            cursor = await conn.execute(query, {"id": store})
            assert cursor.description is not None
            names = [column.name for column in cursor.description]
            found[what] = [dict(zip(names, row, strict=True)) for row in await cursor.fetchall()]
    return found


@pytest.mark.parametrize("seed", range(6))
async def test_nothing_differs_where_nothing_has_changed(shop: Shop, seed: int) -> None:
    random = Random(seed)
    store = await shop.store()
    await lived(shop, store, random, 14)
    before = await all_of(shop, store)
    for hour in sorted(random.sample(range(15), 6)):
        since = at(hour - random.choice([0, 0.5]))
        found = await rebuild(parts(shop), store, since=since)
        after = await all_of(shop, store)
        assert (found.products, found.states, found.crawls) == (NONE, NONE, NONE), (hour, found)
        assert after == before, hour
