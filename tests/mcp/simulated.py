"""A simulated market with a ledger: what every store asked for every size on every day.

Expected answers are worked out from the ledger alone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from random import Random

from menuwatch.analytics.refresh import refresh
from menuwatch.catalog.model import Product, Variant
from menuwatch.db.pool import Pool
from menuwatch.matching.engine import match_all
from menuwatch.matching.locations.engine import match_locations
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details
from tests.quality.world import apply

DAYS = 10
# Name, city, state, latitude, longitude. The last one is never crawled.
STORES = (
    ("Alpha Greens", "Santa Fe", "NM", 35.6870, -105.9378),
    ("Bravo Botanicals", "Santa Fe", "NM", 35.6500, -105.9900),
    ("Charlie Cannabis", "Albuquerque", "NM", 35.0844, -106.6504),
    ("Delta Dispensary", "Albuquerque", "NM", 35.1100, -106.6000),
    ("Echo Extracts", "Las Cruces", "NM", 32.3199, -106.7637),
    ("Foxtrot Flower", "Denver", "CO", 39.7392, -104.9903),
    ("Golf Gardens", "Boulder", "CO", 40.0150, -105.2705),
    ("Hotel Herbs", "Pueblo", "CO", 38.2544, -104.6091),
)
CRAWLED = 7
# Brand, product, category, base price of each size by its grams.
GOODS = (
    ("Mesa Farms", "Sunset Sherbert", "flower", {"3.5 g": 35, "7 g": 62}),
    ("Mesa Farms", "Granite Kush", "flower", {"3.5 g": 38}),
    ("Mesa Farms", "Piñon Haze", "flower", {"1 g": 12, "3.5 g": 33}),
    ("Rio Verde", "Turquoise Dream", "flower", {"3.5 g": 41}),
    ("Rio Verde", "Canyon Glue", "concentrate", {"1 g": 28}),
    ("Rio Verde", "Arroyo Resin", "concentrate", {"1 g": 33}),
    ("Luna Labs", "Moonrock Diamonds", "concentrate", {"1 g": 47}),
    ("Luna Labs", "Comet Cartridge", "vaporizer", {"0.5 g": 24, "1 g": 39}),
    ("Luna Labs", "Eclipse Disposable", "vaporizer", {"1 g": 44}),
    ("Zia Rolls", "Desert Joint", "preroll", {"1 g": 8}),
    ("Zia Rolls", "Mesquite Blunt", "preroll", {"1 g": 11}),
    ("Zia Rolls", "Juniper Pack", "preroll", {"3.5 g": 26}),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """An item of a store on a day: (regular price, special or None) by size, and whether it is in stock."""

    prices: dict[str, tuple[Decimal, Decimal | None]]
    in_stock: bool

    def paid(self, size: str) -> Decimal:
        regular, special = self.prices[size]
        return regular if special is None else special

    @property
    def cheapest(self) -> Decimal:
        return min(self.paid(size) for size in self.prices)


@dataclass(slots=True)
class Ledger:
    """What was on the menu of a store, by (store, item, day); stores and items by their places above."""

    now: datetime
    seen: dict[tuple[int, int, int], Seen] = field(default_factory=dict)
    store_ids: list[int] = field(default_factory=list)

    def crawled_at(self, store: int, day: int) -> datetime:
        return self.now - timedelta(days=DAYS - 1 - day, hours=1) + timedelta(minutes=store)

    def day(self, number: int) -> date:
        """The UTC date of the refresh of a day."""
        return (self.refreshed_at(number)).date()

    def refreshed_at(self, day: int) -> datetime:
        return self.now - timedelta(days=DAYS - 1 - day, minutes=30)

    def menu(self, store: int, day: int) -> dict[int, Seen]:
        return {item: self.seen[store, item, day] for item in range(len(GOODS)) if (store, item, day) in self.seen}

    def last(self, state: str | None = None) -> Iterator[tuple[int, int, Seen]]:
        """(store, item, what was seen) of the last day."""
        for (store, item, day), seen in self.seen.items():
            if day == DAYS - 1 and state in (None, STORES[store][2]):
                yield store, item, seen

    def states(self, store: int, item: int) -> list[tuple[datetime, Seen | None]]:
        """The times at which the item changed, with what it changed to; None is absent for the third time in a row."""
        found: list[tuple[datetime, Seen | None]] = []
        misses = 0
        for day in range(DAYS):
            seen = self.seen.get((store, item, day))
            misses = 0 if seen is not None else misses + 1
            if seen is None and (misses != 3 or not found):
                continue
            if not found or found[-1][1] != seen:
                found.append((self.crawled_at(store, day), seen))
        return found

    def changes(self) -> list[tuple[datetime, int, int, Seen | None, Seen | None]]:
        """(time, store, item, before, after) of every change of prices or stock."""
        return [
            (after[0], store, item, before[1], after[1])
            for store in range(CRAWLED)
            for item in range(len(GOODS))
            for before, after in pairwise(self.states(store, item))
        ]

    def index(self, state: str, days: Sequence[int]) -> list[float]:
        """The chained geometric index, 100 on the first of the days, of a state whose items are never out of stock."""
        level, levels = 0.0, [100.0]
        for before, after in pairwise(days):
            moves = [
                math.log(self.seen[store, item, after].paid(size) / self.seen[store, item, before].paid(size))
                for (store, item, day), seen in self.seen.items()
                if day == after and STORES[store][2] == state and (store, item, before) in self.seen
                for size in seen.prices
            ]
            level += sum(moves) / len(moves)
            levels.append(100 * math.exp(level))
        return levels


def make(now: datetime, seed: int = 13) -> Ledger:
    """The market. Stock changes only in New Mexico, so that the index of Colorado is that of all items."""
    rng, ledger = Random(seed), Ledger(now)
    for store in range(CRAWLED):
        level = rng.choice((0.9, 1.0, 1.15, 1.3))
        for item, (_, _, _, sizes) in enumerate(GOODS):
            if rng.random() < 0.2 and (store, item) not in ((0, 0), (1, 0), (2, 0), (3, 0), (5, 3), (6, 3)):
                continue  # not sold here
            prices = {size: _cents(base * level * rng.uniform(0.95, 1.05)) for size, base in sizes.items()}
            out_from = rng.randrange(2, DAYS) if STORES[store][2] == "NM" and rng.random() < 0.2 else None
            out_to = DAYS if out_from is None else out_from + rng.randrange(1, 4)
            gone = 5 if (store, item) == (0, 1) else None
            comes = 6 if (store, item) in ((2, 5), (4, 8)) else 0
            for day in range(DAYS):
                if day and rng.random() < 0.12:
                    factor = rng.choice((0.85, 0.93, 1.05, 1.12))
                    prices = {size: _cents(float(price) * factor) for size, price in prices.items()}
                special = rng.random() < 0.1
                stock = not (out_from is not None and out_from <= day < out_to)
                if (gone is not None and day >= gone) or day < comes:
                    continue
                ledger.seen[store, item, day] = Seen(
                    {size: (price, _cents(float(price) * 0.8) if special else None) for size, price in prices.items()},
                    stock,
                )
    return ledger


def _cents(value: float) -> Decimal:
    return Decimal(f"{value:.2f}")


def _product(item: int, seen: Seen) -> Product:
    brand, name, category, _ = GOODS[item]
    status = "in_stock" if seen.in_stock else "oos"
    variants = tuple(
        Variant(
            option=size,
            price_rec=regular,
            special_rec=special,
            quantity=5 if seen.in_stock else 0,
            stock_status=status,
            weight_g=(grams := Decimal(size.removesuffix(" g"))),
            price_per_g=round((regular if special is None else special) / grams, 4),
        )
        for size, (regular, special) in seen.prices.items()
    )
    specials = [special for _, special in seen.prices.values() if special is not None]
    return Product(
        provider_product_id=f"item-{item}", name_raw=name, name=name, brand_name_raw=brand, brand_name=brand, category=category,
        subcategory=None, strain_type=None, status_raw="Active", variants=variants,
        price_rec=min(regular for regular, _ in seen.prices.values()), price_rec_special=min(specials, default=None),
        price_med=None, price_med_special=None, stock_status=status, is_in_stock=seen.in_stock,
        quantity=sum(one.quantity or 0 for one in variants), quantity_capped=False, thc=None, cbd=None, cannabinoids=(), specials=(),
        image_url=None, images=(), description=None, platform_created_at=None, platform_updated_at=None, extra={},
        category_canon=category,
    )  # fmt: skip


async def crawl(pool: Pool, ledger: Ledger) -> None:
    """Puts the market into the database: every store every day, with a refresh of the reports after each day."""
    async with pool.connection() as conn:
        for month in {ledger.crawled_at(0, 0).replace(day=1), ledger.now.replace(day=1)}:
            await conn.execute("SELECT ensure_product_history_partition(%s)", [month])
        for number, (name, city, state, latitude, longitude) in enumerate(STORES):
            details = Details(
                platform_dispensary_id=f"id-{number}", slug=name.lower().replace(" ", "-"), name=name, name_raw=name, city=city,
                state=state, country="United States", latitude=latitude, longitude=longitude, address=f"{number + 1} Main St",
            )  # fmt: skip
            store_id, _ = await stores.promote(conn, "dutchie", details)
            ledger.store_ids.append(store_id)
        await conn.execute("UPDATE dispensaries SET crawl_interval_hours = 24")
    for day in range(DAYS):
        async with pool.connection() as conn:
            for store in range(CRAWLED):
                menu = [_product(item, seen) for item, seen in ledger.menu(store, day).items()]
                await apply(conn, ledger.store_ids[store], "dutchie", ledger.crawled_at(store, day), menu)
        if day == DAYS - 1:
            await match_all(pool)
            await match_locations(pool)
        await refresh(pool, window=timedelta(days=7), now=ledger.refreshed_at(day))


def noon() -> datetime:
    """The time that the market is made for: the last noon (UTC), so that no round of crawls falls on two days."""
    now = datetime.now(UTC)
    return (now if now.hour >= 12 else now - timedelta(days=1)).replace(hour=12, minute=0, second=0, microsecond=0)


def by_item(rows: Sequence[tuple[int, int, Seen]]) -> dict[int, dict[int, Seen]]:
    """What stores offer, by item."""
    found: dict[int, dict[int, Seen]] = defaultdict(dict)
    for store, item, seen in rows:
        found[item][store] = seen
    return found
