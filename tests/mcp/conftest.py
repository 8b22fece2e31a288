"""Markets for tests of the MCP server."""

from __future__ import annotations

from pathlib import Path

import pytest

from menuwatch.db.pool import Pool
from tests.mcp.proof import Market, make_recorded, make_simulated


@pytest.fixture
async def simulated_market(pool: Pool, database_url: str, tmp_path: Path) -> Market:
    return await make_simulated(pool, database_url, tmp_path)


@pytest.fixture
async def recorded_market(pool: Pool, database_url: str, tmp_path: Path, recorded: Path) -> Market:
    return await make_recorded(pool, database_url, tmp_path, recorded)
