"""What becomes of each field of some payload: counts beside what the platform's adapter declares. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from menuwatch.platforms.fields import Field, Table, values, written

UNDECLARED = "undeclared"


@dataclass(slots=True, kw_only=True)
class Coverage:
    """One path. `use` is used, kept, ignored or undeclared; `count` how often it was there, of these `nulls` null, `empty` an empty
    text or container; `example` the first value that says something, numbers as they are written."""

    path: str
    use: str
    note: str
    count: int = 0
    nulls: int = 0
    empty: int = 0
    example: str | None = None


def coverage(fields: Iterable[Field], pages: Sequence[bytes]) -> list[Coverage]:
    """Every path of the pages in the order in which it came; keys of maps that are declared with `*` or `**` are told together."""
    table = Table(fields)
    known: dict[tuple[tuple[str, ...], bool], Coverage] = {}
    rows: dict[str, Coverage] = {}
    for page in pages:
        for path, value in values(_read(page)):
            nothing = value is None or value == [] or value == {}
            row = known.get((path, nothing))
            if row is None:
                row = known[path, nothing] = _row(table, rows, path, nothing=nothing)
            row.count += 1
            if value is None:
                row.nulls += 1
            elif nothing or value == "":
                row.empty += 1
            elif row.example is None:
                row.example = _shown(value)
    return list(rows.values())


def _read(page: bytes) -> Any:
    return json.loads(page.decode("utf-8-sig", "replace"), parse_int=str, parse_float=str)


def _row(table: Table, rows: dict[str, Coverage], path: tuple[str, ...], *, nothing: bool) -> Coverage:
    field = table.find(path, holds_nothing=nothing)
    name = written(path)
    if field is not None and field.path.endswith("*"):
        name = field.path
    use, note = (field.use, field.note) if field is not None else (UNDECLARED, "")
    return rows.setdefault(name, Coverage(path=name, use=use, note=note))


def _shown(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else text[:59] + "…"
