from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from menuwatch.sim.config import SimConfig
from menuwatch.sim.server import SimServer

Serve = Callable[..., Awaitable[SimServer]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts a world's servers in this process; they end with the test."""
    async with AsyncExitStack() as stack:

        async def start(**config: Any) -> SimServer:
            server = SimServer(SimConfig(**config))
            await server.start()
            stack.push_async_callback(server.close)
            return server

        yield start
