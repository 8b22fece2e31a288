"""Types of the fields of response shapes, with their OpenAPI annotations."""

from __future__ import annotations

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


def to_row(struct: msgspec.Struct) -> dict[str, Any]:
    """The fields of a Struct by their names on the wire, values as they are."""
    return dict(zip(struct.__struct_encode_fields__, msgspec.structs.astuple(struct), strict=True))
