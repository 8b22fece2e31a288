"""What an option of a menu weighs, read from its text.

Weed is sold in fractions of an ounce that everybody counts as 28 g: "1/8oz" is 3.5 g. Other texts are grams as they
stand ("3.5g", ".5g", "28.3g"), with a C behind them for concentrates ("1gC"). Everything else ("N/A", "10pk/100mg", "2pk") is no
weight, and none is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

from menuwatch.platforms.dutchie.bounds import bounded

GRAMS_PER_OUNCE = Decimal(28)

DOSED = frozenset(
    {"Edible", "Edibles", "Tincture", "Tinctures", "Oral", "Topical", "Topicals", "Beverage", "Beverages"}
)
"""Categories whose "0.025g" is the mass of THC in the package, not of the package."""

UNWEIGHED = frozenset({"Accessories", "Apparel"})
"""Categories whose net weight means nothing to a buyer."""

_MASS = re.compile(
    r"(?:(?P<top>\d{1,3})/(?P<bottom>\d{1,3})|(?P<number>\d{0,6}\.\d{1,6}|\d{1,6}))\s*"
    r"(?P<unit>g|gr|gm|gram|grams|oz|ounce|ounces)(?:\s*c)?",
    re.IGNORECASE,
)
_PER_THOUSAND = Decimal("0.001")
_PLACES = Decimal("0.0001")


@lru_cache(maxsize=8192)
def mass(text: str) -> Decimal | None:
    """Grams that the text stands for, None where it is no mass (or none above zero)."""
    match = _MASS.fullmatch(text.strip())
    if match is None:
        return None
    if match["top"] is not None:
        if int(match["bottom"]) == 0:
            return None
        amount = (Decimal(match["top"]) / Decimal(match["bottom"])).quantize(_PLACES)
    else:
        amount = Decimal(match["number"])
    grams = amount if match["unit"].lower().startswith("g") else amount * GRAMS_PER_OUNCE
    return _plain(grams) if grams > 0 else None


def _plain(value: Decimal) -> Decimal:
    """The same number without trailing zeros and without an exponent: 14.0 → 14, 1E+2 → 100."""
    shortest = value.normalize()
    return shortest.quantize(Decimal(1)) if shortest.as_tuple().exponent > 0 else shortest  # type: ignore[operator]


def weights(
    category: str | None,
    options: Sequence[str],
    raw_options: Sequence[str | None] | None,
    net_unit: str | None,
    net_values: Sequence[Decimal | None] | None,
) -> list[Decimal | None]:
    """Grams of each option: from its own text, else from the raw option beside it, else from the net weight where that can
    only mean this one option. Raises ArithmeticError where that net weight is out of bounds.

    The net weight never contradicts an option: it is often that of another size ("Wedding Cake": option 28g, net weight
    3,500 mg), and often one value for several options.
    """
    if category in DOSED:
        if len(options) == 1 and mass(options[0]) is None:
            return [_net(net_unit, net_values)]
        return [None] * len(options)
    found = [mass(option) for option in options]
    if all(grams is not None for grams in found):
        return found
    if raw_options is not None and len(raw_options) == len(options):
        found = [
            grams if grams is not None or raw is None else mass(raw)
            for grams, raw in zip(found, raw_options, strict=True)
        ]
    if found == [None] and category not in UNWEIGHED:
        return [_net(net_unit, net_values)]
    return found


def _net(unit: str | None, values: Sequence[Decimal | None] | None) -> Decimal | None:
    if values is None or len(values) != 1 or values[0] is None or bounded(values[0]) <= 0:
        return None
    if unit == "MILLIGRAMS":
        return _plain(values[0] * _PER_THOUSAND)
    return _plain(values[0]) if unit == "GRAMS" else None


def price_per_gram(price: Decimal | None, grams: Decimal | None) -> Decimal | None:
    """Money per gram, to 4 places (half to even)."""
    if price is None or grams is None:
        return None
    return (price / grams).quantize(_PLACES)
