"""Types of the fields of response shapes, with their OpenAPI annotations."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw

Instant = Annotated[datetime, Meta(tz=True)]
"""A time with its offset, written as ISO 8601 in UTC."""

JsonObject = Annotated[Raw, Meta(extra_json_schema={"type": "object"})]
"""A JSON object of the database, passed through undecoded."""


def doc(text: str) -> Meta:
    """The OpenAPI description of a field: unit, what null means, meaning beyond its name."""
    return Meta(description=text)


REF = "#/components/schemas/{name}"
embedded_schemas: dict[str, Any] = {}
"""Components of what `json_of` describes, by name."""


def json_of(shape: Any) -> Meta:
    """For a `Raw` field: JSON of the database that is passed through undecoded and has this shape."""
    (schema,), components = msgspec.json.schema_components([shape], ref_template=REF)
    embedded_schemas.update(components)
    return Meta(extra_json_schema=schema)


def as_encoded(schema: Any) -> Any:
    """The JSON schema of what is encoded with decimals as numbers, while msgspec's own schema declares strings."""
    if isinstance(schema, Mapping):
        if schema.get("format") == "decimal":
            return {**schema, "type": "number"}
        return {k: as_encoded(v) for k, v in schema.items()}
    if isinstance(schema, list | tuple):
        return [as_encoded(part) for part in schema]
    return schema


def to_row(struct: msgspec.Struct) -> dict[str, Any]:
    """The fields of a Struct by their names on the wire, values as they are."""
    return dict(zip(struct.__struct_encode_fields__, msgspec.structs.astuple(struct), strict=True))
