"""The tools, by topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from menuwatch.mcp.tool import Tool
from menuwatch.mcp.tools import analytics, catalog, operations, quality, stores

TOOLS: Mapping[str, Tool[Any]] = {
    one.name: one for module in (catalog, stores, analytics, quality, operations) for one in module.TOOLS
}
"""All tools by name, in the order in which clients list them."""
