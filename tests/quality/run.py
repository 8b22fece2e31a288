"""The whole proof: faults of fourteen kinds at ten severities in recorded and made menus, and menus without a fault.

python -m tests.quality.run ../shared/data --seed 5
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path
from random import Random

import psycopg

from menuwatch.db import embedded, migrate
from menuwatch.db.pool import open_pool
from tests.conftest import create_database, in_memory
from tests.quality import world
from tests.quality.proof import SCOPES, Result, alarms, history, incident
from tests.quality.world import Shop, World, made_menu, recorded_menus

CRAWLS = 28
QUIET = 60


def _shops(rng: Random, folder: Path) -> list[Shop]:
    menus = recorded_menus(folder)[:24]
    shops = [
        Shop("weedmaps", f"w{n // 4}" if n < 16 else None, menu, special_days=(1, 4) if n % 5 == 0 else ())
        for n, menu in enumerate(menus)
    ]
    return shops + [
        Shop("jane", f"j{n // 4}" if n < 8 else None, made_menu(rng, rng.choice((40, 80, 150, 300))),
             special_days=(2,) if n % 3 == 0 else ())
        for n in range(12)
    ]  # fmt: skip


async def prove(url: str, folder: Path, seed: int) -> None:
    """Prints what was found."""
    rng, result = Random(seed), Result()
    async with open_pool(url) as pool, pool.connection() as conn:
        await conn.set_autocommit(True)
        real = World(seed + 1, _shops(rng, folder))
        await real.open(conn)
        await history(conn, real, CRAWLS)
        for number, kind in enumerate(world.KINDS):
            for level, severity in enumerate(world.severities(kind)):
                await incident(conn, real, kind, severity, SCOPES[(number + level) % len(SCOPES)], rng, result)
            print(
                f"{kind}: {result.found} of {result.above} found, {result.right} of {result.scoped} attributed",
                flush=True,
            )
        await history(conn, real, QUIET - CRAWLS)
        false = await alarms(conn)
    print(f"{len(false)} false alarms in {QUIET * len(real.shops)} menus")
    print(*result.missed, *result.wrong, *false, sep="\n")


def main() -> None:
    """Runs the proof on a database of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="recorded data")
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="menuwatch-quality-", dir=in_memory()) as place:
        url, stack = embedded.start(Path(place) / "data")
        with stack:
            with psycopg.connect(url, autocommit=True) as conn:
                conn.execute("ALTER SYSTEM SET fsync = off")
                conn.execute("SELECT pg_reload_conf()")
            database = create_database(url, "proof")
            migrate.migrate(database)
            asyncio.run(prove(database, options.folder, options.seed))


if __name__ == "__main__":
    main()
