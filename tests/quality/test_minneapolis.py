"""The recorded month of Minneapolis: every look at which a store vanished or halved is a finding of that store."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from menuwatch.db.pool import Pool
from menuwatch.quality import check as checks
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details
from tests.market import add_payload, product
from tests.quality.world import apply

PART = 1 if "ALL_STORES" in os.environ else 13
"""One of so many stores is looked at: `make proofs` looks at all, which takes minutes."""
_CATEGORIES = {"pre-roll": "pre_roll", "cartridge": "vaporizer", "wax": "concentrate"}


def _looks(folder: Path) -> Iterator[tuple[datetime, dict[str, dict[str, Any]]]]:
    """Each look: the menu of each store, by name and weight."""

    def lines(name: str) -> Iterator[Any]:
        with gzip.open(folder / "market" / f"minneapolis_offers_{name}.jsonl.gz", "rt") as file:
            yield from map(json.loads, file)

    rows = list(lines("rows"))
    looks = list(lines("looks"))
    stores = sorted({store for look in looks for _, prices in look["rows"] for store in prices})
    chosen = set(stores[2 % PART :: PART])
    for look in looks:
        menus: dict[str, dict[str, Any]] = {}
        for number, prices in look["rows"]:
            row = rows[number]
            for store, price in prices.items():
                if store not in chosen:
                    continue
                menus.setdefault(store, {})[f"{row['name']}|{row['weight']}"] = (row, price)
        yield datetime.fromisoformat(look["at"]), menus


def _product(key: str, row: dict[str, Any], price: float) -> Any:
    category = _CATEGORIES.get(row["category"], row["category"])
    raw = {
        "id": key[:200],
        "name": row["name"],
        "price": str(price),
        "qty": None,
        "brand": row["brand"],
        "category_canon": category,
    }
    return structs.replace(product(raw), image_url=row["image"])


@pytest.mark.slow
async def test_every_look_at_which_a_store_vanishes_or_halves_is_a_finding(pool: Pool, recorded: Path) -> None:
    """3,000 menus of all 52 stores. A store that a look does not have is one whose menu came empty, which is quarantined."""
    ids: dict[str, int] = {}
    sizes: dict[str, int] = {}
    drops: set[tuple[int, datetime]] = set()
    menus_seen = 0
    async with pool.connection() as conn:
        await conn.set_autocommit(True)
        await conn.execute(
            "SELECT ensure_product_history_partition('2026-04-01'), ensure_product_history_partition('2026-05-01')"
        )
        for at, menus in _looks(recorded):
            for store in sorted(menus.keys() | sizes.keys()):
                if store not in ids:
                    details = Details(platform_dispensary_id=store, slug=store, name=store, name_raw=store)
                    ids[store], _ = await stores.promote(conn, "weedmaps", details)
                menu, before = menus.get(store, {}), sizes.get(store, 0)
                if before and len(menu) <= before / 2:
                    drops.add((ids[store], at))
                if menu:
                    menus_seen += 1
                    await apply(conn, ids[store], "weedmaps", at, [_product(key, *one) for key, one in menu.items()])
                elif before:
                    await add_payload(conn, ids[store], at, 0, "quarantined")
                sizes[store] = len(menu)
            await checks.check(conn, {"weedmaps": 1})
        cursor = await conn.execute(
            "SELECT dispensary_id, opened_at, scope, measure FROM quality_findings WHERE severity <> 'info' ORDER BY id"
        )
        findings = await cursor.fetchall()
    names = {number: name for name, number in ids.items()}
    # 20 stores halved when the recorder's program changed on 7 April; 14 times a store vanished or halved in a single look. The stores
    # that are looked at have their part of both.
    assert menus_seen > 3000 / PART
    assert len(drops) >= 30 / PART
    found = {(store, at): scope for store, at, scope, measure in findings if measure in ("lost", "products")}
    assert {(names[store], str(at)) for store, at in drops - found.keys()} == set()
    changed = [scope for (store, at), scope in found.items() if at.day == 7 and (store, at) in drops]
    assert changed
    assert set(changed) == {"platform"}
    # What else is found are changes at single looks that did happen, such as 76 % of a store's prices at once.
    others = {(store, at) for store, at, *_ in findings if (store, at) not in drops and at.day != 7}
    assert len(others) <= 0.01 * menus_seen
