"""Text cells of CSV files that spreadsheets do not run as formulas. Pure.

A spreadsheet takes a cell that begins with `=`, `+`, `-`, `@`, a tab or a line break for a formula, and names on menus are written by
strangers. Such a text gets an apostrophe in front, and so does one that begins with apostrophes followed by such a character: that way
`original` gives back every text exactly. Numbers (`-5.2`) are not formulas and stay unchanged.
"""

from __future__ import annotations

import re

# The last four are the full-width forms, which some spreadsheets read as the plain ones.
_OPENERS = "\t\n\r+-=@\uff0b\uff0d\uff1d\uff20"
_FORMULA = re.compile(f"'*[{re.escape(_OPENERS)}]")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def safe(text: str) -> str:
    """The text as a cell."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def original(cell: str) -> str:
    """The text that `safe` made a cell of."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell[1:]) else cell


def sql(column: str) -> str:
    """`safe` as an SQL expression over a text column (a name of our own)."""
    # Most texts are let through by their first character alone: an export asks this of every cell.
    first = ", ".join(str(ord(char)) for char in "'" + _OPENERS)
    openers = "".join(f"\\u{ord(char):04x}" for char in _OPENERS)
    return (
        f"CASE WHEN ascii({column}) IN ({first}) AND {column} ~ '^''*[{openers}]' AND {column} !~ '^{_NUMBER.pattern}$'"
        f" THEN '''' || {column} ELSE {column} END"
    )
