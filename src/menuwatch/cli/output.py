"""Results for people (text, tables) and for programs (JSON, CSV). Results go to standard output, everything else to standard error.

Names on menus are written by strangers, so no control character of theirs reaches a terminal. Text for people never holds one and JSON
has them escaped; what else is printed as it is (CSV, exports, archived documents) has them replaced where standard output is a
terminal, and is unchanged in a file or a pipe.
"""

from __future__ import annotations

import csv
import io
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from json import loads
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, cast

import msgspec
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from menuwatch.core import csv_cells
from menuwatch.core import format as text_format
from menuwatch.core.shapes import to_row

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# Piped output has no width of its own; 80 columns would cut every name.
_PIPED_WIDTH = 160
_SHORT, _MIDDLING = 12, 24
_GAP = 2
_NEVER_CUT = frozenset({"role", "status", "slug", "interval_hours"})
_STATE_STYLES = {
    **dict.fromkeys(
        ("completed", "ok", "active", "online", "healthy", "fresh", "delivered", "in stock", "in_stock"), "green"
    ),
    **dict.fromkeys(("running", "sending", "probing"), "cyan"),
    **dict.fromkeys(
        (
            "paused",
            "draining",
            "retrying",
            "blocked",
            "partial",
            "late",
            "throttled",
            "cooling down",
            "half open",
            "low",
        ),
        "yellow",
    ),
    **dict.fromkeys(
        ("failed", "lost", "inactive", "stale", "quarantined", "rejected", "circuit open", "out of stock", "oos"), "red"
    ),
    **dict.fromkeys(("cancelled", "stopped", "disabled", "off", "never", "unresolved", "unknown", "untested"), "dim"),
}
"""Colours of states in tables, on a terminal."""
_STATE_HEADINGS = frozenset({"Status", "State", "Health", "Stock", "Menu"})


class PlainConsole(Console):
    """A console that prints no control character of the text it is given, only its own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(plain(segment.text, lines=True), segment.style)


console = PlainConsole(highlight=False, emoji=False, width=None if sys.stdout.isatty() else _PIPED_WIDTH)
errors = PlainConsole(stderr=True, highlight=False, emoji=False)


def echo(*lines: str) -> None:
    """Prints lines of text for people: the result of a command. Long lines are not wrapped."""
    for line in lines:
        console.print(plain(line), markup=False, soft_wrap=True)


def notice(*lines: str) -> None:
    """Prints lines on standard error: notes, warnings, reasons of a failure."""
    for line in lines:
        errors.print(plain(line), markup=False, soft_wrap=True)


class Format(StrEnum):
    """How a list is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


_encoder = msgspec.json.Encoder(decimal_format="number")


