"""Rendered pages that the server keeps: for how long, for whom, and what is never kept."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry, Counter
from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from menuwatch.config.settings import Settings
from menuwatch.web.page_cache import PageCache, share
from menuwatch.web.request_middleware import Observe, Traffic
from tests.api.shop import item
from tests.site.shop_pages import Front


class Pages:
    """An app whose pages say how often they were rendered, behind the cache and compression, with a clock that is moved by hand."""

    def __init__(self, *, megabytes: int = 1, size: int = 0) -> None:
        self.now = 1_000.0
        self.rendered = 0
        self.takes = 0.0
        self.fails = False
        self.size = size
        self.results = Counter("pages", "", ("result",), registry=CollectorRegistry())
        app = Starlette(routes=[Route("/{path:path}", self._page, methods=["GET", "POST"])])
        app.add_middleware(GZipMiddleware, minimum_size=100)
        app.add_middleware(
            PageCache,
            megabytes=megabytes,
            variant=lambda request: request.cookies.get("age"),
            results=self.results,
            clock=lambda: self.now,
        )
        app.add_middleware(Observe, traffic=Traffic(), on_fault=lambda _request: Response(status_code=500))
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://menus.example")

    async def _page(self, request: Request) -> Response:
        self.rendered += 1
        self.now += self.takes
        if self.fails:
            raise RuntimeError("a page that breaks")
        if request.url.path != "/own":
            share(request)
        status = 404 if request.url.path == "/gone" else 200
        text = f"{self.rendered} {request.url}" + "x" * self.size
        return PlainTextResponse(text, status, headers={"Cache-Control": "private, max-age=60"})

    async def get(self, path: str = "/", **headers: str) -> str:
        """The number of the rendering that was sent."""
        given = {"Accept-Encoding": "identity", **{name.replace("_", "-"): text for name, text in headers.items()}}
        return (await self.http.get(path, headers=given)).text.partition(" ")[0]

    def counted(self, result: str) -> float:
        return self.results.labels(result)._value.get()


async def test_a_page_is_rendered_once_and_says_its_age() -> None:
    pages = Pages()
    first = await pages.http.get("/")
    pages.now += 20
    again = await pages.http.get("/")
    assert (first.text, again.text) == ("1 http://menus.example/", "1 http://menus.example/")
    assert "age" not in first.headers
    assert again.headers["age"] == "20"
    assert again.headers["content-length"] == str(len(again.content))
    assert (pages.counted("hit"), pages.counted("miss")) == (1, 1)


async def test_headers_of_one_request_are_not_kept() -> None:
    pages = Pages()
    for name in ("first", "second"):
        answer = await pages.http.get("/", headers={"X-Request-Id": name})
        assert answer.headers.get_list("x-request-id") == [name]
    assert pages.rendered == 1


async def test_the_age_of_a_page_includes_its_rendering() -> None:
    pages = Pages()
    pages.takes = 61
    assert [await pages.get(), await pages.get()] == ["1", "2"]


async def test_no_page_is_older_than_a_minute() -> None:
    pages = Pages()
    assert await pages.get() == "1"
    pages.now += 60.5
    assert await pages.get() == "2"


async def test_an_older_page_is_sent_at_once_and_renewed_in_the_background() -> None:
    pages = Pages()
    await pages.get()
    pages.now += 31
    assert [await pages.get(), await pages.get()] == ["1", "1"]
    await asyncio.sleep(0.05)
    assert pages.rendered == 2
    pages.now += 29
    assert await pages.get() == "2"


async def test_a_page_that_cannot_be_renewed_stays_until_it_is_a_minute_old() -> None:
    pages = Pages()
    await pages.get()
    pages.fails = True
    pages.now += 40
    assert await pages.get() == "1"
    await asyncio.sleep(0.05)
    assert pages.rendered == 2
    assert await pages.get() == "1"
    pages.fails = False
    pages.now += 21
    await asyncio.sleep(0.05)
    assert int(await pages.get()) > 2


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/?page=2", {}),
        ("/other", {}),
        ("/", {"Cookie": "age=21"}),
        ("/", {"Host": "other.example"}),
    ],
)
async def test_what_a_page_depends_on_tells_pages_apart(path: str, headers: dict[str, str]) -> None:
    pages = Pages()
    assert await pages.get() == "1"
    assert await pages.get(path, **headers) == "2"
    assert [await pages.get(), await pages.get(path, **headers)] == ["1", "2"]


async def test_compressed_pages_are_kept_beside_plain_ones() -> None:
    pages = Pages(size=500)
    plain = await pages.http.get("/", headers={"Accept-Encoding": "identity"})
    for _ in range(2):
        packed = await pages.http.get("/", headers={"Accept-Encoding": "gzip"})
        assert packed.headers["content-encoding"] == "gzip"
        assert len(gzip.compress(packed.content, 0)) > int(packed.headers["content-length"])
        assert packed.text == plain.text.replace("1 ", "2 ", 1)
    assert pages.rendered == 2


async def test_personal_pages_errors_and_forms_are_not_kept() -> None:
    pages = Pages()
    assert [await pages.get("/own"), await pages.get("/own")] == ["1", "2"]
    assert [await pages.get("/gone"), await pages.get("/gone")] == ["3", "4"]
    await pages.http.post("/")
    assert await pages.get("/") == "6"
    assert await pages.get("/", X_Fragment="1") == "7"


async def test_the_least_recently_used_page_makes_room() -> None:
    pages = Pages(size=300_000)
    for path in ("/a", "/b", "/c", "/a", "/d"):
        await pages.get(path)
    assert pages.rendered == 4
    assert await pages.get("/a") == "1"
    assert await pages.get("/b") == "5"


async def test_long_addresses_take_room_as_well() -> None:
    pages = Pages()
    for number in range(30):
        await pages.get(f"/?{number}={'x' * 50_000}")
    assert await pages.get(f"/?29={'x' * 50_000}") == "30"
    assert await pages.get(f"/?0={'x' * 50_000}") == "31"


async def test_a_page_larger_than_the_cache_is_sent_and_not_kept() -> None:
    pages = Pages(size=1_100_000)
    assert [await pages.get(), await pages.get()] == ["1", "2"]


async def test_without_memory_nothing_is_kept() -> None:
    pages = Pages(megabytes=0)
    assert [await pages.get(), await pages.get()] == ["1", "2"]


class TestSite:
    """The public site with its default settings."""

    @pytest.fixture
    def settings(self, tmp_path: Path) -> Settings:
        return Settings(home=tmp_path, public_url="http://menus.example", minimum_age=21)

    async def test_the_question_for_the_age_is_kept_apart(self, front: Front) -> None:
        await front.crawl(await front.shop.store("near", city="Mesa", state="AZ"), 0, [item("1")])
        confirmed = {"Cookie": "menuwatch_age=21"}
        for _ in range(2):
            asked = await front.http.get("/search")
            page = await front.http.get("/search", headers=confirmed)
            assert asked.headers["cache-control"] == "no-store"
            assert page.headers["cache-control"] == "private, max-age=60"
            assert "21 or older" in asked.text
            assert "21 or older" not in page.text
        assert page.headers["age"] == "0"
