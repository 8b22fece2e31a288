"""A process that fetches as workers do, to be watched from outside: `python -m tests.fetch.socket_child`, its work as JSON on standard
input. Prints what came of each piece of work."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from typing import Any

from curl_cffi import CurlError
from curl_cffi.requests import AsyncSession

from menuwatch.config.settings import Settings
from menuwatch.core.errors import MenuwatchError
from menuwatch.db.pool import open_pool
from menuwatch.fetch.rotator import Rotator


async def _fetch(work: dict[str, Any]) -> list[str]:
    """Each piece through the proxies that it names, by the whole way that a task's requests go."""
    settings = Settings(
        fetch_retry_base_seconds=0, fetch_timeout_seconds=4, fetch_max_bytes=100_000, host_rate=100_000, host_burst=1000
    )
    found = []
    async with open_pool(work["database_url"]) as pool:
        for piece in work["pieces"]:
            async with pool.connection() as conn:
                await conn.execute("UPDATE proxies SET is_active = id = ANY (%s)", (piece["proxies"],))
            rotator = Rotator(pool, settings, rng=random.Random(5), ca_file=work["ca_file"])
            try:
                async with rotator.open(task_id=1, dispensary_id=2, state="AZ", hosts=work["hosts"]) as session:
                    body = {"a": 1} if piece["method"] == "POST" else None
                    answer = await session.request(piece["method"], piece["url"], json=body)
                    found.append(f"{answer.status} {len(session.attempts)}")
            except MenuwatchError as error:
                found.append(f"{type(error).__name__}: {error}")
            finally:
                await rotator.close()
    return found


async def _plainly(work: dict[str, Any]) -> list[str]:
    """What must not happen: without a proxy of our own."""
    found = []
    async with AsyncSession[Any](timeout=4) as client:
        for piece in work["pieces"]:
            try:
                found.append(str((await client.get(piece["url"])).status_code))
            except CurlError as error:
                found.append(f"curl {int(error.code)}")
    return found


if __name__ == "__main__":
    given = json.load(sys.stdin)
    print(json.dumps(asyncio.run(_plainly(given) if given.get("plainly") else _fetch(given))))
