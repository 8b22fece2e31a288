"""Results for people (tables) and for programs (JSON, CSV). Results go to standard output, everything else to standard error."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.core.errors import Refused

# Piped output has no width of its own; 80 columns would cut every name.
_PIPED_WIDTH = 160
_SHORT, _MIDDLING = 12, 24
console = Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else _PIPED_WIDTH)
errors = Console(stderr=True, highlight=False, emoji=False)


class Format(StrEnum):
    """How a list is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def chosen_format(json: bool, fmt: Format | None) -> Format:
    """What `--json` and `--format` ask for together; raises Refused where they disagree."""
    if json and fmt not in (None, Format.JSON):
        raise Refused(f"--json and --format {fmt}: name one of them")
    return Format.JSON if json else fmt or Format.TABLE


_encoder = msgspec.json.Encoder(decimal_format="number")


def print_json(value: Any) -> None:
    """One JSON document on one line; Decimals as exact numbers."""
    sys.stdout.write(_encoder.encode(value).decode() + "\n")


def print_rows(
    rows: Sequence[dict[str, Any]],
    columns: Sequence[tuple[str, str]],
    fmt: Format,
    *,
    empty: str,
    keep: Sequence[str] = (),
) -> None:
    """`columns` are (key, heading); JSON and CSV carry every key of the rows, tables only these. `empty` says what to do next.

    Where a table has not room for all its columns, ids and those that `keep` names first stay, and others as far as there is room:
    first the rest of `keep`, then from the left. Ids, roles, states, hours and times are never cut.
    """
    if fmt is Format.JSON:
        print_json(rows)
        return
    if fmt is Format.CSV:
        keys = list(rows[0]) if rows else [key for key, _ in columns]
        writer = csv.DictWriter(sys.stdout, keys, lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _csv(row.get(key)) for key in keys} for row in rows)
        return
    if not rows:
        errors.print(empty)
        return
    cells = {key: [shown(row.get(key), plain_number=_is_id(key)) for row in rows] for key, _ in columns}
    needed = {key: max(len(heading), *map(len, cells[key])) for key, heading in columns}
    whole = {
        key
        for key, _ in columns
        if _is_id(key)
        or key in _WHOLE
        or needed[key] <= (_MIDDLING if key in keep else _SHORT)
        or any(isinstance(row.get(key), datetime) for row in rows)
    }
    least = {key: needed[key] if key in whole else _SHORT for key in needed}
    fit = fitting([key for key, _ in columns], keep, least, console.width)
    found = widths([needed[key] for key in fit], [key in whole for key in fit], console.width - _GAP * (len(fit) - 1))
    headings = dict(columns)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for key, width in zip(fit, found, strict=True):
        right = all(isinstance(row.get(key), int | Decimal | None) for row in rows)
        table.add_column(
            headings[key], justify="right" if right else "left", overflow="ellipsis", no_wrap=True, width=width
        )
    for line in zip(*(cells[key] for key in fit), strict=True):
        table.add_row(*(Text(cell) for cell in line))
    # On a terminal that is narrower than what must not be cut, lines are wrapped by it.
    total = sum(found) + _GAP * (len(found) - 1)
    (console if total <= console.width else Console(highlight=False, emoji=False, width=total)).print(table)
    if left := [heading for key, heading in columns if key not in fit]:
        errors.print(
            f"No room for {', '.join(left)}: a wider terminal or --format json shows more.",
            markup=False,
            soft_wrap=True,
        )


_GAP = 2
_WHOLE = frozenset({"role", "status", "interval_hours"})


def _is_id(key: str) -> bool:
    return key == "id" or key.endswith("_id")


def fitting(columns: Sequence[str], keep: Sequence[str], least: Mapping[str, int], room: int) -> list[str]:
    """The columns that there is room for at their least widths, in their order. Ids, roles, states and hours always stay."""
    must = {key for key in columns if key == "id" or key in _WHOLE} or {columns[0]}
    used = sum(least[key] + _GAP for key in must) - _GAP
    for key in dict.fromkeys([*keep, *columns]):
        if key not in must and used + _GAP + least[key] <= room:
            must.add(key)
            used += _GAP + least[key]
    return [key for key in columns if key in must]


def widths(needed: Sequence[int], whole: Sequence[bool], room: int) -> list[int]:
    """Column widths that fit into `room` characters: some columns are kept `whole`, the others share what is left."""
    found = list(needed)
    longs = [i for i, n in enumerate(needed) if not whole[i]]
    left = max(room - sum(n for i, n in enumerate(needed) if whole[i]), _SHORT * len(longs))
    # Fair shares; what a column does not need goes to the others.
    for place, i in enumerate(sorted(longs, key=lambda i: needed[i])):
        found[i] = min(needed[i], left // (len(longs) - place))
        left -= found[i]
    return found


def _csv(value: Any) -> Any:
    if isinstance(value, list | dict):
        return _encoder.encode(value).decode()
    if isinstance(value, datetime):
        return value.isoformat()
    return "" if value is None else value


def shown(value: Any, *, plain_number: bool = False) -> str:
    """A value as a cell; text of menus never counts as markup. A `plain_number` is one to type again: nothing separates its digits."""
    if value is None:
        return "-"
    if value is True:
        return "yes"
    if value is False:
        return "no"
    if isinstance(value, Decimal):
        return f"{value:,.2f}"
    if isinstance(value, int):
        return str(value) if plain_number else f"{value:,}"
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    return plain(str(value))


# Control characters could write to the terminal, and bidirectional overrides turn a line around.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """A text of a menu, safe to print."""
    return _UNPRINTABLE.sub("\ufffd", text)


def ago(then: datetime | None, clock: Clock | None = None) -> str:
    """How long ago, in words."""
    if then is None:
        return "never"
    seconds = ((clock or SystemClock()).now() - then).total_seconds()
    for size, name in ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        count = int(seconds // size)
        if count >= 1:
            return f"{count} {name}{'s' if count > 1 else ''} ago"
    return "just now"


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 store`, `2 stores`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
