"""What clients read: tools, their schemas, and resources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mcp.shared.exceptions import MCPError

from menuwatch.db.pool import Pool
from menuwatch.mcp.tools import TOOLS
from tests.mcp.clients import context, endpoint, over_http
from tests.users_fixture import bearer

ROOT = Path(__file__).resolve().parents[2]
LONGEST_DESCRIPTION = 240


async def test_tools_say_that_they_only_read_and_describe_everything(pool: Pool, tmp_path: Path) -> None:
    async with endpoint(context(pool, tmp_path)) as port, over_http(port, await bearer(pool)) as asking:
        tools = (await asking.client.list_tools()).tools
    assert [tool.name for tool in tools] == list(TOOLS)
    for tool in tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        assert not tool.annotations.destructive_hint
        assert tool.description
        assert len(tool.description) <= LONGEST_DESCRIPTION, tool.name
        assert tool.input_schema["additionalProperties"] is False
        for name, argument in tool.input_schema.get("properties", {}).items():
            assert argument.get("description"), (tool.name, name)
        assert tool.output_schema is not None
        assert tool.output_schema["type"] == "object"
        assert {"freshness", "coverage", "limits", "notice"} <= set(tool.output_schema["required"])
        for schema in (tool.input_schema, tool.output_schema):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert _broken_references(schema) == [], tool.name


def _broken_references(schema: dict[str, Any]) -> list[str]:
    known = schema.get("$defs", {})
    found = []

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            if isinstance(part.get("$ref"), str) and part["$ref"].removeprefix("#/$defs/") not in known:
                found.append(part["$ref"])
            for value in part.values():
                walk(value)
        elif isinstance(part, list):
            for value in part:
                walk(value)

    walk(schema)
    return found


async def test_resources(pool: Pool, tmp_path: Path) -> None:
    async with endpoint(context(pool, tmp_path)) as port, over_http(port, await bearer(pool)) as asking:
        client = asking.client
        listed = {str(one.uri) for one in (await client.list_resources()).resources}
        assert listed == {"menuwatch://dictionary", "menuwatch://glossary"}
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "menuwatch://dictionary/{view}"
        views = [page.stem for page in (ROOT / "docs" / "reference" / "sql").glob("*.md") if page.stem != "README"]
        overview = await _text(client, "menuwatch://dictionary")
        for view in views:
            assert f"menuwatch://dictionary/{view} |" in overview
            page = (ROOT / "docs" / "reference" / "sql" / f"{view}.md").read_text(encoding="utf-8")
            assert await _text(client, f"menuwatch://dictionary/{view}") == page
        glossary = await _text(client, "menuwatch://glossary")
        for word in (
            "Price dispersion of canonical products",
            "`special_share`",
            "`never_asked_share`",
            "`level.price`",
        ):
            assert word in glossary
        for unknown in ("menuwatch://dictionary/nothing", "menuwatch://x", "file:///etc/passwd"):
            with pytest.raises(MCPError, match=r"no such (view|resource); use one of: "):
                await client.read_resource(unknown)


async def _text(client: Any, uri: str) -> str:
    (contents,) = (await client.read_resource(uri)).contents
    return str(contents.text)
