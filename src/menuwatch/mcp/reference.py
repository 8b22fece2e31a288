"""The reference of the tools, made from the tools themselves:

python -m menuwatch.mcp.reference docs/reference/ai-tools.md
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from menuwatch.accounts.model import Permission
from menuwatch.mcp.answer import MAX_CHARACTERS, AnswerCoverage, AnswerFreshness, AnswerLimits
from menuwatch.mcp.resources import RESOURCES, VIEWS, field_rows
from menuwatch.mcp.tool import LONGEST_SECONDS, MOST_ROWS, Tool
from menuwatch.mcp.tools import TOOLS

_TAIL = ("notice", "freshness", "coverage", "limits")


def page() -> str:
    """The page, in Markdown."""
    lines = [
        "# Tools for AI clients",
        "",
        "The tools and resources of the MCP server ([Connect AI clients](../how-to/ai-clients.md)). All of them are read-only.",
        "This page is made by `python -m menuwatch.mcp.reference docs/reference/ai-tools.md`.",
        "",
        "| tool | purpose |",
        "|---|---|",
        *(f"| [{tool.name}](#{tool.name}) | {tool.title} |" for tool in TOOLS.values()),
        "",
        "## Every answer",
        "",
        f"An answer has at most {MOST_ROWS} rows and {MAX_CHARACTERS:,} characters. A statement takes at most {LONGEST_SECONDS} s.",
        "Besides the members listed with each tool, it has `notice` (why there is nothing, or what to bear in mind) and:",
        "",
    ]
    for name, shape in (("freshness", AnswerFreshness), ("coverage", AnswerCoverage), ("limits", AnswerLimits)):
        lines += [f"### {name}", "", *field_rows(shape), ""]
    lines += ["## Tools", ""]
    for tool in TOOLS.values():
        lines += _section(tool)
    lines += ["## Resources", "", "| resource | content |", "|---|---|"]
    lines += [f"| `{one.uri}` | {one.description} |" for one in (*RESOURCES, VIEWS)]
    return "\n".join([*lines, ""])


def _section(tool: Tool[Any]) -> list[str]:
    needed = sorted(tool.permissions - {Permission.READ})
    scopes = f" Requires the scope {' and '.join(f'`{one}`' for one in needed)} besides `read`." if needed else ""
    lines = [f"### {tool.name}", "", tool.description + scopes, ""]
    rows = [
        f"| `{name}` | {_type(part, tool.input_schema)} | {_default(name, part, tool.input_schema)} | {part.get('description', '')} |"
        for name, part in tool.input_schema.get("properties", {}).items()
    ]
    if rows:
        lines += ["| argument | type | default | meaning |", "|---|---|---|---|", *rows, ""]
    members = [name for name in tool.answer.__struct_encode_fields__ if name not in _TAIL]
    return [*lines, f"Answers with: {', '.join(f'`{name}`' for name in members)}.", ""]


def _type(part: dict[str, Any], schema: dict[str, Any]) -> str:
    if "$ref" in part:
        return _type(schema["$defs"][part["$ref"].rpartition("/")[2]], schema)
    if "anyOf" in part:
        return " or ".join(_type(one, schema) for one in part["anyOf"] if one.get("type") != "null")
    if "enum" in part:
        return ", ".join(f"`{value}`" for value in part["enum"])
    if part["type"] == "array":
        return f"list of {_type(part['items'], schema)}"
    bounds = [str(part[name]) for name in ("minimum", "exclusiveMinimum", "maximum") if name in part]
    large = any(len(bound) > 9 for bound in bounds)
    return f"{part['type']}, {' to '.join(bounds)}" if len(bounds) == 2 and not large else str(part["type"])


def _default(name: str, part: dict[str, Any], schema: dict[str, Any]) -> str:
    if name in schema.get("required", ()):
        return "required"
    value = part.get("default")
    return "" if value is None else f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
