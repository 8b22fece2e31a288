"""Random stories of a store: menus with products that change, go, come back, cannot be read, stand twice or have no id; parts of
menus; menus that wait in quarantine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import msgspec

from menuwatch.archive import store as payloads
from menuwatch.catalog.model import Batch, LabValue, Product
from menuwatch.core.clock import SystemClock
from menuwatch.pipeline.context import HandlerContext
from menuwatch.pipeline.product_refresh import refresh
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.platforms.model import Normalized
from tests.api.shop import Shop, item, menu


def parts(shop: Shop, **more: Any) -> HandlerContext:
    """What a rebuilding is given; it never touches the network."""

    def no_session(**_: Any) -> Any:
        raise AssertionError("a rebuilding never touches the network")

    given: dict[str, Any] = {
        "pool": shop.pool, "clock": SystemClock(), "archive": shop.archive, "platforms": shop.platforms,
        "open_session": no_session, "suspect_share": 0.4, "blocked_wait": timedelta(seconds=1),
    }  # fmt: skip
    return HandlerContext(**given | more)


@dataclass(slots=True)
class Goods:
    """One product of the shop as it is at the moment."""

    name: str
    price: int = 40
    quantity: int | None = 5
    thc: float = 20.0
    small: bool = False
    """It has a second option."""
    there: bool = True
    odd: bool = False
    """A field of it gives a warning when it is read."""
    lot: int = 0
    """Number of its batch; 0 where the menu names none."""
    sold: int | None = None
    note: int = 0
    """Of no meaning to anybody."""


@dataclass(slots=True)
class Story:
    """A shop that changes from crawl to crawl."""

    random: Random
    goods: dict[str, Goods] = field(default_factory=dict)

    def step(self) -> None:
        """Some time passes."""
        chance = self.random.random
        if not self.goods or (chance() < 0.25 and len(self.goods) < 16):
            for _ in range(8 if not self.goods else 1):
                number = len(self.goods)
                self.goods[f"p{number}"] = Goods(name=f"Product {number}", there=chance() < 0.8)
        for one in self.goods.values():
            one.there = chance() < (0.85 if one.there else 0.3)
            if chance() < 0.15:
                one.price = self.random.choice([25, 30, 35, 40])
            if chance() < 0.15:
                one.quantity = self.random.choice([None, 0, 3, 5, 25])
            if chance() < 0.05:
                one.thc = self.random.choice([18.0, 20.0, 22.5])
            if chance() < 0.1:
                one.name = f"{one.name.split('!')[0]}!{self.random.randrange(3)}"
            if chance() < 0.08:
                one.small = not one.small
            if chance() < 0.08:
                one.odd = not one.odd
            if chance() < 0.12:
                one.lot = self.random.randrange(4)
            if chance() < 0.2:
                one.sold = None if chance() < 0.2 else (one.sold or 0) + 1
            if chance() < 0.08:
                one.note += 1

    def items(self) -> list[dict[str, Any]]:
        """The menu."""
        found = [self._item(key, one) for key, one in self.goods.items() if one.there]
        chance = self.random.random
        for position, one in enumerate(found):
            if chance() < 0.05:
                found[position] = {**one, "Name": None}
        if found and chance() < 0.1:
            found.append(self.random.choice(found))
        if found and chance() < 0.1:
            found.append({**found[0], "recPrices": [19] * len(found[0]["Options"])})
        if chance() < 0.1:
            found.append({"Name": "without an id"})
        self.random.shuffle(found)
        return found

    def _item(self, key: str, one: Goods) -> dict[str, Any]:
        options: list[tuple[str, float | str, int | None]] = [("1/8oz", one.price, one.quantity)]
        if one.small:
            options.append(("1g", one.price / 2.5, 3))
        more = {"strainType": 5} if one.odd else {}
        return item(
            key, one.name, options=options, thc=one.thc, lot=one.lot, sold=one.sold, nobodyReadsThis=one.note, **more
        )


class WithBatches(Dutchie):
    """Dutchie, whose items here name a batch (`lot`) with a terpene and a cannabinoid, and a sold count."""

    def normalize(self, items: Iterable[msgspec.Raw]) -> Normalized:
        kept = list(items)
        raw = {one["id"]: one for one in map(msgspec.json.decode, kept) if "id" in one}
        made = super().normalize(kept)
        return Normalized(
            products=tuple(_with_details(product, raw[product.provider_product_id]) for product in made.products),
            warnings=made.warnings,
        )


def _with_details(product: Product, raw: dict[str, Any]) -> Product:
    lot = raw.get("lot")
    value = (LabValue("Myrcene", Decimal(lot), "%"),) if lot else ()
    return msgspec.structs.replace(
        product,
        batch=Batch(batch_id=f"L-{lot}", tested_on=date(2026, 1, lot), certificate_url=f"https://lab.test/{lot}")
        if lot
        else None,
        terpenes=value,
        cannabinoids=value if lot == 3 else (),
        quantity_sold=raw.get("sold"),
    )


async def lived(shop: Shop, store: int, random: Random, crawls: int, *, pace: float = 1) -> list[int]:
    """Has a store live a story, `pace` hours a crawl; returns its payloads."""
    story = Story(random)
    made = []
    for hour in range(crawls):
        story.step()
        made.append(await crawl(shop, store, hour * pace, story.items(), random=random))
    return made


async def crawl(shop: Shop, store: int, hour: float, items: list[dict[str, Any]], *, random: Random) -> int:
    """One crawl; some are of a part of the menu, some stay in quarantine, some are released by a person."""
    fate = random.random()
    aside = 0.1 < fate < 0.2
    number = await shop.archived(
        store,
        hour,
        menu(items),
        count=len(items),
        status="quarantined" if aside else "ok",
        reason="looks odd" if aside else None,
    )
    if fate < 0.1:
        await shop.execute("UPDATE raw_crawl_payloads SET is_partial = true WHERE id = %s", [number])
    if aside:
        return number
    if not await taken(shop, number) and random.random() < 0.6:
        async with shop.pool.connection() as conn:
            await payloads.release(conn, number)
        await taken(shop, number)
    return number


async def taken(shop: Shop, number: int) -> bool:
    """Applies a payload; says whether it was."""
    async with shop.pool.connection() as conn:
        payload = await payloads.get(conn, number)
    assert payload is not None
    outcome = await refresh(parts(shop), payload)
    assert outcome.writes is not None
    async with shop.pool.connection() as conn, conn.transaction():
        await outcome.writes(conn)
    async with shop.pool.connection() as conn:
        payload = await payloads.get(conn, number)
    assert payload is not None
    return payload.applied_at is not None
