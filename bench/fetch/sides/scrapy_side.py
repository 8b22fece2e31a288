"""Scrapy as its documentation tunes it for a crawl that is not held back: no throttle, no logs, no cookies, a request per page through
its menu's proxy; its queue is last in, first out, so that menus are finished first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import scrapy
import side
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.http import Response
from scrapy.utils.defer import deferred_f_from_coro_f
from scrapy.utils.reactor import install_reactor


class Menus(scrapy.Spider):
    """Every menu into its file."""

    name = "menus"

    def __init__(self, job: side.Job, menus: list[dict[str, Any]]) -> None:
        super().__init__()
        self.job = job
        self.menus = menus
        self.done = 0

    def page(self, index: int, number: int, kept: list[bytes]) -> scrapy.Request:
        return scrapy.Request(
            self.menus[index]["urls"][number],
            headers=self.job.headers,
            meta={"proxy": self.job.proxies[index % len(self.job.proxies)]},
            cb_kwargs={"index": index, "number": number, "kept": kept},
            dont_filter=True,
        )

    async def start(self) -> AsyncIterator[scrapy.Request]:
        self.job.start()
        for index in range(len(self.menus)):
            yield self.page(index, 0, [])

    async def parse(self, response: Response, index: int, number: int, kept: list[bytes]) -> Any:
        body = response.body
        self.job.count(1, side.products(body), len(body))
        kept.append(body)
        if number + 1 < len(self.menus[index]["urls"]):
            yield self.page(index, number + 1, kept)
            return
        await asyncio.to_thread(self.job.archive, self.menus[index], kept)
        self.done += 1
        if self.done == len(self.menus):
            self.job.stop()


async def crawl(job: side.Job, menus: list[dict[str, Any]]) -> None:
    """One run of the spider."""
    runner = AsyncCrawlerRunner(
        {
            "CONCURRENT_REQUESTS": job.concurrency,
            "CONCURRENT_REQUESTS_PER_DOMAIN": job.concurrency,
            "DOWNLOAD_DELAY": 0,
            "AUTOTHROTTLE_ENABLED": False,
            "ROBOTSTXT_OBEY": False,
            "COOKIES_ENABLED": False,
            "LOG_ENABLED": False,
            "LOGSTATS_INTERVAL": 0,
            "TELNETCONSOLE_ENABLED": False,
            "DOWNLOAD_TIMEOUT": 30,
        }
    )
    crawler = runner.create_crawler(Menus)
    await runner.crawl(crawler, job=job, menus=menus)
    done = crawler.spider.done if isinstance(crawler.spider, Menus) else 0
    if done != len(menus):
        side.failed(f"{done} of {len(menus)} menus were done")


async def main(_: Any) -> None:
    job = side.job()
    await crawl(job, job.warm)
    await side.go()
    await crawl(job, job.menus)
    side.say(**job.found)


if __name__ == "__main__":
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from twisted.internet.task import react

    react(deferred_f_from_coro_f(main))
