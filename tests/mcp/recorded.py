"""The recorded market of New Mexico and menus of other platforms, and the same read by the tests' own readers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from menuwatch.analytics.refresh import refresh
from menuwatch.db.pool import Pool
from menuwatch.matching.engine import match_all
from menuwatch.pipeline.context import store_details
from menuwatch.pipeline.replay import replay
from menuwatch.platforms.weedmaps.adapter import found_store, read_stores
from menuwatch.quality.check import check
from menuwatch.stores import store as stores
from tests.recorded import sweed, weedmaps
from tests.recorded.plain import read
from tests.recorded.replayed import replay_context
from tests.recorded.test_recorded_menus import menus_in

MENUS = "weedmaps/nm_menus_2024-05.tar.gz"
LISTINGS = "market/nm_weedmaps_listings.jsonl"
SWEED = "sweed/GetProductList_2025-12-31.json"


@dataclass(frozen=True, slots=True)
class Recorded:
    """Listings by their id, the products of each menu as the readers of the tests have them, by (listing, item), and the listings
    whose menu has more products than were recorded."""

    listings: dict[str, dict[str, Any]]
    goods: dict[tuple[str, str], dict[str, Any]]
    partial: set[str]
    sweed: dict[str, dict[str, Any]]

    def menu(self, listing: str) -> list[dict[str, Any]]:
        return [product for (store, _), product in self.goods.items() if store == listing]

    @property
    def crawled(self) -> set[str]:
        return {store for store, _ in self.goods}

    def known(self) -> set[str]:
        """Stores of New Mexico: the listings, and those of menus that are in none."""
        return self.listings.keys() | self.crawled


def paid(option: dict[str, Any], *, medical: bool = True) -> Decimal | None:
    """What an option costs, specials included; the medical price only without another one."""
    for special, regular in (("special_rec", "price_rec"), ("special_med", "price_med")):
        prices = [option[name] for name in (special, regular) if option[name] is not None]
        if prices:
            return min(prices)
        if not medical:
            return None
    return None


def cheapest(product: dict[str, Any]) -> Decimal | None:
    """The price of the cheapest option."""
    return min((price for one in product["variants"] if (price := paid(one)) is not None), default=None)


def offered(product: dict[str, Any]) -> list[dict[str, Any]]:
    """Options that are not out of stock."""
    if product["stock_status"] == "oos":
        return []
    return [one for one in product["variants"] if one["stock_status"] != "oos"]


def read_recording(folder: Path) -> Recorded:
    """The recording, read by hand."""
    lines = (folder / LISTINGS).read_bytes().splitlines()
    goods, partial = {}, set()
    for menu in menus_in(folder / MENUS).values():
        for item in menu["data"]:
            goods[str(item["relationships"]["listing"]["data"]["id"]), str(item["id"])] = weedmaps.product(item)
            if len(menu["data"]) < menu["meta"]["total"]:
                partial.add(str(item["relationships"]["listing"]["data"]["id"]))
    raw = read((folder / SWEED).read_bytes())["data"]
    return Recorded(
        listings={str(one["id"]): one for one in map(json.loads, lines)},
        goods=goods,
        partial=partial,
        sweed=sweed.products(raw["list"], raw["promos"]),
    )


async def take_in(pool: Pool, folder: Path, archive: Path, *, has_menus: bool = False) -> None:
    """Puts the recording into the database: stores as discovery lists them, then the menus of New Mexico unless it has them, and one
    more, matched, refreshed and checked."""
    lines = (folder / LISTINGS).read_bytes().splitlines()
    body = b'{"meta":{"total_listings":%d},"data":{"listings":[%b]}}' % (len(lines), b",".join(lines))
    async with pool.connection() as conn:
        for record in read_stores(body):
            await stores.promote(conn, "weedmaps", store_details(found_store(record)))
    context = replay_context(pool, archive)
    if not has_menus:
        await replay(context, None, [folder / MENUS], state="NM")
    await replay(context, None, [folder / SWEED], store="gleaf", state="MD")
    await match_all(pool)
    await refresh(pool, window=timedelta(days=1))
    async with pool.connection() as conn:
        await check(conn, {name: one.normalizer_version for name, one in context.platforms.items()})
