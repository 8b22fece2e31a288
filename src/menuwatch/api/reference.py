"""Pages for people who read the API: `/docs`, made from the OpenAPI description, and one page for each kind of problem.

They are plain HTML that loads nothing, so they work on a machine without a network. Links are relative: the server may lie below a
path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape
from importlib import resources
from typing import Annotated, Any

from fastapi import FastAPI, Path
from starlette.responses import HTMLResponse

from menuwatch.api import access, problems
from menuwatch.api.problems import MEDIA_TYPE, Missing

Schema = Mapping[str, Any]

KINDS = (*problems.KINDS, *access.KINDS)
"""Every kind of problem that has a page."""


def _words(text: str) -> str:
    """Plain text with `code` and **bold** as HTML."""
    shown = escape(" ".join(text.split()), quote=False)
    shown = re.sub(r"`([^`]+)`", r"<code>\1</code>", shown)
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", shown)


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{_words(part)}</p>" for part in text.split("\n\n") if part.strip())


def _reference(schema: Schema) -> str | None:
    ref = schema.get("$ref")
    return None if ref is None else str(ref).rsplit("/", 1)[1]


def type_of(schema: Schema) -> str:
    """What a value may be, in words, as HTML."""
    if name := _reference(schema):
        return f'<a href="#schema-{escape(name)}">{escape(name)}</a>'
    if "const" in schema:
        return f"<code>{escape(str(schema['const']))}</code>"
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(type_of(one) for one in schema["anyOf"])
    if "allOf" in schema:
        return " &amp; ".join(type_of(one) for one in schema["allOf"])
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {type_of(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"object of {type_of(schema['additionalProperties'])}"
    if "format" in schema:
        kind += f" ({schema['format']})"
    return escape(kind) + _bounds(schema)


def _bounds(schema: Schema) -> str:
    words = {"minimum": "≥", "maximum": "≤", "minLength": "at least", "maxLength": "at most"}
    said = [
        f"{word} {schema[key]}"
        for key, word in words.items()
        if key in schema and schema[key] not in (2**31 - 1, 2**63 - 1)
    ]
    return f' <span class="dim">{escape(", ".join(said))}</span>' if said else ""


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>'


def _default(schema: Schema) -> str:
    if schema.get("default") is None:
        return ""
    return f' <span class="dim">Default {_words("`" + str(schema["default"]) + "`")}.</span>'


def _parameters(operation: Schema) -> str:
    parameters = operation.get("parameters", [])
    if not parameters:
        return ""
    rows = [
        (
            f"<code>{escape(p['name'])}</code>" + (" *" if p.get("required") else ""),
            escape(p["in"]),
            type_of(p["schema"]),
            _words(p.get("description") or p["schema"].get("description", "")) + _default(p["schema"]),
        )
        for p in parameters
    ]
    return "<h4>Parameters</h4>" + _table(("Name", "In", "Type", "Meaning"), rows)


def _content(holder: Schema) -> str:
    kinds = [
        f"{type_of(body.get('schema', {}))} <code>{escape(media)}</code>"
        for media, body in holder.get("content", {}).items()
    ]
    return ", ".join(kinds)


def _responses(operation: Schema) -> str:
    rows = [
        (
            "else" if status == "default" else escape(status),
            _content(response) or "—",
            _words(response.get("description", "")),
        )
        for status, response in operation["responses"].items()
    ]
    return "<h4>Answers</h4>" + _table(("Status", "Content", "Meaning"), rows)


def _operation(path: str, method: str, operation: Schema) -> str:
    body = operation.get("requestBody")
    return (
        f'<details id="{escape(operation["operationId"])}"><summary>'
        f'<span class="method {escape(method)}">{escape(method.upper())}</span> <span class="path">{escape(path)}</span>'
        f"<h3>{_words(operation.get('summary', ''))}</h3></summary>"
        f"{_paragraphs(operation.get('description', ''))}{_parameters(operation)}"
        + (f"<h4>Body</h4><p>{_content(body)}</p>" if body else "")
        + f"{_responses(operation)}</details>"
    )


def _schema(name: str, schema: Schema) -> str:
    required = set(schema.get("required", ()))
    fields = schema.get("properties", {})
    rows = [
        (
            f"<code>{escape(field)}</code>" + (" *" if field in required else ""),
            type_of(spec),
            _words(spec.get("description", "")) + _default(spec),
        )
        for field, spec in fields.items()
    ]
    inside = _table(("Field", "Type", "Meaning"), rows) if rows else f"<p>{type_of(schema)}</p>"
    return (
        f'<details id="schema-{escape(name)}"><summary><span class="path">{escape(name)}</span></summary>'
        f"{_paragraphs(schema.get('description', ''))}{inside}</details>"
    )


# Opens what a link leads to, and prints everything open.
_SCRIPT = """
const open = () => {
  const it = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (it && it.tagName === 'DETAILS') it.open = true;
};
addEventListener('hashchange', open); open();
addEventListener('beforeprint', () => document.querySelectorAll('details').forEach((it) => { it.open = true; }));
"""


def _page(title: str, body: str, script: str = "") -> str:
    style = resources.files(__package__).joinpath("reference.css").read_text(encoding="utf-8")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{style}</style></head>"
        f"<body>{body}{f'<script>{script}</script>' if script else ''}</body></html>"
    )


def render(document: Mapping[str, Any]) -> str:
    """The reference page of an OpenAPI document."""
    info = document["info"]
    by_tag: dict[str, list[tuple[str, str, Schema]]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            by_tag[operation["tags"][0]].append((path, method, operation))
    contents = "".join(
        f'<li><a href="#{escape(op["operationId"])}">{_words(op.get("summary", ""))}</a></li>'
        for operations in by_tag.values()
        for _, _, op in operations
    )
    groups = "".join(
        f'<h2 id="tag-{escape(tag["name"])}">{escape(tag["name"].capitalize())}</h2>{_paragraphs(tag["description"])}'
        + "".join(_operation(*one) for one in by_tag[tag["name"]])
        for tag in document["tags"]
    )
    schemas = "".join(_schema(name, schema) for name, schema in document["components"]["schemas"].items())
    problems = "".join(
        f'<li><a href="problems/{kind.slug()}">{kind.status} {escape(kind.title)}</a></li>' for kind in KINDS
    )
    return _page(
        f"{info['title']} API",
        f"<header><h1>{escape(info['title'])} API</h1>"
        f'<p class="dim">{escape(info.get("summary", ""))} Version {escape(info["version"])}. '
        f'The same for machines: <a href="openapi.json">openapi.json</a>.</p>{_paragraphs(info["description"])}'
        f'<nav aria-label="Operations"><ul>{contents}</ul></nav></header><main>{groups}'
        f'<h2 id="schemas">Types</h2><p>Fields marked * are always there.</p>{schemas}'
        f'<h2 id="problems">Problems</h2><p>Errors have the media type <code>{MEDIA_TYPE}</code>.</p><ul>{problems}</ul></main>'
        "<footer></footer>",
        _SCRIPT,
    )


def render_problem(slug: str) -> str | None:
    """The page of one kind of problem, None where there is no such kind."""
    for kind in KINDS:
        if kind.slug() == slug:
            return _page(
                kind.title,
                f"<header><h1>{escape(kind.title)}</h1>"
                f'<p class="dim">Status {kind.status}, type <code>/problems/{slug}</code></p></header>'
                f'<main>{_paragraphs(kind.__doc__ or "")}<p><a href="../docs">API reference</a></p></main>',
            )
    return None


def install(app: FastAPI) -> None:
    """Adds the pages. They are no part of the API, so the description does not list them."""

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(render(app.openapi()))

    @app.get("/problems/{slug}", include_in_schema=False)
    async def problem(slug: Annotated[str, Path(max_length=60)]) -> HTMLResponse:
        page = render_problem(slug)
        if page is None:
            raise Missing("there is no such kind of problem")
        return HTMLResponse(page)
