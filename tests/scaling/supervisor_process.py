"""A supervisor in a process of its own, for tests that kill it: `python -m tests.scaling.supervisor_process URL FIRST LASTING`."""

from __future__ import annotations

import asyncio
import signal
import sys

from menuwatch.core.backoff import Backoff
from menuwatch.db.pool import open_pool
from menuwatch.scaling.desired_count import SupervisorLease
from menuwatch.scaling.model import Limits
from menuwatch.scaling.worker_pool import Timing, WorkerPool

TIMING = Timing(grace=10.0, restart=Backoff(base=0.05, cap=0.1), interval=0.05)
LEASE_SECONDS = 2.0
LIMITS = Limits(1, 8)


def worker_command(url: str) -> tuple[str, ...]:
    """How one of its workers is started."""
    return (sys.executable, "-m", "tests.scaling.fake_worker", url)


async def main(url: str, first: int, lasting: float) -> None:
    async with open_pool(url, max_size=3) as pool:
        lease = SupervisorLease(pool, LIMITS, first=first, lease_seconds=lasting)
        workers_pool = WorkerPool(lambda _: worker_command(url), lease=lease, timing=TIMING)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, workers_pool.stop)
        await workers_pool.run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
