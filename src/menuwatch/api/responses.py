"""Encodes responses: JSON with exact numbers, an ETag, and `304` for a matching `If-None-Match`.

Amounts are JSON numbers written digit by digit as they are stored (`43.10` stays `43.10`), never through binary floating point.
Clients that need exact values parse them as decimals. Times are ISO 8601 in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

import msgspec
from fastapi import Depends, Header, Request, Response

from menuwatch.api.problems import Changed, InvalidRequest
from menuwatch.core.shapes import REF, as_encoded, embedded_schemas

_encode = msgspec.json.Encoder(decimal_format="number").encode


def etag_of(body: bytes) -> str:
    """A strong entity tag of those bytes."""
    return f'"{blake2b(body, digest_size=16).hexdigest()}"'


def tag_of(value: Any) -> str:
    """The entity tag that `answer` would give this value."""
    return etag_of(_encode(value))


def matches(header: str | None, etag: str) -> bool:
    """Whether an If-None-Match or If-Match header names this entity tag (weak comparison, as RFC 9110 section 13.1.2 has it)."""
    if header is None:
        return False
    if header.strip() == "*":
        return True
    return etag in {part.strip().removeprefix("W/") for part in header.split(",")}


IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description="ETag of the resource as you read it; the request is refused if the resource was changed since.",
    ),
]


def check_if_match(if_match: str | None, current: Any, name: str) -> None:
    """Raises Changed, with the current representation, if that is another version. The caller has locked the resource."""
    if if_match is not None and not matches(if_match, tag_of(current)):
        raise Changed(f"{name} was changed since you read it: fetch it again", current=current)


_PLACES = frozenset({"Location", "Content-Location"})


def _at(request: Request, path: str) -> str:
    """The path below the prefix of PUBLIC_URL, where there is one."""
    root: str = request.scope.get("root_path", "")
    return root + path


def answer(request: Request, value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """The value as JSON."""
    body = _encode(value)
    more = {name: _at(request, text) if name in _PLACES else text for name, text in (headers or {}).items()}
    if request.method == "GET" and status == 200:
        etag = etag_of(body)
        more |= {"ETag": etag, "Cache-Control": "private, no-cache"}
        if matches(request.headers.get("if-none-match"), etag):
            return Response(status_code=304, headers=more)
    return Response(body, status_code=status, headers=more, media_type="application/json")


def page(request: Request, items: Sequence[Any], cursor: str | None, **more: Any) -> Response:
    """One page of a list: `items`, and `next` to ask for the page behind it; the same as a Link header. Items have the members that
    `fields` of the request names."""
    headers = {}
    if (fields := getattr(request.state, "fields", None)) is not None:
        whole = msgspec.json.decode(_encode(items), type=list[dict[str, msgspec.Raw]])
        items = [{name: value for name, value in item.items() if name in fields} for item in whole]
    if cursor is not None:
        query = [(k, v) for k, v in parse_qsl(request.url.query, keep_blank_values=True) if k != "cursor"]
        headers["Link"] = f'<{request.url.path}?{urlencode([*query, ("cursor", cursor)])}>; rel="next"'
    return answer(request, {"items": items, "next": cursor, **more}, headers=headers)


class _FieldSelection:
    """Dependency of a list of these shapes: notes for `page` which members the parameter `fields` names (api/inputs.py)."""

    def __init__(self, shapes: Sequence[type]) -> None:
        self._shapes = shapes

    async def __call__(self, request: Request) -> None:
        """Raises InvalidRequest for an unknown name."""
        text = request.query_params.get("fields")
        if text is None:
            return
        known = self._known
        names = dict.fromkeys(part.strip() for part in text.split(","))
        if unknown := [name for name in names if name not in known]:
            listed = ", ".join(f"`{name[:100]}`" if name else "an empty name" for name in unknown[:10])
            raise InvalidRequest.parameter("fields", f"unknown: {listed}. Use some of {', '.join(known)}")
        request.state.fields = frozenset(names)

    @cached_property
    def _known(self) -> list[str]:
        return list(dict.fromkeys(name for shape in self._shapes for name in members_of(shape)))


_shapes: dict[str, type] = {}


def returns(shape: type, status: int = 200, also: Mapping[int, str] | None = None) -> dict[str, Any]:
    """Arguments for a route: it answers `status` with this Struct or dataclass, from which its OpenAPI schema is made. `also`: other
    statuses that come with the same shape, and when."""
    assert _shapes.setdefault(shape.__name__, shape) is shape, f"two response shapes are named {shape.__name__}"
    return _documented({"$ref": REF.format(name=shape.__name__)}, status, also)


def returns_page(*items: type, **more: Any) -> dict[str, Any]:
    """Arguments for a route that answers with `page(…)` of items of these shapes; `more` are JSON schemas of further members."""
    for item in items:
        assert _shapes.setdefault(item.__name__, item) is item, f"two response shapes are named {item.__name__}"
    refs = [{"$ref": REF.format(name=item.__name__)} for item in items]
    members = {
        "items": {"type": "array", "items": refs[0] if len(refs) == 1 else {"anyOf": refs}},
        "next": {
            "anyOf": [{"type": "string"}, {"type": "null"}],
            "description": "Cursor of the next page; null on the last page.",
        },
        **more,
    }
    route = _documented({"type": "object", "required": list(members), "properties": members}, 200)
    return route | {"dependencies": [Depends(_FieldSelection(items))]}


def members_of(shape: type) -> dict[str, Any]:
    """The JSON schemas of a shape's members, for a page that has them beside its items."""
    _, components = msgspec.json.schema_components([shape], ref_template=REF)
    return dict(as_encoded(components[shape.__name__]["properties"]))


def _documented(schema: dict[str, Any], status: int, also: Mapping[int, str] | None = None) -> dict[str, Any]:
    content = {"application/json": {"schema": schema}}
    described = {status: "Successful response.", **(also or {})}
    responses = {code: {"description": text, "content": content} for code, text in described.items()}
    return {"response_model": None, "status_code": status, "responses": responses}


def response_schemas(*others: type) -> dict[str, Any]:
    """The JSON schema of `others` and of every shape that a route returns, by component name."""
    _, components = msgspec.json.schema_components([*_shapes.values(), *others], ref_template=REF)
    return {name: as_encoded(schema) for name, schema in (embedded_schemas | components).items()}
