"""Markets for tests of the MCP server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from menuwatch.db.pool import Pool, open_pool
from tests.mcp.proof import Market, make_recorded, make_simulated
from tests.recorded.new_mexico import Market as NewMexico


@pytest.fixture
async def simulated_market(pool: Pool, database_url: str, tmp_path: Path) -> Market:
    return await make_simulated(pool, database_url, tmp_path)


@pytest.fixture
async def recorded_market(new_mexico: NewMexico, tmp_path: Path, recorded: Path) -> AsyncIterator[Market]:
    async with open_pool(new_mexico.url) as pool:
        yield await make_recorded(pool, new_mexico.url, tmp_path, recorded, has_menus=True)
