"""Holds answers to their description: every value has the type that openapi.json gives it, and no field is undescribed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

Json = Any


def _find(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


_TYPES: dict[str, Any] = {
    "string": lambda v: isinstance(v, str),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}


def faults(document: Mapping[str, Any], schema: Mapping[str, Any], value: Json, where: str = "$") -> list[str]:
    """What about the value is not as described."""
    schema = _find(document, schema)
    if "anyOf" in schema:
        tries = [faults(document, one, value, where) for one in schema["anyOf"]]
        return [] if any(not found for found in tries) else min(tries, key=len)
    if "const" in schema:
        return [] if value == schema["const"] else [f"{where}: {value!r} is not {schema['const']!r}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where}: {value!r} is none of {schema['enum']}"]
    kind = schema.get("type")
    if isinstance(kind, list):
        return faults(document, {"anyOf": [{**schema, "type": one} for one in kind]}, value, where)
    if kind is not None and not _TYPES[kind](value):
        return [f"{where}: {value!r} is no {kind}"]
    if schema.get("format") == "date-time" and datetime.fromisoformat(value).utcoffset() is None:
        return [f"{where}: {value!r} has no offset"]
    found = []
    if kind == "array":
        for i, one in enumerate(value):
            found += faults(document, schema.get("items", {}), one, f"{where}[{i}]")
    if kind == "object":
        fields = schema.get("properties", {})
        rest = schema.get("additionalProperties", not fields)
        found += [f"{where}: {name} is missing" for name in schema.get("required", ()) if name not in value]
        for name, one in value.items():
            if name in fields:
                found += faults(document, fields[name], one, f"{where}.{name}")
            elif rest is False:
                found.append(f"{where}: {name} is not described")
            elif isinstance(rest, Mapping):
                found += faults(document, rest, one, f"{where}.{name}")
    return found


def operation(document: Mapping[str, Any], method: str, path: str) -> Mapping[str, Any] | None:
    """The description of what answers there; fixed paths go before patterns."""
    for template in sorted(document["paths"], key=lambda t: t.count("{")):
        pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template))
        if re.fullmatch(pattern, path) and method.lower() in document["paths"][template]:
            found: Mapping[str, Any] = document["paths"][template][method.lower()]
            return found
    return None


def check(document: Mapping[str, Any], method: str, path: str, status: int, media: str, value: Json) -> None:
    """Fails where an answer with a JSON body is not as described."""
    described = operation(document, method, path)
    if described is None:
        assert status in (404, 405), f"{method} {path} is not described"
        return
    responses = described["responses"]
    response = responses.get(str(status)) or responses.get("default")
    assert response is not None, f"{method} {path}: status {status} is not described"
    assert media in response["content"], f"{method} {path} {status}: {media} is not described"
    wrong = faults(document, response["content"][media]["schema"], value)
    assert not wrong, f"{method} {path} {status}: {wrong[:5]}"
