"""What each option of an item weighs. What its text says is read by `catalog.canon.package`; here stands what Dutchie says besides."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from menuwatch.catalog.canon.bounds import bounded
from menuwatch.catalog.canon.kinds import WEIGHED, kind
from menuwatch.catalog.canon.package import mass as mass
from menuwatch.catalog.canon.package import package, shortest

DOSED = frozenset(
    {"Edible", "Edibles", "Tincture", "Tinctures", "Oral", "Topical", "Topicals", "Beverage", "Beverages"}
)
"""Categories whose "0.025g" is the mass of THC in the package, not of the package."""

UNWEIGHED = frozenset({"Accessories", "Apparel"})
"""Categories whose net weight means nothing to a buyer."""

_PER_THOUSAND = Decimal("0.001")


def _grams(text: str, category: str | None) -> Decimal | None:
    """Grams that an option says; milligrams are a mass only of goods that are sold by mass, of others they are the content."""
    found = package(text)
    return None if found.milligrams is not None and kind(category).category not in WEIGHED else found.grams


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
    found = [_grams(option, category) for option in options]
    if all(grams is not None for grams in found):
        return found
    if raw_options is not None and len(raw_options) == len(options):
        found = [
            grams if grams is not None or raw is None else _grams(raw, category)
            for grams, raw in zip(found, raw_options, strict=True)
        ]
    if found == [None] and category not in UNWEIGHED:
        return [_net(net_unit, net_values)]
    return found


def _net(unit: str | None, values: Sequence[Decimal | None] | None) -> Decimal | None:
    if values is None or len(values) != 1 or values[0] is None or bounded(values[0]) <= 0:
        return None
    if unit == "MILLIGRAMS":
        return shortest(values[0] * _PER_THOUSAND)
    return shortest(values[0]) if unit == "GRAMS" else None
