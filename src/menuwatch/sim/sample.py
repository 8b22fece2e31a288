"""Writes a menu of the simulated market as a recorded response, for `menuwatch replay` (`make sample`)."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

from menuwatch.sim.dutchie import render_product
from menuwatch.sim.market import Market

PRODUCTS, TICK = 25, 6


def sample() -> bytes:
    """A `filteredProducts` response, always the same one."""
    market = Market(seed=2, stores=1, products=PRODUCTS)
    (store,) = market.stores
    products = [render_product(state, store) for state in market.menu(store, TICK) if state.active]
    head, info = b'{"data":{"filteredProducts":{"products":[', b'],"queryInfo":{"totalCount":%d,"totalPages":1}}}}'
    return head + b",".join(products) + info % len(products)


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(gzip.compress(sample(), mtime=0))
