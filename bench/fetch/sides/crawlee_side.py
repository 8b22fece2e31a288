"""crawlee-python as its guides write it: HttpCrawler on its curl-impersonate client, and a pool of sessions that keep to a proxy each.

A request per page is bound to its menu's session; the next page goes to the front of the queue, so that menus are finished first.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import defaultdict
from datetime import timedelta
from typing import Any

import side
from crawlee import ConcurrencySettings, Request
from crawlee.crawlers import HttpCrawler, HttpCrawlingContext
from crawlee.http_clients import CurlImpersonateHttpClient
from crawlee.proxy_configuration import ProxyConfiguration
from crawlee.sessions import Session, SessionPool
from crawlee.storage_clients import MemoryStorageClient


class Menus:
    """Every menu into its file. One crawler for both runs, since a second one would find the queue of the first."""

    def __init__(self, job: side.Job) -> None:
        self._job = job
        self._menus: list[dict[str, Any]] = []
        self._kept: defaultdict[int, list[bytes]] = defaultdict(list)
        self._done = 0
        names = itertools.cycle(range(len(job.proxies)))  # a run begins with a new pool of the same identities

        def session() -> Session:
            return Session(id=f"identity-{next(names)}", max_age=timedelta(hours=1), max_usage_count=1_000_000)

        self._crawler = HttpCrawler(
            http_client=CurlImpersonateHttpClient(verify=job.ca_file, timeout=30),
            proxy_configuration=ProxyConfiguration(proxy_urls=list(job.proxies)),
            session_pool=SessionPool(max_pool_size=len(job.proxies), create_session_function=session),
            concurrency_settings=ConcurrencySettings(
                min_concurrency=job.concurrency, max_concurrency=job.concurrency, desired_concurrency=job.concurrency
            ),
            storage_client=MemoryStorageClient(),
            configure_logging=False,
        )
        self._crawler.router.default_handler(self._page)

    def _request(self, index: int, page: int) -> Request:
        return Request.from_url(
            self._menus[index]["urls"][page],
            headers=self._job.headers,
            session_id=f"identity-{index % len(self._job.proxies)}",
            user_data={"menu": index, "page": page},
        )

    async def _page(self, context: HttpCrawlingContext) -> None:
        data: Any = context.request.user_data
        index, number = int(data["menu"]), int(data["page"])
        body = await context.http_response.read()
        self._job.count(1, side.products(body), len(body))
        self._kept[index].append(body)
        if number + 1 < len(self._menus[index]["urls"]):
            await context.add_requests([self._request(index, number + 1)], forefront=True)
            return
        await asyncio.to_thread(self._job.archive, self._menus[index], self._kept.pop(index))
        self._done += 1
        if self._done == len(self._menus):
            self._job.stop()

    async def crawl(self, menus: list[dict[str, Any]]) -> None:
        """One run of the crawler."""
        self._menus, self._done = menus, 0
        self._job.start()
        await self._crawler.run([self._request(index, 0) for index in range(len(menus))])
        if self._done != len(menus):
            side.failed(f"{self._done} of {len(menus)} menus were done")


async def main() -> None:
    logging.disable(logging.WARNING)
    job = side.job()
    menus = Menus(job)
    await menus.crawl(job.warm)
    await side.go()
    await menus.crawl(job.menus)
    side.say(**job.found)


if __name__ == "__main__":
    asyncio.run(main())
