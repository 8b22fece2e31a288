"""Which fields a GraphQL text asks for, and an object cut down to them.

Enough of the language for the queries of front ends: operations with variables and arguments, aliases, fragments. Arguments
are skipped, because the simulator takes them from the variables by their known names.
"""

from __future__ import annotations

import re
from typing import Any

Selection = dict[str, "tuple[str, Selection | None]"]
"""Name in the answer → (field, what is selected of it; None for all)."""

_TOKEN = re.compile(r'"""[\s\S]*?"""|"(?:\\.|[^"\\])*"|\.\.\.|[_A-Za-z][_0-9A-Za-z]*|[-+.0-9eE]+|#[^\n]*|[^\s,]')


class SyntaxProblem(ValueError):
    """The text is no GraphQL that could be understood."""


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = [t for t in _TOKEN.findall(text) if not t.startswith("#")]
        self._at = 0
        self.fragments: dict[str, list[Any]] = {}

    def peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if not token or (expected is not None and token != expected):
            raise SyntaxProblem(f"Syntax Error: Expected {expected or 'a name'}, found {token or '<EOF>'}.")
        self._at += 1
        return token

    def skip_group(self) -> None:
        """A parenthesis with all that is in it."""
        depth = 0
        while True:
            mark = self.take()
            depth += (mark in "([{") - (mark in ")]}")
            if not depth:
                return

    def skip_to_braces(self) -> None:
        while self.peek() != "{":
            self.skip_group() if self.peek() == "(" else self.take()

    def fields(self) -> list[Any]:
        """[(alias, field, [...] or None) or ("...", fragment)]"""
        self.take("{")
        found: list[Any] = []
        while self.peek() != "}":
            name = self.take()
            if name == "...":
                if self.peek() in ("on", "@", "{"):
                    self.skip_to_braces()
                    found.extend(self.fields())
                else:
                    found.append(("...", self.take()))
                continue
            field = name
            if self.peek() == ":":
                self.take(":")
                field = self.take()
            if self.peek() == "(":
                self.skip_group()
            while self.peek() == "@":
                self.take("@")
                self.take()
                if self.peek() == "(":
                    self.skip_group()
            found.append((name, field, self.fields() if self.peek() == "{" else None))
        self.take("}")
        return found


def parse(text: str) -> tuple[str | None, Selection]:
    """(name of the operation, what it selects). Raises SyntaxProblem."""
    reader = _Reader(text)
    operation: str | None = None
    chosen: list[Any] | None = None
    while reader.peek():
        if reader.peek() == "fragment":
            reader.take()
            name = reader.take()
            reader.skip_to_braces()
            reader.fragments[name] = reader.fields()
            continue
        if reader.peek() != "{":
            if reader.take() != "query":
                raise SyntaxProblem("Syntax Error: only queries are answered.")
            if reader.peek() not in ("(", "{", "@"):
                operation = reader.take()
            reader.skip_to_braces()
        chosen = reader.fields()
    if chosen is None:
        raise SyntaxProblem("Syntax Error: Unexpected <EOF>.")
    return operation, _spread(chosen, reader.fragments)


def _spread(fields: list[Any], fragments: dict[str, list[Any]], depth: int = 0) -> Selection:
    if depth > 20:
        raise SyntaxProblem("fragments that contain themselves")
    selection: Selection = {}
    for entry in fields:
        if entry[0] == "...":
            if entry[1] not in fragments:
                raise SyntaxProblem(f'Unknown fragment "{entry[1]}".')
            selection |= _spread(fragments[entry[1]], fragments, depth + 1)
        else:
            name, field, below = entry
            selection[name] = (field, None if below is None else _spread(below, fragments, depth))
    return selection


def project(value: Any, selection: Selection | None) -> Any:
    """The value with only the fields selected; one that it lacks is null."""
    if selection is None or value is None:
        return value
    if isinstance(value, list):
        return [project(entry, selection) for entry in value]
    if not isinstance(value, dict):
        return value
    return {name: project(value.get(field), below) for name, (field, below) in selection.items()}
