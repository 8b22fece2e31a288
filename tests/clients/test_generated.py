"""The generated part of the Python client."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from menuwatch_client import AsyncClient, Client, models
from tests.api.conftest import description

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 300_000


def _generator() -> Any:
    spec = importlib.util.spec_from_file_location("client_generator", ROOT / "clients" / "python" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_files_are_those_that_the_description_gives() -> None:
    files = _generator().generated(json.loads((ROOT / "openapi.json").read_text(encoding="utf-8")))
    assert len(files) == 4
    for path, text in files.items():
        same = path.read_text(encoding="utf-8") == text
        assert same, f"{path.name} is out of date: run `make openapi`"
        assert len(text.encode()) < LARGEST, path.name


def _docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Column and content of each text that stands as a statement: docstrings, and those of attributes and aliases."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.col_offset, node.value.value


def test_docstrings_are_filled_to_the_line_limit() -> None:
    limit = 118
    count = 0
    for name in ("models.py", "sync_methods.py", "async_methods.py", "list_pages.py"):
        source = (ROOT / "clients" / "python" / "src" / "menuwatch_client" / name).read_text(encoding="utf-8")
        for column, text in _docstrings(ast.parse(source)):
            count += 1
            first, *others = text.split("\n")
            lines = [" " * (column + 3) + first, *others]
            assert first == first.lstrip() != "", text
            if others:
                assert lines.pop() == " " * column, f"the closing quotes are on a line of their own: {text!r}"
            else:
                assert column + len(text) + 6 <= limit, text
            assert len(max(lines, key=len)) <= limit, text
            for line, following in pairwise(lines):
                indent = len(following) - len(following.lstrip())
                assert line == line.rstrip(), text
                assert "\n\n\n" not in text
                if line == "" or following == "" or line.strip() == "Args:":
                    assert following == "" or indent >= column, text
                elif (within := indent - column) == 4:
                    assert following.lstrip().split(" ")[0].endswith(":"), f"an argument: {text!r}"
                else:
                    assert within in (0, 8), text
                    word = following.split()[0]
                    assert len(f"{line} {word}") > limit, f"{word!r} has room on the line before: {text!r}"
    assert count > 2_000


def test_docstrings_begin_with_their_first_sentence_and_have_every_word() -> None:
    for operations in description()["paths"].values():
        for operation in operations.values():
            if operation["operationId"] == "stream_events":
                continue
            text = getattr(Client, operation["operationId"]).__doc__
            said, _, arguments = text.partition("Args:\n")
            assert said.startswith(f"{operation['summary']}.")
            assert said.split() == f"{operation['summary']}. {operation.get('description', '')}".split()
            assert ("limit: " in arguments) == (
                "limit" in inspect.signature(getattr(Client, operation["operationId"])).parameters
            )
    text = models.MatchChange.__doc__
    assert text == "Canonical products that were merged, or one that was split."


def test_texts_of_several_sentences_and_lines_become_paragraphs() -> None:
    module = _generator()
    assert module._docstring("One.  Two\nthree.", "    ") == '    """One. Two three."""\n'
    assert module._docstring('A "word"', "") == '"""A "word" """\n'
    long = f"First, e.g. {'a ' * 30}end.\nSecond\n{'b ' * 70}."
    assert module._docstring(long, "  ") == (
        f'  """First, e.g. {"a " * 30}end.\n\n  Second {"b " * 54}b\n  {"b " * 15}.\n  """\n'
    )
    assert (
        module._docstring("Do.", "", arguments=[("at", "When.\nUTC.")]) == '"""Do.\n\nArgs:\n    at: When. UTC.\n"""\n'
    )


def test_every_operation_has_a_method_with_its_parameters() -> None:
    """Read from the description that the app gives, not from the file."""
    left_out = {"If-None-Match", "Range", "Last-Event-ID"}
    names = {"If-Match": "if_match", "Idempotency-Key": "idempotency_key", "from": "from_"}
    count = 0
    for operations in description()["paths"].values():
        for operation in operations.values():
            name = operation["operationId"]
            if name == "stream_events":
                continue
            count += 1
            properties = (
                next(iter(operation["responses"].values()))
                .get("content", {})
                .get("application/json", {})
                .get("schema", {})
                .get("properties", {})
            )
            wanted = {
                names.get(parameter["name"], parameter["name"])
                for parameter in operation.get("parameters", ())
                if parameter["in"] != "cookie" and parameter["name"] not in left_out
            }
            if {"items", "next"} <= set(properties):
                wanted.remove("fields")
            if "requestBody" in operation:
                wanted.add("body")
            for client in (Client, AsyncClient):
                method = getattr(client, name)
                assert set(inspect.signature(method).parameters) - {"self"} == wanted, name
    assert count == 220


def test_every_model_can_be_decoded() -> None:
    shapes = [
        one
        for one in vars(models).values()
        if isinstance(one, type) and issubclass(one, msgspec.Struct) and one is not msgspec.Struct
    ]
    assert len(shapes) > 250
    for shape in shapes:
        msgspec.json.Decoder(shape)
