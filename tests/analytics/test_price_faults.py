"""What price dispersion and gaps leave out: stale and quarantined menus, slips of a menu, and a single price in a currency."""

from __future__ import annotations

from datetime import timedelta

from menuwatch.analytics.refresh import refresh
from tests.analytics.test_coverage import _ended as ended
from tests.api.shop import Shop, at, item
from tests.matching_rows import add_brand, add_product, listing, match

PRICES = {"a": 10, "b": 12, "c": 11, "d": 13, "slip": 2, "dear": 60.5, "stale": 5, "held": 90, "canada": 20}
"""Of the fresh stores in New Mexico the median is 11.5: a fifth of it is 2.30, five times it 57.50."""


async def test_faults_are_left_out_and_counted(shop: Shop) -> None:
    stores = {}
    for name, price in PRICES.items():
        stores[name] = await shop.store(name, state="ON" if name == "canada" else "NM")
        crawled = await shop.crawl(stores[name], 1 if name == "stale" else 20, [item("k", options=[("1g", price, 5)])])
        await ended(shop, stores[name], 20.1, "completed", crawled)
    quarantined = await shop.archived(stores["held"], 22, b"{}", status="quarantined", reason="small")
    await ended(shop, stores["held"], 22.1, "completed", quarantined)
    async with shop.pool.connection() as conn:
        kush = await add_product(conn, "Kush", await add_brand(conn, "Acme"))
        await match(conn, kush, *[await listing(conn, store, "k") for store in stores.values()])
    await refresh(shop.pool, window=timedelta(days=2), now=at(23))
    rows = await shop.walk("/api/analytics/widest-gaps")
    assert [(row["all_states"], row["state"]) for row in rows] == [(True, None), (False, "NM")]
    for row in rows:
        # 10, 11, 12 and 13; the others have a fault, or another currency.
        assert (row["locations"], row["min"], row["max"], row["median"]) == (4, 10, 13, 11.5)
        assert (row["stale_locations"], row["implausible_locations"], row["currency"]) == (2, 2, "USD")
        assert (row["gap"], row["gap_share"], row["ratio"]) == (3, 0.3, 1.3)
        assert (row["cheapest_dispensary_id"], row["cheapest_store"]) == (stores["a"], "A")
        assert (row["dearest_dispensary_id"], row["dearest_store"]) == (stores["d"], "D")
