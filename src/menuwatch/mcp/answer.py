"""What every answer carries: how fresh its data is, how many stores it covers, and where it was cut off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta, Raw, Struct

from menuwatch.core.shapes import REF, Instant, as_encoded, doc, embedded_schemas

MAX_CHARACTERS = 60_000
"""Longest answer, in characters of JSON."""

CutBy = Literal["rows", "characters"]


class AnswerFreshness(Struct, kw_only=True, frozen=True):
    """When the data of an answer was observed."""

    newest_observed_at: Annotated[
        Instant | None,
        doc("Last crawl of the store that was crawled last; of the state of the system: the time of the answer."),
    ]
    oldest_observed_at: Annotated[Instant | None, doc("Last crawl of the store that was crawled longest ago.")]
    refreshed_at: Annotated[
        Instant | None, doc("When the report was computed; null for answers from the current data.")
    ]


class AnswerCoverage(Struct, kw_only=True, frozen=True):
    """How many stores an answer covers."""

    scope: Annotated[str, doc("Which stores: a state, an area, a store, or all.")]
    stores: Annotated[int, doc("Stores of the scope whose menu is known.")]
    partial: Annotated[int, doc("Of `stores`, those whose last menu is only part of the whole one.")]
    known_stores: Annotated[int, doc("Known stores of the scope, crawled or not.")]


class AnswerLimits(Struct, kw_only=True, frozen=True):
    """How much of the result the answer holds."""

    rows: Annotated[int, doc("Rows in `items`.")]
    max_rows: Annotated[int, doc("Maximum number of rows in one answer: `limit` of the request.")]
    max_characters: Annotated[int, doc("Maximum number of characters in one answer.")]
    is_cut: Annotated[bool, doc("Whether there are more rows than these.")]
    cut_by: Annotated[CutBy | None, doc("Which of the two limits cut the answer; null if it is complete.")]
    next: Annotated[
        str | None, doc("`cursor` of the request for the rows that follow; null if the answer is complete.")
    ]
    how_to_get_more: Annotated[str | None, doc("What to ask for next; null if the answer is complete.")]


_TAIL: list[tuple[str, Any]] = [
    ("notice", Annotated[str | None, doc("Why there is nothing, or what to bear in mind; null if nothing.")]),
    ("freshness", AnswerFreshness),
    ("coverage", Annotated[AnswerCoverage | None, doc("Null for answers that are not about stores.")]),
    ("limits", AnswerLimits),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a tool found: rows (`items` of the answer), further members of the answer, and the key of the next page (None at the
    end)."""

    rows: Sequence[Any] = ()
    members: dict[str, Any] = field(default_factory=dict)
    next: tuple[Any, ...] | None = None
    newest: datetime | None = None
    oldest: datetime | None = None
    refreshed_at: datetime | None = None
    coverage: AnswerCoverage | None = None
    notice: str | None = None


def answer_shape(name: str, row: Any, members: dict[str, Any]) -> type[Struct]:
    """The type of a tool's answer: `items` of that type (None: no items), further members, and what every answer carries."""
    fields: list[Any] = [*members.items()]
    if row is not None:
        fields.append(("items", list[row]))
    return msgspec.defstruct(name, [*fields, *_TAIL], kw_only=True, frozen=True)


def in_brief(shape: type[Struct], name: str, *without: str, **others: Any) -> type[Struct]:
    """A shape without some of its fields, so that more rows fit into an answer; `others` are the types of fields that differ or come
    on top."""
    hints = get_type_hints(shape, include_extras=True)
    encoded = dict(zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True))
    assert not set(without) - hints.keys(), f"{shape.__name__} has no {set(without) - hints.keys()}"
    kept = {field: hints[field] for field in shape.__struct_fields__ if field not in without}
    fields: list[Any] = list({**kept, **others}.items())
    made = msgspec.defstruct(name, fields, kw_only=True, frozen=True, rename=encoded)
    made.__doc__ = shape.__doc__
    return made


def as_brief(brief: type[Struct], row: Any, **more: Any) -> Any:
    """The row as that shape; `more` are fields that differ."""
    return brief(**{name: more[name] if name in more else getattr(row, name) for name in brief.__struct_fields__})


_encode = msgspec.json.Encoder(decimal_format="number").encode


def encode(value: Any) -> bytes:
    """JSON with exact numbers."""
    return _encode(value)


def either(*shapes: type[Struct]) -> Any:
    """The type of rows that have one of these shapes; such rows are put in as `Raw(encode(row))`."""
    refs, components = msgspec.json.schema_components(shapes, ref_template=REF)
    embedded_schemas.update(components)
    return Annotated[Raw, Meta(extra_json_schema={"anyOf": list(refs)})]


def schema_of(shape: type[Struct]) -> dict[str, Any]:
    """The JSON schema of an answer, with an object at its root and the shapes that it uses in `$defs`."""
    (root,), components = msgspec.json.schema_components([shape], ref_template=REF)
    assert root["$ref"].endswith(shape.__name__)
    known = {**embedded_schemas, **components}
    used: dict[str, Any] = {}
    schema = _local(as_encoded(components[shape.__name__]), known, used)
    schema.pop("title", None)
    for common in _COMMON & used.keys():
        used[common] = _without_descriptions(used[common])
    return {**schema, "$defs": used} if used else dict(schema)


_COMMON = {"AnswerFreshness", "AnswerCoverage", "AnswerLimits"}
"""Shapes that the instructions of the server describe, instead of the schema of every tool."""


def _without_descriptions(schema: Any) -> Any:
    if isinstance(schema, dict):
        kept = {key: value for key, value in schema.items() if not (key == "description" and isinstance(value, str))}
        return {key: _without_descriptions(value) for key, value in kept.items()}
    return [_without_descriptions(part) for part in schema] if isinstance(schema, list) else schema


_PREFIX = REF.format(name="")


def _local(schema: Any, known: dict[str, Any], used: dict[str, Any]) -> Any:
    """The schema with references to `$defs`; what it refers to is put into `used`."""
    if isinstance(schema, list | tuple):
        return [_local(part, known, used) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {}
    for key, value in schema.items():
        if key == "$ref" and isinstance(value, str) and value.startswith(_PREFIX):
            name = value.removeprefix(_PREFIX)
            if name not in used:
                used[name] = {}  # a shape may refer to itself
                used[name] = _local(as_encoded(known[name]), known, used)
            found[key] = f"#/$defs/{name}"
        else:
            found[key] = _local(value, known, used)
    return found
