"""Reading items one by one: what is wrong with one of them is a warning and stops nothing else. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from menuwatch.catalog.canon.bounds import shown_id
from menuwatch.catalog.model import Product, ProductWarning
from menuwatch.platforms.base import Normalized


class Unusable(Exception):
    """The item cannot be a product: (field, what is wrong)."""


def each(
    items: Iterable[msgspec.Raw],
    read: Callable[[msgspec.Raw, list[ProductWarning]], Product | None],
    identity: Callable[[msgspec.Raw], str | None],
) -> Normalized:
    """Products in the order of their items; of several items with one id the last wins and stands where the first did.

    `read` adds warnings to the list that it is given; it returns None where it said already why there is no product, and may raise
    Unusable, ArithmeticError and RecursionError for its one item.
    """
    products: dict[str, Product] = {}
    warnings: list[ProductWarning] = []
    for raw in items:
        known = len(warnings)
        try:
            product = read(raw, warnings)
        except (Unusable, ArithmeticError, RecursionError) as error:
            # What else was wrong with it is of no use to anyone.
            del warnings[known:]
            field, message = _told(error)
            warnings.append(ProductWarning(shown_id(identity(raw)), field, message, fatal=True))
        else:
            if product is not None:
                products[product.provider_product_id] = product
    return Normalized(products=tuple(products.values()), warnings=tuple(warnings))


def _told(error: Exception) -> tuple[str, str]:
    """(field, what is wrong)"""
    if isinstance(error, Unusable):
        return error.args[0], error.args[1]
    if isinstance(error, RecursionError):
        return "", "is nested too deeply to be read"
    return "", f"its numbers cannot be reckoned with: {type(error).__name__}"
