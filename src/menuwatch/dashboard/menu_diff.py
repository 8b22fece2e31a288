"""Two archived menus side by side, field by field, in rows for a page. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from menuwatch.operations.payloads import Compared

MOST = 200
"""Rows of each kind that are shown."""
LARGE_SHARE = 0.3
"""Of a menu's products: where more appeared or vanished it is said aloud."""
_PRICES = ("recreational", "recreational special", "medical", "medical special")


@dataclass(frozen=True, slots=True)
class Field:
    """One field of one product: its name, and what it was and is (None: nothing)."""

    name: str
    before: Any
    after: Any
    money: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One product that changed."""

    provider_product_id: str
    name: str
    fields: Sequence[Field] = field(default_factory=list)


def price_rows(found: Compared) -> list[Row]:
    """The products whose prices differ, with the fields that do."""
    return [
        Row(one.provider_product_id, one.name, list(_prices(one.before, one.after)))
        for one in found.diff.price_changes[:MOST]
    ]


def stock_rows(found: Compared) -> list[Row]:
    """The products whose stock differs, with the fields that do."""
    return [
        Row(one.provider_product_id, one.name, list(_stock(one.before, one.after)))
        for one in found.diff.stock_changes[:MOST]
    ]


def _prices(before: Any, after: Any) -> Iterator[Field]:
    old, new = _by_option(before), _by_option(after)
    for option in [*old, *(name for name in new if name not in old)]:
        was, now = old.get(option), new.get(option)
        for place, name in enumerate(_PRICES):
            left, right = was[place] if was else None, now[place] if now else None
            if left != right:
                yield Field(f"{option}, {name}", left, right, money=True)
        if was is None or now is None:
            yield Field(f"option {option}", "there" if was else None, "there" if now else None)


def _stock(before: Any, after: Any) -> Iterator[Field]:
    if before[0] != after[0]:
        yield Field("status", _words(before[0]), _words(after[0]))
    old, new = _by_option(before[1]), _by_option(after[1])
    for option in [*old, *(name for name in new if name not in old)]:
        was, now = old.get(option, (None, None, False)), new.get(option, (None, None, False))
        if was[0] != now[0] and (len(old) > 1 or len(new) > 1):
            yield Field(f"{option}, status", _words(was[0]), _words(now[0]))
        if was[1:] != now[1:]:
            yield Field(f"{option}, left", _left(was), _left(now))


def _by_option(options: Sequence[Sequence[Any]]) -> Mapping[str, tuple[Any, ...]]:
    return {one[0]: tuple(one[1:]) for one in options}


def _words(status: str | None) -> str | None:
    return None if status is None else {"in_stock": "in stock", "oos": "out of stock"}.get(status, "not said")


def _left(option: Sequence[Any]) -> str | None:
    return None if option[1] is None else f"{option[1]:,}{'+' if option[2] else ''}"


def items(found: Compared) -> set[str]:
    """The platform's ids of what is shown."""
    diff = found.diff
    kinds = (diff.added, diff.removed, diff.price_changes, diff.stock_changes)
    shown = {one.provider_product_id for kind in kinds for one in kind[:MOST]}
    return shown | {one.provider_product_id for one in found.unreadable[:MOST] if one.provider_product_id}


def is_large(found: Compared) -> bool:
    """Whether so much appeared or vanished that it may be another store's menu, or half of one."""
    size = max(found.older.product_count, found.newer.product_count, 1)
    return (len(found.diff.added) + len(found.diff.removed)) / size > LARGE_SHARE
