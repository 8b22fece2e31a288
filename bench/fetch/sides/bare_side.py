"""curl_cffi as its users write it: a session per menu, which impersonates a browser, goes through a proxy and keeps its connection.

It only fetches: nothing is read or archived, and that the right pages came is looked at after the clock has stopped.
"""

from __future__ import annotations

import asyncio
from typing import Any

import side
from curl_cffi.requests import AsyncSession


async def crawl(job: side.Job, menus: list[dict[str, Any]]) -> list[list[bytes]]:
    """The pages of each menu; `concurrency` menus at once, the pages of each in order."""
    came: list[list[bytes]] = [[] for _ in menus]
    left = iter(enumerate(menus))

    async def one(number: int) -> None:
        for index, menu in left:
            proxy = job.proxies[(number + index * job.concurrency) % len(job.proxies)]
            async with AsyncSession(impersonate="chrome", proxy=proxy, verify=job.ca_file, timeout=30) as session:
                for url in menu["urls"]:
                    answer = await session.get(url, headers=job.headers)
                    answer.raise_for_status()
                    came[index].append(answer.content)

    await asyncio.gather(*(one(number) for number in range(job.concurrency)))
    return came


async def main() -> None:
    job = side.job()
    await crawl(job, job.warm)
    await side.go()
    job.start()
    came = await crawl(job, job.menus)
    job.stop()
    for menu, pages in zip(job.menus, came, strict=True):
        if (count := sum(map(side.products, pages))) != menu["products"]:
            side.failed(f"menu {menu['id']} has {count} products and should have {menu['products']}")
        job.count(len(pages), count, sum(map(len, pages)))
    side.say(**job.found)


if __name__ == "__main__":
    asyncio.run(main())
