"""Values of a Dutchie item without a column: the point of sale's own ids and limits, which promotion is of which option."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from menuwatch.catalog.taxonomy.limits import is_in_range
from menuwatch.catalog.taxonomy.text import label
from menuwatch.platforms.dutchie.options import Packages, kiosk_levels
from menuwatch.platforms.dutchie.payload import Item
from menuwatch.platforms.json_repair import storable
from menuwatch.platforms.numbers import id_text

_MOST_ENTRIES = 100
"""Entries of a value that is kept as it came; more would be no description of a product."""


def add_pos_extra(extra: dict[str, Any], item: Item, on_sale: Packages) -> None:
    """The point of sale's record: ids, category, packages by option where they differ, stock of the shop's kiosk."""
    pos = item.POSMetaData
    if pos is not None:
        texts = {
            "pos_id": id_text(pos.canonicalID),
            "sku": id_text(pos.canonicalSKU),
            "pos_category": pos.canonicalCategory,
        }
        extra |= {name: text for name, value in texts.items() if value and (text := label(value))}
        if kiosk := kiosk_levels(item.Options, pos.children):
            extra["kiosk_quantity"] = {label(option): quantity for option, quantity in kiosk.items()}
    if on_sale.tags:
        extra["package_ids"] = on_sale.tags
    if on_sale.certificates:
        extra["certificate_urls"] = on_sale.certificates
    on_menu = item.Options or ()
    if below := sorted(
        {label(option) for option in item.optionsBelowKioskThreshold or () if option and option in on_menu}
    ):
        extra["kiosk_below_threshold"] = below
    limits = {
        label(limit.key): value
        for limit in item.limitsPerCustomer or ()
        if limit is not None and limit.key and (value := id_text(limit.value))
    }
    if limits:
        extra["purchase_limits"] = limits


def add_special_extra(extra: dict[str, Any], item: Item) -> None:
    """Which promotion is of which option."""
    by_option: dict[str, dict[str, list[str]]] = {}
    for entry in item.specialIdsPerOption or ():
        if entry is None or not entry.option:
            continue
        conditions = sorted({text for one in entry.conditionIds or () if (text := id_text(one))})
        rewards = sorted({text for one in entry.rewardIds or () if (text := id_text(one))})
        ids = {name: found for name, found in (("conditions", conditions), ("rewards", rewards)) if found}
        if ids:
            by_option[label(entry.option)] = ids
    if by_option:
        extra["special_ids_by_option"] = by_option
    sales = item.specialData.saleSpecials if item.specialData is not None else None
    options = {
        text: sorted({label(option) for option in sale.eligibleProductOptions if option})
        for sale in sales or ()
        if sale is not None and sale.eligibleProductOptions and (text := id_text(sale.specialId))
    }
    if options:
        extra["special_options"] = options


def small_value(value: Any) -> Any:
    """A value of unknown shape as it came, without names of types; None if it says nothing, or is too large to describe a product."""
    value = _plain(storable(value))
    return value if value not in (None, "", [], {}) and _size(value) <= _MOST_ENTRIES else None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _plain(entry) for name, entry in value.items() if name != "__typename"}
        return {name: entry for name, entry in kept.items() if entry is not None}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, int | Decimal) and not is_in_range(Decimal(value)):
        return None
    return value


def _size(value: Any) -> int:
    if isinstance(value, dict | list):
        return 1 + sum(_size(entry) for entry in (value.values() if isinstance(value, dict) else value))
    return 1 + len(value) // 100 if isinstance(value, str) else 1
