"""Jane's search index of menus and of stores, and the record of one store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from random import Random

from menuwatch.sim.endpoint import Endpoint
from menuwatch.sim.expected import OptionRow, Row, Strength, dollars
from menuwatch.sim.fault_injection import Faults
from menuwatch.sim.market import Market, make_store, plain_store, store_name
from menuwatch.sim.model import ProductState, SimStore, percent_off
from menuwatch.sim.platform import SimPlatform, Sizes
from menuwatch.sim.platforms.jane.endpoint import API_KEY, APP_ID, SearchEndpoint
from menuwatch.sim.platforms.jane.rows import DOSED, terpenes
from menuwatch.sim.product_factory import slug_of
from menuwatch.sim.stats import Stats
from menuwatch.sim.words import SHOP_NAMES

_EACH: tuple[Sizes, ...] = ((("each", None, 24),), (("each", None, 38),))
_SIZES: dict[str, tuple[Sizes, ...]] = {
    "Flower": (
        (("1/8 oz", 3.5, 34),), (("1 g", 1.0, 11),), (("1/8 oz", 3.5, 34), ("1/2 oz", 14.0, 110)), (("1/4 oz", 7.0, 60),),
        (("1/8 oz", 3.5, 32), ("1/4 oz", 7.0, 60), ("1/2 oz", 14.0, 105), ("1 oz", 28.0, 180)),
    ),
    "Pre-Rolls": ((("1 g", 1.0, 9),), (("1/2 g", 0.5, 6),), (("each", None, 12),)),
    "Vaporizers": ((("1/2 g", 0.5, 30),), (("1 g", 1.0, 50),), (("1/2 g", 0.5, 30), ("1 g", 1.0, 50))),
    "Concentrate": ((("1 g", 1.0, 43),), (("1/2 g", 0.5, 26), ("1 g", 1.0, 43)), (("2 g", 2.0, 75),)),
}  # fmt: skip


class _Jane(SimPlatform):
    """Only weights in stock are options, without a quantity, at one price for all customers of the shop; a percentage off makes their
    special price. A product without any, or that is not visible, is out of stock. A potency of zero is none."""

    name = "jane"
    first_index = 200_000
    settings = {"app_id": APP_ID, "api_key": API_KEY}  # noqa: RUF012 - never changed

    def make_store(self, rng: Random, seed: int, number: int) -> SimStore:
        shop = SHOP_NAMES[(number + 4) % len(SHOP_NAMES)]
        store = make_store(rng, seed, self.first_index + number)
        store_id = str(5_800 + 7 * number)
        name = store_name(shop, store.city, number)
        return plain_store(
            store,
            self.name,
            shop,
            id=store_id,
            slug=f"{store_id}-{slug_of(name)}",
            name=name,
            counting="none",
        )

    def endpoint(self, market: Market, faults: Faults, stats: Stats) -> Endpoint:
        return SearchEndpoint(market, faults, stats)

    def options(self, state: ProductState, store: SimStore) -> Iterator[OptionRow]:
        off = percent_off(state, store)
        for option, cents, stock in zip(state.product.options, state.prices, state.stock, strict=True):
            if stock == 0:
                continue
            price = dollars(cents)
            special = dollars((cents * (100 - off) + 50) // 100) if off is not None else None
            yield OptionRow(
                option=option,
                price_rec=price if store.recreational else None,
                special_rec=special if store.recreational else None,
                price_med=price if store.medical else None,
                special_med=special if store.medical else None,
                quantity=None,
                stock="in_stock" if state.active else "oos",
            )

    def row(self, row: Row, state: ProductState, store: SimStore) -> Row:
        found = any(state.stock)
        shown = tuple((name, Decimal(str(value)), "%") for name, value in terpenes(state))
        return replace(
            row,
            stock=row.stock if found else "oos",
            thc=self._strength(row.thc, state, sold=found),
            cbd=self._strength(row.cbd, state, sold=found),
            terpenes=shown if found else (),
        )

    def _strength(self, strength: Strength | None, state: ProductState, *, sold: bool) -> Strength | None:
        """Contents of what is sold by content are the laboratory's, which only weights in stock have."""
        if strength is None or strength.hi <= 0:
            return None
        return strength if sold or state.product.category not in DOSED else None

    def product_id(self, rng: Random, store: SimStore, serial: int) -> str:
        return str(int(store.id) * 100_000 + serial)

    def sizes(self, rng: Random, category: str) -> Sizes:
        return rng.choice(_SIZES.get(category, _EACH))


PLATFORM = _Jane()
