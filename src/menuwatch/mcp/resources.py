"""What clients read before they ask: the data dictionary of the views for analysts, and the glossary of measures."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args, get_type_hints

from msgspec import Meta, Raw, Struct

from menuwatch.analytics.reports import Coverage, Distribution
from menuwatch.analytics.service import SOURCES
from menuwatch.db.pool import Pool
from menuwatch.mcp.tool import ToolError, reading
from menuwatch.ops import dictionary
from menuwatch.quality.labels import measure_label
from menuwatch.quality.measures import NAMES
from menuwatch.quality.service import StoreQuality

MEDIA_TYPE = "text/markdown"
DICTIONARY, GLOSSARY = "menuwatch://dictionary", "menuwatch://glossary"
VIEW_PREFIX = DICTIONARY + "/"
VIEW_TEMPLATE = VIEW_PREFIX + "{view}"


class ResourceInfo(NamedTuple):
    """One resource, as clients list it."""

    uri: str
    name: str
    title: str
    description: str


RESOURCES = (
    ResourceInfo(DICTIONARY, "dictionary", "Data dictionary", "The SQL views for analysts, one line each."),
    ResourceInfo(
        GLOSSARY, "glossary", "Glossary of measures", "What the figures of the reports and of data quality mean."
    ),
)
VIEWS = ResourceInfo(
    VIEW_TEMPLATE, "view", "SQL view", "The columns of one SQL view for analysts, with their types and meanings."
)


async def read(pool: Pool, uri: str) -> str:
    """A resource as Markdown; raises ToolError if there is none, or if the database is unreachable (the glossary does not need it)."""
    if uri == GLOSSARY:
        return glossary()
    if uri == DICTIONARY or uri.startswith(VIEW_PREFIX):
        async with reading(pool, uri[:100]) as conn:
            views = await dictionary.list_views(conn)
        if uri == DICTIONARY:
            rows = (f"| {VIEW_PREFIX}{view.name} | {view.meaning} |" for view in views)
            return "\n".join(["# SQL views for analysts", "", "| resource | rows |", "|---|---|", *rows, ""])
        for view in views:
            if view.name == uri.removeprefix(VIEW_PREFIX):
                return dictionary.page(view)
        names = ", ".join(view.name for view in views)
        raise ToolError(f"{uri[:100]!r}: no such view; use one of: {names}")
    known = ", ".join([*(one.uri for one in RESOURCES), VIEW_TEMPLATE])
    raise ToolError(f"{uri[:100]!r}: no such resource; use one of: {known}")


def glossary() -> str:
    """The glossary of measures, from the descriptions of the reports and their fields."""
    lines = [
        "# Glossary of measures",
        "",
        "Shares are from 0 to 1. Prices are in the currency of the store and are not converted. Days are UTC.",
        "",
    ]
    seen: set[type[Struct]] = set()
    for source in SOURCES.values():
        lines += [f"## {source.summary}", "", " ".join(source.description.split()), ""]
        if source.row not in seen:
            lines += [*field_rows(source.row), ""]
        seen.add(source.row)
    for shape, title in (
        (Coverage, "Coverage of a row"),
        (Distribution, "Distribution"),
        (StoreQuality, "Data quality of a store"),
    ):
        lines += [f"## {title}", "", shape.__doc__ or "", "", *field_rows(shape), ""]
    lines += ["## Measures of data quality", "", "| measure | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {measure_label(name)} |" for name in NAMES]
    return "\n".join([*lines, ""])


def field_rows(shape: type[Struct]) -> list[str]:
    """The fields of a shape that have a description, as rows of a table."""
    hints = get_type_hints(shape, include_extras=True)
    names = dict(zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True))
    rows = [(names[name], _description(hints[name])) for name in shape.__struct_fields__]
    return ["| field | meaning |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in rows if text)]


def _description(hint: Any) -> str | None:
    metas = [one for one in get_args(hint)[1:] if isinstance(one, Meta)]
    given = next((one.description for one in metas if one.description), None)
    return given or ("An object." if get_args(hint)[:1] == (Raw,) else None)
