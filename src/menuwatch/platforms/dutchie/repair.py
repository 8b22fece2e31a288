"""Which fields a Dutchie item cannot do without when it is mended; see `platforms.mending`."""

from __future__ import annotations

from menuwatch.catalog.model import ProductWarning
from menuwatch.platforms.dutchie.identity import of_plain
from menuwatch.platforms.dutchie.payload import Item
from menuwatch.platforms.mending import Mender

ESSENTIAL = frozenset(
    {
        "Name",
        "Options",
        "recPrices",
        "medicalPrices",
        "recSpecialPrices",
        "medicalSpecialPrices",
        "POSMetaData",
        "manualInventory",
        "isBelowThreshold",
        "optionsBelowThreshold",
        "Status",
    }
)
"""Fields without which an item is no product. (Of its two ids, one will do; `Prices` only stands in for others.)"""

_PRICES = frozenset({"Prices", "recPrices", "medicalPrices", "recSpecialPrices", "medicalSpecialPrices"})
"""Fields whose numbers are judged where they are used: a list that is not aligned says nothing, whatever stands in it."""

_mender = Mender(Item, essential=ESSENTIAL, judged=_PRICES, identity=of_plain)


def repair(raw: bytes) -> tuple[Item | None, list[ProductWarning]]:
    """The item without its unusable values, and a warning for each; None and one fatal warning where nothing is left to use."""
    return _mender.mend(raw)
