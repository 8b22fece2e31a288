"""What the simulator needs to know of a platform besides Dutchie: its stores, its endpoint, and what its menus show."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from random import Random
from typing import TYPE_CHECKING

from menuwatch.sim.model import ProductState, SimStore

if TYPE_CHECKING:
    from menuwatch.sim.endpoint import Endpoint
    from menuwatch.sim.expected import OptionRow, Row
    from menuwatch.sim.fault_injection import Faults
    from menuwatch.sim.market import Market
    from menuwatch.sim.stats import Stats

Sizes = Sequence[tuple[str, float | None, int]]
"""Options of one product: the text of each, its grams (None: not a weight), its usual price in dollars."""


class SimPlatform(ABC):
    """One platform of the market. Stateless: what it gives depends on its arguments alone."""

    name: str
    first_index: int
    """Index of its first store; each platform has 100,000 of its own."""
    settings: Mapping[str, str] = {}
    """Settings of Menuwatch for this platform besides `base_url`: what the endpoint demands."""

    @abstractmethod
    def make_store(self, rng: Random, seed: int, number: int) -> SimStore:
        """The store with that number, from 0."""

    @abstractmethod
    def endpoint(self, market: Market, faults: Faults, stats: Stats) -> Endpoint:
        """The server of its API."""

    @abstractmethod
    def options(self, state: ProductState, store: SimStore) -> Iterator[OptionRow]:
        """What its menu shows of each option, computed from the market, not from what the endpoint serves."""

    def row(self, row: Row, state: ProductState, store: SimStore) -> Row:
        """What its menu shows of a product; `row` has the options, and everything else as on Dutchie."""
        return row

    def is_listed(self, state: ProductState, store: SimStore) -> bool:
        """Whether its menu has the product at all: some leave out what is sold out."""
        return True

    def product_id(self, rng: Random, store: SimStore, serial: int) -> str | None:
        """The id of a product; None: 24 hexadecimal digits."""
        return None

    def sizes(self, rng: Random, category: str) -> Sizes | None:
        """The options of a product; None: as on Dutchie."""
        return None


def platform_names() -> list[str]:
    """The platforms besides Dutchie."""
    package = import_module("menuwatch.sim.platforms")
    return sorted(module.name for module in iter_modules(package.__path__))


def sim_platform(name: str) -> SimPlatform:
    """The platform of that name. Raises ValueError for an unknown one."""
    if name not in platform_names():
        raise ValueError(f"unknown platform {name!r}: the market has dutchie, {', '.join(platform_names())}")
    found: SimPlatform = import_module(f"menuwatch.sim.platforms.{name}").PLATFORM
    return found
