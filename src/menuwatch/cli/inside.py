"""One thing done in the installation, in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from menuwatch import bootstrap
from menuwatch.bootstrap import System
from menuwatch.cli.process import settings
from menuwatch.db.pool import Connection

T = TypeVar("T")


def inside(act: Callable[[System, Connection], Awaitable[T]]) -> T:
    """Opens the installation that the settings mean, does it, and closes it again; what `act` raises undoes all of it."""

    async def run() -> T:
        async with bootstrap.open_system(settings()) as system, system.pool.connection() as conn, conn.transaction():
            return await act(system, conn)

    return asyncio.run(run())
