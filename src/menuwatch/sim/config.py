"""Settings of a simulation: sizes, how the market changes, and faults."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

IMAGE_BASE = "http://images.invalid"
"""Base URL of images; the name does not exist, and is the same in every run."""


class Rates(Struct, frozen=True, forbid_unknown_fields=True):
    """How much happens from one tick to the next, as shares of a store's products.

    `unchanged`, where given, is the share that is left entirely alone; price and stock moves then happen among the rest, at least
    one each, and vanishing and new products shrink with it.
    """

    price: float = 0.08
    stock: float = 0.45
    vanish: float = 0.03
    gone_for_good: float = 0.12
    new: float = 0.01
    status: float = 0.004
    batch: float = 0.005
    unchanged: float | None = None


class ServiceQuality(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fault rates, as shares of orders. `lose`: never calls; `double`: calls twice; `fail`: reports failure; `refuse`: rejects
    the order and wants `retry_after` seconds; `slow`: seconds that a call may be late; `inline`: the page is in the call;
    `garble`: the page's URL leads to unreadable data."""

    lose: float = 0.0
    double: float = 0.0
    fail: float = 0.0
    refuse: float = 0.0
    retry_after: float = 30.0
    slow: float = 0.0
    inline: float = 0.3
    garble: float = 0.0


class SimConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that a simulation depends on."""

    stores: int = 12
    platforms: dict[str, int] = {}
    """Number of stores on further platforms, in addition to `stores` on Dutchie."""
    products: int = 150
    """Initial number of products per store."""
    seed: int = 1
    port: int = 0
    """Of the GraphQL endpoint; 0 takes a free one."""
    proxies: int = 0
    """Forward proxies to start."""
    recorded: str | None = None
    """Folder of recorded responses to serve verbatim."""
    rates: Rates = Rates()
    faults: dict[str, Any] = {}
    """See `menuwatch.sim.fault_injection`."""
    image_base: str = IMAGE_BASE
    refuse_hashes: bool = False
    """Know no persisted query."""
    shop: int = 0
    """Products for each keyword of a shop with a search, which has a fetching service; 0: no such shop."""
    service: ServiceQuality = ServiceQuality()
    refusals: float = 0.0
    """Share of that shop's responses that are refusals."""
