"""A shop on loopback that is searched by keyword: pages of results of 60, product pages above 50 kB, refusals below 5 kB.

`/search/{words}.html?pageNum=n`, `/product/{name}-p-{number}.html`; without the name it leads on to the page with it. Which request is
refused follows from the seed and from how often its address was asked, so a run can be had again whatever the order of its requests.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from urllib.parse import unquote_plus

from menuwatch.sim import shop_pages
from menuwatch.sim.http import Answer, HttpServer, Request
from menuwatch.sim.shop_goods import Catalogue, ShopProduct

KEYWORDS = ("led lamp", "dog leash", "phone case")
_SEARCH = re.compile(r"/search/([^/]+)\.html")
_PRODUCT = re.compile(r"/product/([^/]*)-p-([0-9]+)\.html")
_BROWSER = "Mozilla/5.0"
_HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """How visitors are treated. `rate` is the share of requests that meet a refusal; `picky`: whoever is no browser by its
    User-Agent is sent to be validated."""

    rate: float = 0.0
    picky: bool = False


class Shop:
    """`start`, then `url` is its home."""

    def __init__(self, catalogue: Catalogue | None = None, *, refusals: Refusals | None = None, seed: int = 1) -> None:
        self.catalogue = catalogue if catalogue is not None else Catalogue(KEYWORDS, seed=seed)
        self.refusals = refusals if refusals is not None else Refusals()
        self.asked: Counter[str] = Counter()
        """How often each address was asked for; what led on or was refused counts, too."""
        self.served: Counter[str] = Counter()
        """How often each address was answered with a page of the shop."""
        self._seed = seed
        self._server = HttpServer(self._answer)

    @property
    def url(self) -> str:
        """Scheme, address and port."""
        return self._server.url

    async def start(self, port: int = 0) -> None:
        """Listens; 0 takes a free port."""
        await self._server.start(port)

    async def close(self) -> None:
        """Stops."""
        await self._server.close()

    def wanted(self, *keywords: str, pages: int = 10) -> dict[str, ShopProduct]:
        """What a whole crawl of these keywords comes to, by id, with what is no longer sold."""
        return self.catalogue.reached(keywords, most=pages * shop_pages.PER_PAGE)

    async def _answer(self, request: Request) -> Answer:
        if request.path == "/validation.html":
            return _html(shop_pages.validation())
        search, good = _SEARCH.fullmatch(request.path), _PRODUCT.fullmatch(request.path)
        if search is None and good is None:
            return Answer(404, b"<html><body>Not found</body></html>", _HTML)
        page = request.query.get("pageNum", "1")
        address = request.path if search is None or page == "1" else f"{request.path}?pageNum={page}"
        self.asked[address] += 1
        if self.refusals.picky and _BROWSER not in request.headers.get("user-agent", ""):
            return Answer(302, headers={"Location": "/validation.html"})
        chance = self._chance(address, self.asked[address])
        if chance < self.refusals.rate:
            kind = int(chance / self.refusals.rate * 4)
            if kind == 3:
                return Answer(302, headers={"Location": "/validation.html"})
            status, body = shop_pages.refusal(kind)
            return _html(body, status)
        if search is not None:
            return self._results(unquote_plus(search[1]), page, address)
        assert good is not None, "one of them"
        return self._product(good[1], good[2], address)

    def _results(self, keyword: str, page: str, address: str) -> Answer:
        if not re.fullmatch(r"[1-9][0-9]{0,3}", page):
            return Answer(404, b"<html><body>Not found</body></html>", _HTML)
        self.served[address] += 1
        return _html(shop_pages.results(self.url, keyword, self.catalogue.found(keyword), int(page)))

    def _product(self, slug: str, product_id: str, address: str) -> Answer:
        good = self.catalogue.product(product_id)
        if good is None:
            return _html(shop_pages.no_product())
        if slug != good.slug:
            return Answer(301, headers={"Location": good.path})
        self.served[address] += 1
        return _html(shop_pages.product(self.url, good))

    def _chance(self, address: str, time: int) -> float:
        digest = blake2b(f"{self._seed}:{address}:{time}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64


def _html(page: str, status: int = 200) -> Answer:
    return Answer(status, page.encode(), _HTML)
