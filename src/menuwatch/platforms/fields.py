"""What becomes of each field of a payload, as an adapter declares it. Pure.

A path names the steps to a value: `data[].attributes.name`. `*` stands for any one key of a map, `**` for any steps, also
none: at the end for everything below. Of several declarations that fit, the one with the most steps named counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import msgspec

Use = Literal["used", "kept", "ignored"]
"""`used`: it decides the value of a column; `kept`: it is stored as it came; `ignored`: it is only in the archive."""

ANY, REST = "*", "**"


class Field(msgspec.Struct, frozen=True):
    """One declaration. `note` names the columns that it goes to, or says why it is ignored."""

    path: str
    use: Use
    note: str


def declared(
    prefix: str, *, used: Mapping[str, str], kept: Mapping[str, str], ignored: Mapping[str, str]
) -> tuple[Field, ...]:
    """Declarations of fields below `prefix`; several paths with one note may stand in one key, with spaces between them."""
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
    """Declarations, to be looked up."""

    def __init__(self, fields: Iterable[Field]) -> None:
        self._fields = [(steps(field.path), field) for field in fields]

    def find(self, path: Sequence[str], *, holds_nothing: bool = False) -> Field | None:
        """The declaration that a path falls under, None where it is undeclared. A value that `holds_nothing` (null, an empty
        container) falls under what is declared of its parts, the most useful first."""
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
    """(path, value) of everything in a document that holds no further values: texts, numbers, nulls, empty containers."""
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
