"""Injects faults of fourteen kinds at ten severities, at a store, a chain, a platform and by a release, and counts what is found."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from menuwatch.quality import check as checks
from tests.quality import world
from tests.quality.world import Shop, World

NORMALIZERS = {"weedmaps": 1, "jane": 1, "dutchie": 1}


@dataclass
class Result:
    """Counts of one proof. `above` are faults (one store each) above their stated size; `right` those attributed to their scope."""

    above: int = 0
    found: int = 0
    right: int = 0
    scoped: int = 0
    missed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


async def alarms(conn: Any, shops: Sequence[Shop] | None = None) -> list[tuple[Any, ...]]:
    """Findings of severity warning or critical."""
    rows = await conn.execute(
        "SELECT dispensary_id, measure, scope, scope_key, opened_at, value, low, high FROM quality_findings WHERE severity <> 'info'"
        " ORDER BY opened_at, id"
    )
    ids = None if shops is None else {shop.id for shop in shops}
    return [row for row in await rows.fetchall() if ids is None or row[0] in ids]


async def history(conn: Any, real: World, crawls: int) -> None:
    """So many crawls of all shops without a fault, checked one by one."""
    for _ in range(crawls):
        await real.crawl(conn)
        await checks.check(conn, NORMALIZERS)


SCOPES = ("store", "chain", "platform", "normalizer")


def members(real: World, scope: str, rng: Random) -> tuple[list[Shop], str | None]:
    """The shops that a fault of this scope is at, and the key of the scope."""
    if scope == "store":
        return [rng.choice(real.shops)], None
    if scope == "chain":
        first = rng.choice([shop for shop in real.shops if shop.chain is not None])
        return [shop for shop in real.shops if shop.chain == first.chain], f"{first.platform}:{first.chain}"
    platform = rng.choice(sorted({shop.platform for shop in real.shops}))
    return [shop for shop in real.shops if shop.platform == platform], platform


async def incident(conn: Any, real: World, kind: str, severity: float, scope: str, rng: Random, result: Result) -> None:
    """Crawls all shops once with the fault at some of them, compares findings with what was done, and takes it all back."""
    chosen, key = members(real, scope, rng)
    ids = {shop.id for shop in chosen}
    expected: set[int] = set()
    state = copy.deepcopy((real.rng, real.crawls)), [(shop.menu, shop.last) for shop in real.shops]

    def fault(shop: Shop, menu: list[Any]) -> list[Any]:
        if shop.id not in ids:
            return menu
        bad = world.inject(kind, severity, menu)
        if world.shows(kind, severity, shop.last, menu, bad):
            expected.add(shop.id)
        return bad

    normalizers = {**NORMALIZERS, key or "": 2} if scope == "normalizer" else NORMALIZERS
    async with conn.transaction(force_rollback=True):
        await real.crawl(conn, fault)
        await checks.check(conn, normalizers)
        prefixes = world.measures_of(kind)
        since = world.START + world.timedelta(days=real.crawls)
        seen = {
            row[0]: row for row in reversed(await alarms(conn)) if row[1].startswith(prefixes) and row[4] >= since and row[0] in ids
        }  # fmt: skip
    (real.rng, real.crawls), menus = state
    for shop, (menu, last) in zip(real.shops, menus, strict=True):
        shop.menu, shop.last = menu, last
    result.above += len(expected)
    result.found += len(expected & seen.keys())
    result.missed += [f"{kind} {severity} {scope} at {one}" for one in sorted(expected - seen.keys())]
    # A fault is one of its scope where at least 60 % of its stores, and as many as the scope needs, show it.
    if len(expected) < max(0.6 * len(chosen), {"store": 1, "chain": 2}.get(scope, 3)):
        return
    for store_id in expected & seen.keys():
        result.scoped += 1
        if seen[store_id][2] == scope and seen[store_id][3] == key:
            result.right += 1
        else:
            result.wrong.append(f"{kind} {severity} {scope} {key}: {seen[store_id][1:4]}")
