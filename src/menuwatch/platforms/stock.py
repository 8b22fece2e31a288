"""The stock of a product, by that of its options."""

from __future__ import annotations

from collections.abc import Sequence

from menuwatch.catalog.model import StockStatus


def product_status(variants: Sequence[StockStatus], *, active: bool = True) -> StockStatus:
    """In stock if any option is; out of stock if it has options and all are, or if it is not active; else unknown."""
    if "in_stock" in variants:
        return "in_stock"
    if variants:
        return "oos" if all(status == "oos" for status in variants) else "unknown"
    return "unknown" if active else "oos"


def is_in_stock(status: StockStatus) -> bool | None:
    """None where it is unknown."""
    return None if status == "unknown" else status == "in_stock"