def print_json(value: Any) -> None:
    """One JSON document on one line; Decimals as exact numbers."""
    text = _encoder.encode(value).decode()
    sys.stdout.write(_UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n")


class _Terminal(io.RawIOBase):
    """Untrusted bytes, as text for a terminal."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        sys.stdout.write(plain(bytes(data).decode(errors="replace"), lines=True))
        return len(data)

    def flush(self) -> None:
        sys.stdout.flush()


def standard_output() -> BinaryIO:
    """Standard output for untrusted bytes: a file or a pipe gets them unchanged. Each write holds whole characters."""
    return cast("BinaryIO", _Terminal()) if sys.stdout.isatty() else sys.stdout.buffer


class Column(NamedTuple):
    """A column of a table, or a line of a detail view."""

    heading: str
    value: str | Callable[[Any], Any]
    """A field of the row, or a function of the row."""
    format: Callable[[Any], str | None] | None = None
    """Text of a value; by default numbers, times and flags by their type."""
    rank: int | None = None
    """Where there is not enough room, columns are left out from the right; those with a rank after all others, the lowest last,
    and one of rank 0 never."""
    align: Literal["left", "right"] | None = None
    """By default numbers are on the right."""
    style: str = ""

    def get(self, row: Any) -> Any:
        if callable(self.value):
            value = self.value(row)
        else:
            value = row.get(self.value) if isinstance(row, Mapping) else getattr(row, self.value)
        return value if self.format is None else self.format(value)

    @property
    def is_id(self) -> bool:
        return isinstance(self.value, str) and (self.value == "id" or self.value.endswith("_id"))

    @property
    def is_required(self) -> bool:
        return self.value == "id" or self.value in _NEVER_CUT or self.rank == 0


def print_list(rows: Sequence[Any], columns: Sequence[Column], fmt: Format, *, empty: str = "") -> None:
    """Prints rows: Structs, dataclasses or dicts. JSON and CSV hold every field, tables the `columns`. `empty` says what to do next.
    Without rows, CSV has the fields of the columns.

    A table that is too wide keeps ids, and other columns by their rank. Ids, roles, states, hours and times are never truncated."""
    if fmt is Format.JSON:
        print_json(rows)
    elif fmt is Format.CSV:
        names = [str(column.value) for column in columns if not callable(column.value)]
        _print_csv([_fields(row) for row in rows], names)
    elif rows:
        _print_table(rows, columns)
    elif empty:
        errors.print(empty)


def _fields(row: Any) -> dict[str, Any]:
    if isinstance(row, dict):
        return row
    return to_row(row) if isinstance(row, msgspec.Struct) else asdict(row)


def _print_csv(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    names = list(rows[0]) if rows else names
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _csv_cell(row.get(name)) for name in names} for row in rows)
    sys.stdout.write(plain(text.getvalue(), lines=True) if sys.stdout.isatty() else text.getvalue())


def _print_table(rows: Sequence[Any], columns: Sequence[Column]) -> None:
    values = {column: [column.get(row) for row in rows] for column in columns}
    cells = {column: [cell(value, plain_number=column.is_id) for value in values[column]] for column in columns}
    needed = {column: max(len(column.heading), *map(len, cells[column])) for column in columns}
    whole = {
        column
        for column in columns
        if column.is_id
        or column.is_required
        or needed[column] <= (_SHORT if column.rank is None else _MIDDLING)
        or any(isinstance(value, datetime) for value in values[column])
    }
    fit = fitting(columns, {column: needed[column] if column in whole else _SHORT for column in columns}, console.width)
    room = console.width - _GAP * (len(fit) - 1)
    sizes = widths([needed[column] for column in fit], [column in whole for column in fit], room)
    aligns = [
        column.align
        or ("right" if all(isinstance(value, int | Decimal | None) for value in values[column]) else "left")
        for column in fit
    ]
    _print_line([Text(column.heading, "bold") for column in fit], sizes, aligns)
    for line in zip(*(cells[column] for column in fit), strict=True):
        styles = (
            _state_style(text) if column.heading in _STATE_HEADINGS else column.style
            for column, text in zip(fit, line, strict=True)
        )
        _print_line([Text(text, style) for text, style in zip(line, styles, strict=True)], sizes, aligns)
    if left_out := [column.heading for column in columns if column not in fit]:
        notice(f"Hidden columns: {', '.join(left_out)} (widen the terminal or use --json).")


def _state_style(text: str) -> str:
    """The colour of a state, which a note in brackets may follow."""
    return _STATE_STYLES.get(text.lower().split(" (")[0], "")


def _print_line(cells: Sequence[Text], sizes: Sequence[int], aligns: Sequence[Literal["left", "right"]]) -> None:
    for text, width, align in zip(cells, sizes, aligns, strict=True):
        text.truncate(width, overflow="ellipsis")
        text.align(align, width)
    line = Text(" " * _GAP).join(cells)
    line.rstrip()
    # On a terminal that is narrower than what must not be cut, lines are wrapped by it.
    console.print(line, soft_wrap=True)


def fitting(columns: Sequence[Column], least: Mapping[Column, int], room: int) -> list[Column]:
    """The columns that there is room for at their `least` widths, in their order."""
    fit = {column for column in columns if column.is_required} or {columns[0]}
    used = sum(least[column] + _GAP for column in fit) - _GAP
    for column in sorted(columns, key=lambda column: (column.rank is None, column.rank or 0)):
        if column not in fit and used + _GAP + least[column] <= room:
            fit.add(column)
            used += _GAP + least[column]
    return [column for column in columns if column in fit]


def widths(needed: Sequence[int], whole: Sequence[bool], room: int) -> list[int]:
    """Column widths that fit into `room` characters: some columns are kept `whole`, the others share the rest."""
    sizes = list(needed)
    long = [i for i, _ in enumerate(needed) if not whole[i]]
    left = max(room - sum(n for i, n in enumerate(needed) if whole[i]), _SHORT * len(long))
    # Fair shares; what a column does not need goes to the others.
    for position, i in enumerate(sorted(long, key=lambda i: needed[i])):
        sizes[i] = min(needed[i], left // (len(long) - position))
        left -= sizes[i]
    return sizes


def print_detail(row: Any, columns: Sequence[Column], *, indent: int = 0, width: int | None = None) -> None:
    """Prints the values of one object, a line each, without those that are None; wrapped to `width`."""
    echo(*detail_lines(row, columns, indent=indent, width=width))


def detail_lines(row: Any, columns: Sequence[Column], *, indent: int = 0, width: int | None = None) -> Iterator[str]:
    values = [(column, column.get(row)) for column in columns]
    pad = max(len(column.heading) for column in columns) + _GAP
    for column, value in values:
        if value is not None:
            line = f"{'':{indent}}{column.heading:{pad}}{cell(value, plain_number=column.is_id)}"
            yield from [line] if width is None else wrap(line, width, indent + pad)


def wrap(line: str, width: int, indent: int = 0) -> list[str]:
    """The line in parts of that width where words allow; all but the first are indented."""
    return textwrap.wrap(line, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def _csv_cell(value: Any) -> Any:
    if isinstance(value, msgspec.Raw):
        return bytes(value).decode()
    if isinstance(value, list | dict | msgspec.Struct):
        return _encoder.encode(value).decode()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        return csv_cells.safe(value)
    return "" if value is None or value is msgspec.UNSET else value


def cell(value: Any, *, plain_number: bool = False) -> str:
    """A value as text; text of menus never counts as markup. A `plain_number` is one to type again: nothing separates its digits."""
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
    if isinstance(value, list | tuple):
        return plain(", ".join(map(str, value)))
    return plain(str(value))


# Control characters could write to the terminal; direction marks and line separators move text. Other invisible characters stay: a
# no-break space or the joiner of an emoji is part of a name.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_LINES = "\n\t"


def plain(text: str, *, lines: bool = False) -> str:
    """A text of a menu, safe to print. With `lines` its line ends and tabs stay."""
    return _UNPRINTABLE.sub(lambda match: match[0] if lines and match[0] in _LINES else "\ufffd", text)


def ago(moment: datetime | None) -> str:
    """How long ago; `never` for None."""
    return text_format.ago(moment, datetime.now(UTC))


def format_potency(potency: msgspec.Raw | dict[str, Any] | None) -> str | None:
    """`18.5–22 %` of a THC or CBD range."""
    if potency is None:
        return None
    value = potency if isinstance(potency, dict) else loads(bytes(potency), parse_float=Decimal)
    low, high = (f"{Decimal(str(value[side])).normalize():f}" for side in ("lo", "hi"))
    return f"{low if low == high else f'{low}–{high}'} {value['unit']}"


class ProgressBar:
    """A progress bar of a command."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def __call__(self, done: int, total: int | None = None, /, description: str | None = None) -> None:
        """Sets how much is done; None leaves the total or the description as it is."""
        self._progress.update(self._task, completed=done, total=total, description=description)

    def advance(self, count: int = 1) -> None:
        self._progress.advance(self._task, count)


@contextmanager
def progress_bar(description: str, *, total: int | None = None, remaining: bool = True) -> Iterator[ProgressBar]:
    """A bar with a count on standard error, where that is a terminal, with the `remaining` or the elapsed time; removed at the end."""
    from rich.progress import (  # few commands show one
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    time = TimeRemainingColumn() if remaining else TimeElapsedColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), time)
    shown = errors.is_terminal and total != 1
    with Progress(*columns, console=errors, transient=True, disable=not shown) as progress:
        yield ProgressBar(progress, progress.add_task(description, total=total))
