"""Stock level and weight of each option.

    POSMetaData.children, by option text → else manualInventory, by option text → else unknown (which is not zero)

62 % of real products have no POSMetaData at all and are counted by hand in `manualInventory`. `children` is not aligned with
`Options`: it may be longer or shorter, so an option is looked up by its text and never by position. If several options have the
same text, the n-th takes the n-th entry with that text, else the last.

A point of sale reports at most 25 ("25" means "25 or more"), and `quantityAvailable` is its `quantity` minus the store's
reserve. Manual counts are not capped.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from typing import NamedTuple

from menuwatch.catalog.taxonomy.categories import WEIGHED, kind
from menuwatch.catalog.taxonomy.limits import MAX_TOTAL
from menuwatch.catalog.taxonomy.package import mass, package
from menuwatch.catalog.taxonomy.text import label
from menuwatch.platforms.dutchie.payload import Child, ManualInventory, PosMetaData
from menuwatch.platforms.items import UnusableItem
from menuwatch.platforms.numbers import id_text, packages
from menuwatch.platforms.products import grams

POS_CAP = 25


class Level(NamedTuple):
    """Stock level of one option. `source` identifies the entry, so that one shared by two options is counted once."""

    available: int
    capped: bool
    source: int


def _of_child(child: Child, source: int) -> Level | None:
    field = f"POSMetaData.children[{source}]"
    counted = packages(child.quantity, f"{field}.quantity")
    available = packages(child.quantityAvailable, f"{field}.quantityAvailable")
    if available is None:
        available = counted
    if available is None:
        return None
    return Level(available, (counted if counted is not None else available) >= POS_CAP, source)


def stock_levels(
    options: Sequence[str],
    children: Sequence[Child | None] | None,
    manual: Sequence[ManualInventory | None] | None,
) -> list[Level | None]:
    """The level of each option, None if unknown."""
    result: list[Level | None] = []
    taken: dict[str, int] = {}
    for option in options:
        nth = taken.get(option, 0)
        taken[option] = nth + 1
        level = None
        if children:
            at = _nth(children, option, nth)
            if at is not None:
                child = children[at]
                assert child is not None, "only entries are found"
                level = _of_child(child, at)
        if level is None and manual:
            at = _nth(manual, option, nth)
            if at is not None:
                entry = manual[at]
                assert entry is not None, "only entries are found"
                inventory = packages(entry.inventory, f"manualInventory[{at}].inventory")
                if inventory is not None:
                    # Negative numbers, so that they never collide with the children's.
                    level = Level(inventory, False, -1 - at)
        result.append(level)
    return result


def kiosk_levels(options: Sequence[str | None] | None, children: Sequence[Child | None] | None) -> dict[str, int]:
    """Packages that the shop's own kiosk sells of each option, where the point of sale gives them; other values are left out."""
    levels = {}
    for child in children or ():
        if child is not None and child.option and child.option in (options or ()):
            amount = child.kioskQuantityAvailable
            with suppress(UnusableItem):
                if isinstance(amount, int | float | str) and (count := packages(amount)) is not None:
                    levels[child.option] = count
    return levels


class Packages(NamedTuple):
    """What the point of sale says of the packages on sale: `tag` and `certificate` are those of all options, None where they differ;
    `tags` and `certificates` then give them by option."""

    tag: str | None
    certificate: str | None
    tags: dict[str, str]
    certificates: dict[str, str]


def packages_on_sale(options: Sequence[str | None] | None, pos: PosMetaData | None) -> Packages:
    """The product's record says the same as the first child, so that it counts only where no child on the menu says anything."""
    tags: dict[str, str] = {}
    certificates: dict[str, str] = {}
    if pos is None:
        return Packages(None, None, {}, {})
    for child in pos.children or ():
        if child is None or not child.option or child.option not in (options or ()):
            continue
        if (tag := id_text(child.canonicalPackageId)) and (tag := label(tag)):
            tags[label(child.option)] = tag
        if child.canonicalLabResultUrl and (url := child.canonicalLabResultUrl.strip()):
            certificates[label(child.option)] = url
    tag, several_tags = _one(tags, label(id_text(pos.canonicalPackageId) or ""))
    certificate, several_certificates = _one(certificates, (pos.canonicalLabResultUrl or "").strip())
    return Packages(tag, certificate, several_tags, several_certificates)


def _one(values: dict[str, str], otherwise: str) -> tuple[str | None, dict[str, str]]:
    """(the one value, nothing) or (None, the different values by option)."""
    distinct = set(values.values()) or {otherwise}
    return (distinct.pop() or None, {}) if len(distinct) == 1 else (None, values)


def _nth(entries: Sequence[Child | None] | Sequence[ManualInventory | None], option: str, nth: int) -> int | None:
    """Index of the n-th entry with that text, of the last if there are fewer, None if there is none."""
    index = None
    for at, entry in enumerate(entries):
        if entry is not None and entry.option == option:
            index = at
            if nth == 0:
                break
            nth -= 1
    return index


def is_active(status: str | None) -> bool:
    """False only for a status that explicitly differs from active."""
    return status is None or status == "Active" or status.casefold() == "active"


def total(levels: Sequence[Level | None]) -> int | None:
    """Packages over all options, each entry counted once, at most MAX_TOTAL; None if all are unknown."""
    if len(levels) == 1:
        return levels[0].available if levels[0] is not None else None
    known = {level.source: level.available for level in levels if level is not None}
    return min(sum(known.values()), MAX_TOTAL) if known else None


DOSED_TYPES = frozenset(
    {"Edible", "Edibles", "Tincture", "Tinctures", "Oral", "Topical", "Topicals", "Beverage", "Beverages"}
)
"""Categories whose "0.025g" is the mass of THC in the package, not of the package."""

UNWEIGHED = frozenset({"Accessories", "Apparel"})
"""Categories whose net weight is meaningless to a buyer."""

_IN_GRAMS = {"MILLIGRAMS": Decimal("0.001"), "GRAMS": Decimal(1)}


def _grams(text: str, category: str | None) -> Decimal | None:
    """Grams in an option's text; milligrams are a mass only for goods sold by mass, otherwise they are the content."""
    content = package(text)
    return None if content.milligrams is not None and kind(category).category not in WEIGHED else content.grams


def weights(
    category: str | None,
    options: Sequence[str],
    raw_options: Sequence[str | None] | None,
    net_unit: str | None,
    net_values: Sequence[Decimal | None] | None,
) -> list[Decimal | None]:
    """Grams of each option: from its own text, else from the parallel raw option, else from the net weight if that can
    only be this one option's. Raises ArithmeticError if that net weight is out of bounds.

    The net weight never overrides an option: it is often that of another size ("Wedding Cake": option 28g, net weight
    3,500 mg), and often one value for several options.
    """
    if category in DOSED_TYPES:
        if len(options) == 1 and mass(options[0]) is None:
            return [_net(net_unit, net_values)]
        return [None] * len(options)
    masses = [_grams(option, category) for option in options]
    if all(weight is not None for weight in masses):
        return masses
    if raw_options is not None and len(raw_options) == len(options):
        masses = [
            weight if weight is not None or raw is None else _grams(raw, category)
            for weight, raw in zip(masses, raw_options, strict=True)
        ]
    if masses == [None] and category not in UNWEIGHED:
        return [_net(net_unit, net_values)]
    return masses


def _net(unit: str | None, values: Sequence[Decimal | None] | None) -> Decimal | None:
    return grams(values[0], unit, _IN_GRAMS) if values is not None and len(values) == 1 else None
