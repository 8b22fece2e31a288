"""The generated part of the Python client."""

from __future__ import annotations

import importlib.util
import inspect
import json
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
