"""Hostile arguments: never an internal error, always a clear message, and nothing is written."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from menuwatch.db.pool import open_pool
from menuwatch.mcp.answer import MAX_CHARACTERS
from menuwatch.mcp.tool import Tool, ToolError
from menuwatch.mcp.tools import TOOLS
from tests.mcp.clients import Failed, context, over_stdio
from tests.mcp.proof import Market

HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**40, 1.5, -0.0, 1e308, "", " ", "\x00", "\ud800", "x" * 10_000,
    "'; DROP TABLE users; --", "%", "_", "\\", "../../etc/passwd", "{}", "[]", "null", "NM", "all", "unknown", "24h", "999999w",
    "2026-02-30", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "35.08,-106.65", "91,181", "-0,-0", "87501",
    "flower:3.5 g", "1:3.5 g*99", "🌿", [], [[]], {}, {"a": {"b": []}}, ["flower:3.5 g"] * 40, ["x"], [None], "WyJhYmMiLFsxXV0", "W10",
    "=", "infinity", "NaN", "1e400", "2026-11-20T10:00:00 02:00",
)  # fmt: skip


def _valid(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that the schema of an argument allows."""
    if "anyOf" in schema:
        return st.one_of([_valid(one) for one in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "const" in schema:
        return st.just(schema["const"])
    kind = schema.get("type")
    if kind == "null":
        return st.none()
    if kind == "boolean":
        return st.booleans()
    if kind == "integer":
        return st.integers(schema.get("minimum", -(2**70)), schema.get("maximum", 2**70))
    if kind == "number":
        return st.floats(schema.get("minimum", 0), schema.get("maximum", 500), allow_nan=False)
    if kind == "array":
        return st.lists(_valid(schema["items"]), max_size=5)
    assert kind == "string", schema
    likely = st.sampled_from(
        ["NM", "CO", "all", "24h", "7d", "2026-11-20", "Santa Fe, NM", "35.1,-106.6", "mesa farms", "flower:3.5 g"]
    )
    return likely | st.text(max_size=30)


def _arguments(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    values = {
        name: (_valid(_resolved(one, schema)) | st.sampled_from(HOSTILE))
        for name, one in schema.get("properties", {}).items()
    }
    required = {name: values.pop(name) for name in schema.get("required", ())}
    known = st.fixed_dictionaries(required, optional=values)
    extra = st.dictionaries(st.text(max_size=8), st.sampled_from(HOSTILE), max_size=1)
    return st.builds(lambda a, b: b | a, known, st.just({}) | extra)


def _resolved(part: Any, schema: dict[str, Any]) -> Any:
    if isinstance(part, dict):
        if "$ref" in part:
            return _resolved(schema["$defs"][part["$ref"].rpartition("/")[2]], schema)
        return {key: _resolved(value, schema) for key, value in part.items()}
    return [_resolved(one, schema) for one in part] if isinstance(part, list) else part


_TABLES = """
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg_toast%' ORDER BY 1"""


def _dump(url: str) -> list[tuple[Any, ...]]:
    """How many rows every table has, and a hash of them all."""
    with psycopg.connect(url, autocommit=True) as conn:
        rows = "SELECT count(*), md5(string_agg(md5(t::text), '' ORDER BY md5(t::text))) FROM"
        return [
            (table, conn.execute(f"{rows} {table} t").fetchone())  # type: ignore[call-overload]
            for (table,) in conn.execute(_TABLES).fetchall()
        ]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_argument_breaks_a_tool_or_writes(market_url: tuple[str, Path]) -> None:
    """Every tool, with arguments from its schema and hostile ones, in a database that cannot be written."""
    url, folder = market_url
    before = _dump(url)
    with psycopg.connect(url, autocommit=True) as conn:
        name = conn.info.dbname
        conn.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')  # type: ignore[call-overload]
    outcomes = Counter[str]()
    with asyncio.Runner() as runner:
        opened = open_pool(url)
        app = context(runner.run(opened.__aenter__()), folder)
        for tool in TOOLS.values():
            _fuzz(tool, lambda tool, arguments: runner.run(tool.call(app, arguments)), outcomes)
        runner.run(opened.__aexit__(None, None, None))
    assert outcomes["answers"] > 200
    assert outcomes["errors"] > 200
    assert _dump(url) == before


def _fuzz(tool: Tool[Any], ask: Callable[[Tool[Any], dict[str, Any]], bytes], outcomes: Counter[str]) -> None:
    """Calls a tool with many arguments."""

    @settings(max_examples=60, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(_arguments(tool.input_schema))
    def call(arguments: dict[str, Any]) -> None:
        try:
            body = ask(tool, arguments)
        except ToolError as error:
            outcomes["errors"] += 1
            message = str(error)
            assert 5 < len(message) < 4_000
            assert message.encode()
            assert "Traceback" not in message
        else:
            outcomes["answers"] += 1
            assert len(body.decode()) <= MAX_CHARACTERS

    call()


@pytest.fixture
async def market_url(simulated_market: Market) -> tuple[str, Path]:
    return simulated_market.url, simulated_market.folder / "storage"


@pytest.mark.slow
async def test_hostile_arguments_over_the_wire(simulated_market: Market) -> None:
    """The same through a client and the command, whose role in the database may only read."""
    with psycopg.connect(simulated_market.url, autocommit=True) as conn:
        conn.execute(f'ALTER DATABASE "{conn.info.dbname}" SET default_transaction_read_only = on')  # type: ignore[call-overload]
    chance = random.Random(7)
    answered, messages = 0, list[str]()
    async with over_stdio(simulated_market.url, simulated_market.folder) as asking:
        for tool in TOOLS.values():
            names = list(tool.input_schema.get("properties", {}))
            for _ in range(12):
                sendable = [one for one in HOSTILE if one != "\ud800"]
                arguments = {
                    name: chance.choice(sendable)
                    for name in chance.sample(names, min(len(names), chance.randint(0, 3)))
                }
                try:
                    await asking(tool.name, **arguments)
                    answered += 1
                except Failed as error:
                    messages.append(str(error))
        assert (await asking("search_stores", limit=1))["items"], "the server is still there"
    assert answered > 30
    assert len(messages) > 100
    assert [one for one in messages if "internal error" in one or "Traceback" in one] == []


async def test_a_tool_that_writes_is_refused_by_the_database(simulated_market: Market) -> None:
    """Even if a function that a tool calls should write one day."""

    async def write(call: Any, query: Any) -> Any:
        await call.conn.execute("UPDATE dispensaries SET name = 'x'")

    app = context(simulated_market.pool, simulated_market.folder)
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        await replace(TOOLS["search_stores"], run=write).call(app, {})
