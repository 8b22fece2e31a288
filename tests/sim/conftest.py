from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from menuwatch.sim.server import SimServer, World

Serve = Callable[..., Awaitable[SimServer]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts a world's servers in this process; they end with the test."""
    async with AsyncExitStack() as stack:

        async def start(**world: Any) -> SimServer:
            server = SimServer(World(**world))
            await server.start()
            stack.push_async_callback(server.close)
            return server

        yield start
