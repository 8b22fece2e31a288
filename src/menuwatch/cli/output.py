"""Results for people (tables) and for programs (JSON, CSV). Results go to standard output, everything else to standard error."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from menuwatch.core.clock import Clock, SystemClock

# Piped output has no width of its own; 80 columns would cut every name.
_PIPED_WIDTH = 160
_SHORT = 12
console = Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else _PIPED_WIDTH)
errors = Console(stderr=True, highlight=False, emoji=False)


class Format(StrEnum):
    """How a list is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


_encoder = msgspec.json.Encoder(decimal_format="number")


def print_json(value: Any) -> None:
    """One JSON document on one line; Decimals as exact numbers."""
    sys.stdout.write(_encoder.encode(value).decode() + "\n")


def print_rows(rows: Sequence[dict[str, Any]], columns: Sequence[tuple[str, str]], fmt: Format, *, empty: str) -> None:
    """`columns` are (key, heading); JSON and CSV carry every key of the rows, tables only these. `empty` says what to do next."""
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
    table = Table(box=None, pad_edge=False, header_style="bold")
    numeric = {key for key, _ in columns if all(isinstance(row.get(key), int | Decimal | None) for row in rows)}
    cells = [[shown(row.get(key)) for key, _ in columns] for row in rows]
    needed = [max(len(heading), *(len(line[i]) for line in cells)) for i, (_, heading) in enumerate(columns)]
    for (key, heading), width in zip(columns, widths(needed, console.width - 2 * (len(columns) - 1)), strict=True):
        right = key in numeric
        table.add_column(heading, justify="right" if right else "left", overflow="ellipsis", no_wrap=True, width=width)
    for line in cells:
        table.add_row(*(Text(cell) for cell in line))
    console.print(table)


def widths(needed: Sequence[int], room: int) -> list[int]:
    """Column widths that fit into `room` characters: short columns are kept whole, long ones share what is left."""
    found = list(needed)
    short = sum(n for n in needed if n <= _SHORT)
    longs = [i for i, n in enumerate(needed) if n > _SHORT]
    left = max(room - short, _SHORT * len(longs))
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


def shown(value: Any) -> str:
    """A value as a cell; text of menus never counts as markup."""
    if value is None:
        return "-"
    if value is True:
        return "yes"
    if value is False:
        return "no"
    if isinstance(value, Decimal):
        return f"{value:,.2f}"
    if isinstance(value, int):
        return f"{value:,}"
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
