"""SQL in files: a noun's `queries.sql` is read as one page, and each statement has a name.

A statement starts with a line `-- name: some_name`; comment lines below it say what it is for. What several statements of a file
share, a filter say, stands once under `-- piece: its_name`, and is put in where they say `{its_name}`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, LiteralString

_NAME = re.compile(r"^--\s*(name|piece):\s*([a-z][a-z0-9_]*)\s*$", re.MULTILINE)


class Queries(Mapping[str, LiteralString]):
    """The statements of one file, as attributes and as a mapping."""

    def __init__(self, statements: dict[str, str], source: str) -> None:
        self._statements: dict[str, Any] = statements
        self._source = source

    def __getattr__(self, name: str) -> LiteralString:
        try:
            return self._statements[name]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(f"{self._source} has no statement named {name!r}") from None

    def __getitem__(self, name: str) -> LiteralString:
        return self._statements[name]  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        return iter(self._statements)

    def __len__(self) -> int:
        return len(self._statements)


def parse(text: str, source: str) -> Queries:
    """Cuts a file into its statements; raises ValueError for a doubled name or text before the first one."""
    parts = _NAME.split(text)
    before = "\n".join(line for line in parts[0].splitlines() if line.strip() and not line.startswith("--"))
    if before:
        raise ValueError(f"{source}: statement without a `-- name:` line: {before[:60]!r}")
    found: dict[str, dict[str, str]] = {"name": {}, "piece": {}}
    for kind, name, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        if name in found[kind]:
            raise ValueError(f"{source}: two {'statements' if kind == 'name' else 'pieces'} are named {name!r}")
        found[kind][name] = body.strip().removesuffix(";")
    whole = {name: _put_in(body, found["piece"]) for name, body in found["name"].items()}
    unused = [name for name in found["piece"] if not any(f"{{{name}}}" in body for body in found["name"].values())]
    if unused:
        raise ValueError(f"{source}: no statement says {{{unused[0]}}}")
    return Queries(whole, source)


def _put_in(body: str, pieces: Mapping[str, str]) -> str:
    """The statement with its pieces. Other braces are SQL's own: a piece is known by its name."""
    for name, piece in pieces.items():
        body = body.replace(f"{{{name}}}", piece)
    return body


@functools.cache
def load(package: str, filename: str = "queries.sql") -> Queries:
    """The statements of `filename` in that package."""
    text = resources.files(package).joinpath(filename).read_text(encoding="utf-8")
    return parse(text, f"{package}/{filename}")
