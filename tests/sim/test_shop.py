"""The shop that is searched by keyword, and the service that fetches for it: their truth is what the adapters read."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator

import httpx
import pytest

from menuwatch.search_crawl.protocols import BlockPage, CrawledProduct, Delivery, Order, OrderRefused, UrlType, Variant
from menuwatch.search_crawl.providers.packing import unpacked
from menuwatch.search_crawl.providers.serpwatch import SerpWatch
from menuwatch.search_crawl.sites.cj import CJDropshipping
from menuwatch.sim.config import ServiceQuality, SimConfig
from menuwatch.sim.fetching_service import FetchingService
from menuwatch.sim.http import HttpServer, Request, Response
from menuwatch.sim.server import SimServer
from menuwatch.sim.shop import Refusals, Shop
from menuwatch.sim.shop_catalog import ShopCatalog, ShopProduct

BROWSER = {"User-Agent": "Mozilla/5.0"}


def as_truth(product: ShopProduct, home: str) -> CrawledProduct:
    """A product of the shop, as somebody who reads its page rightly has it."""
    return CrawledProduct(
        site_product_id=product.id,
        name=product.name,
        url=home + product.path,
        price_min=product.price_min,
        price_max=product.price_max,
        currency="USD",
        weight_g=product.weight,
        listed=product.listed,
        variants=tuple(
            Variant(variant_id=v.vid, sku=v.sku, name=v.name, price=v.price, weight_g=v.grams) for v in product.variants
        ),
        images=product.images,
    )


async def test_a_crawl_by_hand_comes_to_the_truth() -> None:
    shop = Shop(ShopCatalog(("led lamp", "dog leash", "Tüte & Co"), products=70, removed=0.1, seed=4))
    await shop.start()
    site = CJDropshipping(shop.url)
    try:
        async with httpx.AsyncClient(follow_redirects=True, trust_env=False, headers=BROWSER) as client:
            waiting = [(UrlType.SEARCH, site.search_url(keyword)) for keyword in shop.catalog.keywords]
            seen, products, removed = set(waiting), {}, set()
            while waiting:
                url_type, url = waiting.pop()
                answer = await client.get(url)
                assert len(answer.content) > 50_000
                said = site.read(url_type, url, answer.content)
                if said.product is not None:
                    products[said.product.site_product_id] = said.product
                if said.removed:
                    removed.add(url)
                fresh = {(found.url_type, found.url) for found in said.found} - seen
                seen |= fresh
                waiting += fresh
        wanted = shop.expected("led lamp", "dog leash", "tüte & co")
        assert len(wanted) == 70 * 3 - 2 * 7
        assert products == {i: as_truth(product, shop.url) for i, product in wanted.items() if not product.removed}
        assert removed == {site.product_url(i) for i, product in wanted.items() if product.removed}
        assert len(removed) > 3
        assert set(shop.served.values()) == {1}
    finally:
        await shop.close()


async def test_refusals_of_the_shop_are_seen_for_what_they_are() -> None:
    shop = Shop(ShopCatalog(("led lamp",), products=70), refusals=Refusals(rate=0.5), seed=3)
    await shop.start()
    site = CJDropshipping(shop.url)
    blocked = 0
    try:
        async with httpx.AsyncClient(follow_redirects=True, trust_env=False, headers=BROWSER) as client:
            for _ in range(30):
                answer = await client.get(site.search_url("led lamp"))
                try:
                    assert site.read(UrlType.SEARCH, site.search_url("led lamp"), answer.content).total == 70
                except BlockPage:
                    blocked += 1
                    assert len(answer.content) < 5_000
            assert blocked == 30 - shop.served["/search/led+lamp.html"]
            assert 5 < blocked < 25
            picky = Shop(refusals=Refusals(picky=True))
            await picky.start()
            answer = await client.get(f"{picky.url}/search/led+lamp.html", headers={"User-Agent": "plain"})
            assert answer.url.path == "/validation.html"
            await picky.close()
    finally:
        await shop.close()


class Receiver:
    """A webhook that keeps what it gets."""

    def __init__(self) -> None:
        self.got: list[Delivery] = []
        self.server = HttpServer(self._take)
        self.status = 200

    async def _take(self, request: Request) -> Response:
        self.got += SerpWatch("t").read_webhook(json.loads(request.body))
        return Response(self.status)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    one = Receiver()
    await one.server.start()
    yield one
    await one.server.close()


async def ordered(service: FetchingService, receiver: Receiver, url: str, count: int) -> int:
    """Orders it so often; returns how many orders were taken."""
    provider = SerpWatch("secret-token", address=service.url)
    taken = 0
    for n in range(count):
        order = Order(
            url=url, site="cj", reference=f"crawl-1-search-{n + 1}-1", postback_url=f"{receiver.server.url}/hook"
        )
        with contextlib.suppress(OrderRefused):
            assert await provider.submit(order) is not None
            taken += 1
    await provider.close()
    return taken


async def pages(got: list[Delivery]) -> list[bytes]:
    async with httpx.AsyncClient(trust_env=False) as client:
        bodies = [d.html if d.html is not None else (await client.get(d.html_url or "")).content for d in got if d.ok]
    return [unpacked(body, 10_000_000) for body in bodies]


async def test_the_service_brings_every_page_in_every_shape(receiver: Receiver) -> None:
    shop, service = Shop(), FetchingService("secret-token")
    await shop.start()
    await service.start()
    url = CJDropshipping(shop.url).search_url("led lamp")
    assert await ordered(service, receiver, url, 40) == 40
    await service.settled()
    assert Counter(d.reference for d in receiver.got) == {f"crawl-1-search-{n}-1": 1 for n in range(1, 41)}
    assert {d.html_url is None for d in receiver.got} == {True, False}
    (page,) = set(await pages(receiver.got))
    assert CJDropshipping(shop.url).read(UrlType.SEARCH, url, page).total == 219
    assert service.answers == {"200": 40}
    await service.close()
    await shop.close()


async def test_the_service_loses_doubles_delays_and_refuses_as_told(receiver: Receiver) -> None:
    said = ServiceQuality(lose=0.2, double=0.2, fail=0.2, refuse=0.2, slow=0.05)
    shop = Shop()
    await shop.start()
    seen = []
    for _ in range(2):
        service = FetchingService("secret-token", quality=said, seed=7)
        await service.start()
        receiver.got.clear()
        taken = await ordered(service, receiver, f"{shop.url}/search/led+lamp.html", 60)
        await service.settled()
        assert taken == service.stats.orders == 60 - service.stats.refused
        assert len(receiver.got) == service.stats.calls == taken - service.stats.lost + service.stats.doubled
        assert min(service.stats.lost, service.stats.doubled, service.stats.failed, service.stats.refused) > 3
        seen.append(
            {d.reference: (d.ok, Counter(one.reference for one in receiver.got)[d.reference]) for d in receiver.got}
        )
        assert [d.reference for d in receiver.got] != sorted(
            (d.reference for d in receiver.got), key=lambda r: int(r.split("-")[3])
        )
        await service.close()
    assert seen[0] == seen[1]
    await shop.close()


async def test_held_calls_are_made_when_they_are_released(receiver: Receiver) -> None:
    shop, service = Shop(), FetchingService("secret-token", held=True)
    await shop.start()
    await service.start()
    await ordered(service, receiver, f"{shop.url}/search/led+lamp.html", 5)
    await service.settled()
    assert receiver.got == []
    assert await service.release(shuffled=True) == 5
    assert len(receiver.got) == 5
    assert await service.release() == 0
    await service.close()
    await shop.close()


async def test_who_may_order_and_what() -> None:
    service = FetchingService("secret-token")
    await service.start()
    stranger, customer = SerpWatch("another", address=service.url), SerpWatch("secret-token", address=service.url)
    with pytest.raises(OrderRefused, match="SERPWATCH_TOKEN"):
        await stranger.submit(Order(url="http://x", site="cj", reference="r", postback_url="http://y/z"))
    with pytest.raises(OrderRefused, match="url: field required") as caught:
        await customer.submit(Order(url="", site="cj", reference="r", postback_url="http://y/z"))
    assert caught.value.final
    for one in (stranger, customer, service):
        await one.close()


async def test_both_stand_beside_the_market_where_that_is_asked_for() -> None:
    server = SimServer(SimConfig(stores=1, products=5, shop=20, service=ServiceQuality(lose=1.0)))
    await server.start()
    try:
        hello = server.hello()
        said = hello["shop"]
        customer = SerpWatch(said["SERPWATCH_TOKEN"], address=said["SERPWATCH_URL"])
        url = CJDropshipping(said["CJ_BASE_URL"]).search_url(said["keywords"][1])
        assert await customer.submit(Order(url=url, site="cj", reference="r", postback_url="http://127.0.0.1:9/"))
        await customer.close()
        async with httpx.AsyncClient(trust_env=False) as client:
            stats = (await client.get(f"{hello['control_url']}/stats")).json()
        assert (stats["service"]["orders"], stats["service"]["calls"]) == (1, 0)
    finally:
        await server.close()
