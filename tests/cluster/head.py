"""A supervisor in a process of its own, for tests that kill it: `python -m tests.cluster.head URL FIRST LASTING`."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import sys

from menuwatch.cluster.base import Limits
from menuwatch.cluster.crew import Crew, Pace
from menuwatch.core.backoff import Backoff
from menuwatch.db.pool import open_pool

PACE = Pace(grace=10.0, restart=Backoff(base=0.05, cap=0.1), interval=0.05, lasting=2.0)
LIMITS = Limits(1, 8)


def hand(url: str) -> tuple[str, ...]:
    """How one of its workers is started."""
    return (sys.executable, "-m", "tests.cluster.hand", url)


async def main(url: str, first: int, lasting: float) -> None:
    async with open_pool(url, max_size=3) as pool:
        crew = Crew(pool, lambda _: hand(url), LIMITS, first=first, pace=dataclasses.replace(PACE, lasting=lasting))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, crew.stop)
        await crew.run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
