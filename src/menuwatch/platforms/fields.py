"""Declares how each field of a payload is used, and counts fields of real payloads against the declarations. Pure.

A path names the steps to a value: `data[].attributes.name`. `*` matches any one key of a map, `**` any number of steps, including
none; at the end it matches everything below. If several declarations match, the one with the most named steps wins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import msgspec

Use = Literal["used", "kept", "ignored"]
"""`used`: it decides the value of a column; `kept`: it is stored unchanged; `ignored`: it is only in the archive."""

ANY, REST = "*", "**"


class Field(msgspec.Struct, frozen=True):
    """One declaration. `note` names the columns that it goes to, or says why it is ignored."""

    path: str
    use: Use
    note: str


def declare(
    prefix: str, *, used: Mapping[str, str], kept: Mapping[str, str], ignored: Mapping[str, str]
) -> tuple[Field, ...]:
    """Declarations of fields below `prefix`; a key may hold several paths with one note, separated by spaces."""
    found: list[Field] = []
    uses: tuple[tuple[Use, Mapping[str, str]], ...] = (("used", used), ("kept", kept), ("ignored", ignored))
    for use, notes in uses:
        found.extend(
            Field(f"{prefix}.{path}" if prefix else path, use, note)
            for paths, note in notes.items()
            for path in paths.split()
        )
    return tuple(found)


@lru_cache(maxsize=4096)
def steps(path: str) -> tuple[str, ...]:
    """`a.b[].c` as ("a", "b", "[]", "c")."""
    return tuple(re.findall(r"\[\]|[^.\[\]]+", path))


class Table:
    """Lookup table of declarations."""

    def __init__(self, fields: Iterable[Field]) -> None:
        self._fields = [(steps(field.path), field) for field in fields]

    def find(self, path: Sequence[str], *, holds_nothing: bool = False) -> Field | None:
        """The declaration that matches a path, None if it is undeclared. A value that `holds_nothing` (null, an empty
        container) matches the declarations of its parts, the most useful first.
        """
        fitting = [(_named(pattern), field) for pattern, field in self._fields if _fits(pattern, path)]
        if fitting:
            return max(fitting, key=lambda pair: pair[0])[1]
        if not holds_nothing:
            return None
        order = ("used", "kept", "ignored")
        inside = [
            field
            for pattern, field in self._fields
            if REST not in pattern[: len(path)] and _fits(pattern[: len(path)], path)
        ]
        return min(inside, key=lambda field: order.index(field.use), default=None)


def _fits(pattern: Sequence[str], path: Sequence[str]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == REST:
        return any(_fits(pattern[1:], path[start:]) for start in range(len(path) + 1))
    if not path or (pattern[0] != path[0] and (pattern[0] != ANY or path[0] == "[]")):
        return False
    return _fits(pattern[1:], path[1:])


def _named(pattern: Sequence[str]) -> tuple[int, int]:
    return sum(step not in (ANY, REST) for step in pattern), -len(pattern)


def values(value: Any, path: tuple[str, ...] = ()) -> Iterable[tuple[tuple[str, ...], Any]]:
    """(path, value) of every leaf of a document: texts, numbers, nulls, empty containers."""
    if isinstance(value, dict) and value:
        for name, entry in value.items():
            yield from values(entry, (*path, name))
    elif isinstance(value, list) and value:
        for entry in value:
            yield from values(entry, (*path, "[]"))
    else:
        yield path, value


def written(path: Sequence[str]) -> str:
    """The path as text."""
    return "".join(step if step == "[]" else f".{step}" for step in path).removeprefix(".")


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
    """Every path of the pages in order of first occurrence; keys of maps that are declared with `*` or `**` are counted together."""
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
