"""Corrections from a file, all or none. CSV with the columns `a`, `b`, `verdict` (same or different) and optionally `note`."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from menuwatch.core.errors import InvalidField, InvalidFields, Refused
from menuwatch.db.pool import Connection
from menuwatch.matching.corrections import Outcome, correct

MAX_ROWS = 10_000
_SHOWN_ERRORS = 20
_ID_MAX = 2**63 - 1
_VERDICTS = {"same": True, "different": False}
_COLUMNS = ("a", "b", "verdict", "note")


class CorrectionRow(NamedTuple):
    """One line of a file."""

    line: int
    a: int
    b: int
    same: bool
    note: str | None


class BulkCorrections(Struct, kw_only=True, frozen=True):
    """Corrections of a file by their outcome."""

    recorded: int
    repeated: int
    replaced: int
    alike: int


def parse_corrections(text: str) -> list[CorrectionRow]:
    """The lines of a file; the first one may be a heading. Raises InvalidFields naming every wrong line, and Refused for an empty or
    too long file."""
    rows, errors = [], []
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        for number, cells in enumerate(reader):
            cells = [cell.strip() for cell in cells]
            if not any(cells) or (
                number == 0 and [cell.lower() for cell in cells] in (list(_COLUMNS), list(_COLUMNS[:3]))
            ):
                continue
            try:
                rows.append(_row(reader.line_num, cells))
            except Refused as error:
                errors.append(InvalidField(f"line {reader.line_num}", f"line {reader.line_num}: {error}"))
            if len(rows) + len(errors) > MAX_ROWS:
                raise Refused(f"the file has more than {MAX_ROWS:,} corrections: split it")
    except csv.Error as error:
        errors.append(InvalidField(f"line {reader.line_num}", f"line {reader.line_num}: not CSV: {error}"))
    _raise(errors)
    if not rows:
        raise Refused(f"the file has no corrections: give lines of {', '.join(_COLUMNS)}")
    return rows


def _row(line: int, cells: Sequence[str]) -> CorrectionRow:
    if not 3 <= len(cells) <= 4:
        raise Refused(f"has {len(cells)} columns; give {', '.join(_COLUMNS)}, of which the note may be left out")
    ids = []
    for name, cell in zip("ab", cells[:2], strict=True):
        if not (cell.isascii() and cell.isdigit() and len(cell) < 20 and 0 < int(cell) <= _ID_MAX):
            raise Refused(f"{name} is {cell[:40]!r}, which is not a product id")
        ids.append(int(cell))
    if cells[2].lower() not in _VERDICTS:
        raise Refused(f"the verdict is {cells[2][:40]!r}; use same or different")
    return CorrectionRow(line, ids[0], ids[1], _VERDICTS[cells[2].lower()], cells[3] if len(cells) == 4 else None)


async def correct_many(conn: Connection, rows: Sequence[CorrectionRow], *, replace: bool = False) -> BulkCorrections:
    """Makes every correction, in the transaction of the caller. Raises InvalidFields naming the lines that cannot be made: the caller
    rolls back, so that none is."""
    outcomes: Counter[Outcome] = Counter()
    errors = []
    for row in rows:
        try:
            result = await correct(conn, row.a, row.b, row.same, note=row.note, replace=replace)
            outcomes[result.outcome] += 1
        except Refused as error:
            errors.append(InvalidField(f"line {row.line}", f"line {row.line}: {error}"))
    _raise(errors)
    return BulkCorrections(**{str(one): outcomes[one] for one in Outcome})


def _raise(errors: Sequence[InvalidField]) -> None:
    if not errors:
        return
    shown = list(errors[:_SHOWN_ERRORS])
    if len(errors) > _SHOWN_ERRORS:
        shown.append(InvalidField("file", f"and {len(errors) - _SHOWN_ERRORS:,} more lines"))
    raise InvalidFields(shown)
