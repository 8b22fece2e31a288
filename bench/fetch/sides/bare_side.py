"""curl_cffi as its users write it: a session per menu, which impersonates a browser, goes through a proxy and keeps its connection.

It only fetches: nothing is read or archived, and that the right pages came is looked at after the clock has stopped. With `kept`
in the job there is a session per slot instead, which serves all menus of that slot.
"""

from __future__ import annotations

import asyncio
from typing import Any

import side
from curl_cffi.requests import AsyncSession


class Bare:
    """Fetches menus, `concurrency` at once, the pages of each in order."""

    def __init__(self, job: side.Job) -> None:
        self._job = job
        self._kept: dict[int, AsyncSession[Any]] = {}

    def _session(self, proxy: str) -> AsyncSession[Any]:
        return AsyncSession(impersonate="chrome", proxy=proxy, verify=self._job.ca_file, timeout=30)

    async def _pages(self, session: AsyncSession[Any], menu: dict[str, Any]) -> list[bytes]:
        came = []
        for url in menu["urls"]:
            answer = await session.get(url, headers=self._job.headers)
            answer.raise_for_status()
            came.append(answer.content)
        return came

    async def crawl(self, menus: list[dict[str, Any]]) -> list[list[bytes]]:
        """The pages of each menu."""
        came: list[list[bytes]] = [[] for _ in menus]
        left = iter(enumerate(menus))
        proxies = self._job.proxies

        async def slot(number: int) -> None:
            for index, menu in left:
                if self._job.given.get("kept"):
                    if number not in self._kept:
                        self._kept[number] = self._session(proxies[number % len(proxies)])
                    came[index] = await self._pages(self._kept[number], menu)
                    continue
                async with self._session(proxies[index % len(proxies)]) as session:
                    came[index] = await self._pages(session, menu)

        await asyncio.gather(*(slot(number) for number in range(self._job.concurrency)))
        return came


async def main() -> None:
    job = side.job()
    bare = Bare(job)
    await bare.crawl(job.warm)
    await side.go()
    job.start()
    came = await bare.crawl(job.menus)
    job.stop()
    for menu, pages in zip(job.menus, came, strict=True):
        if (count := sum(map(side.products, pages))) != menu["products"]:
            side.failed(f"menu {menu['id']} has {count} products and should have {menu['products']}")
        job.count(len(pages), count, sum(map(len, pages)))
    side.say(**job.found)


if __name__ == "__main__":
    asyncio.run(main())
