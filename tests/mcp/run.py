"""The whole proof: questions with known answers about recorded and simulated markets, by tool calls alone.

python -m tests.mcp.run ../shared/data
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
import time
from pathlib import Path

import structlog

from menuwatch.db import embedded, migrate
from menuwatch.db.pool import open_pool
from tests.conftest import create_database, in_memory
from tests.mcp.proof import LEAST_EXACT, ask, make_recorded, make_simulated


async def prove(server: str, folder: Path, data: Path) -> bool:
    """Asks everything over both ways; returns whether enough is exact."""
    enough = True
    for name in ("simulated", "recorded"):
        home = folder / name
        home.mkdir()
        url = create_database(server, name)
        migrate.migrate(url)
        async with open_pool(url) as pool:
            started = time.monotonic()
            market = await (
                make_simulated(pool, url, home) if name == "simulated" else make_recorded(pool, url, home, data)
            )
            print(f"{name} market made in {time.monotonic() - started:.0f} s", flush=True)
            for way in ("stdio", "http"):
                started = time.monotonic()
                results = await ask(market, way)
                for result in results:
                    print(result)
                exact = sum(result.is_exact for result in results)
                calls = sum(result.calls for result in results)
                seconds = time.monotonic() - started
                print(
                    f"{name} over {way}: {exact} of {len(results)} exact, {calls} calls in {seconds:.1f} s", flush=True
                )
                enough = enough and exact >= LEAST_EXACT * len(results)
    return enough


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?", default=Path(__file__).resolve().parents[3] / "shared" / "data")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with tempfile.TemporaryDirectory(prefix="menuwatch-mcp-", dir=in_memory()) as folder:
        url, stack = embedded.start(Path(folder) / "data")
        with stack:
            enough = asyncio.run(prove(url, Path(folder), options.data))
    sys.exit(0 if enough else 1)


if __name__ == "__main__":
    main()
