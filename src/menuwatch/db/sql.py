"""SQL in files: a noun's `queries.sql` is read as one page, and each statement has a name.

A statement starts with a line `-- name: some_name`; comment lines below it say what it is for.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, LiteralString

_NAME = re.compile(r"^--\s*name:\s*([a-z][a-z0-9_]*)\s*$", re.MULTILINE)


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
    pieces = _NAME.split(text)
    before = "\n".join(line for line in pieces[0].splitlines() if line.strip() and not line.startswith("--"))
    if before:
        raise ValueError(f"{source}: statement without a `-- name:` line: {before[:60]!r}")
    statements: dict[str, str] = {}
    for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
        if name in statements:
            raise ValueError(f"{source}: two statements are named {name!r}")
        statements[name] = body.strip().removesuffix(";")
    return Queries(statements, source)


@functools.cache
def load(package: str, filename: str = "queries.sql") -> Queries:
    """The statements of `filename` in that package."""
    text = resources.files(package).joinpath(filename).read_text(encoding="utf-8")
    return parse(text, f"{package}/{filename}")
