"""A filled Menuwatch that serves until its standard input ends: `python -m tests.browser.serve HOME [PREFIX]`.

The market is found and crawled three times while it drifts, so that every screen has something to show. Then nothing moves any more
but what a test moves. It prints one line of JSON: the address, the database, and the login.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import sys
import threading
from pathlib import Path

from menuwatch import bootstrap
from menuwatch.accounts import users
from menuwatch.cli import demo
from menuwatch.cli.serving import listening, serve
from menuwatch.matching.engine import match_all
from menuwatch.storefront.indexer import StorefrontIndexer
from menuwatch.storefront.watches import service as watch_service
from tests.browser.seed_data import crawl, furnish

STORES, PRODUCTS, CYCLES = 6, 40, 3
FAULTS = {"forbidden": {"rate": 0.04, "lasts": 8}, "server_error": {"rate": 0.02}}


async def main(home: Path, prefix: str) -> None:
    async with demo.market(
        home, store_count=STORES, product_count=PRODUCTS, seed=7, faults=FAULTS, image_downloads=4
    ) as (simulator, system):
        await crawl(simulator, system, CYCLES)
        await furnish(system)
        await match_all(system.pool)
        await StorefrontIndexer(system.pool, watcher=watch_service.evaluate_store).step()
        public = f"http://localhost:1{prefix}" if prefix else None
        served = dataclasses.replace(
            system, settings=dataclasses.replace(system.settings, public_url=public, password_memory_kib=1024)
        )
        async with bootstrap.run_scheduler(served):
            # Nothing that a test looks at should change by itself: schedules stand still.
            async with system.pool.connection() as conn:
                await conn.execute(
                    "UPDATE task_schedules SET next_run_at = now() + interval '3 hours', interval_hours = 4"
                )
            password = await users.first_admin(system.pool)

            def up(address: str) -> None:
                told = {"address": address + prefix, "database": system.database_url, "home": str(home)}
                print(json.dumps({**told, "user": users.FIRST_NAME, "password": password}), flush=True)

            with listening(served.settings) as listener:
                serving = asyncio.ensure_future(serve(served, listener, up))
                loop = asyncio.get_running_loop()
                # A daemon thread: where serving fails, the process ends with that error instead of waiting for its input.
                threading.Thread(
                    target=lambda: (sys.stdin.read(), loop.call_soon_threadsafe(serving.cancel)), daemon=True
                ).start()
                with contextlib.suppress(asyncio.CancelledError):
                    await serving


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""))
