"""What a first visit costs a shopper's line, counted on the wire: everything but pictures."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.types import ASGIApp

from tests.api.shop import item
from tests.site.shop_pages import Front

MOST = 100_000
AIM_PACKED = 40_000


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[int]:
    """The app on a real socket; gives the port."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None))
    with contextlib.closing(listener):
        task = asyncio.create_task(server.serve([listener]))
        yield listener.getsockname()[1]
        server.should_exit = True
        await task


async def on_the_wire(port: int, path: str, *, packed: bool) -> tuple[int, str]:
    """Every byte of an answer, headers included, and its body as text where it is not packed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    accept = "gzip, br" if packed else "identity"
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: menus.example\r\nAccept-Encoding: {accept}\r\nConnection: close\r\n\r\n".encode()
    )
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 200")
    return len(answer), answer.decode("utf-8", "replace")


@pytest.mark.parametrize(("packed", "most"), [(False, MOST), (True, AIM_PACKED)])
async def test_a_first_visit_is_light(front: Front, packed: bool, most: int) -> None:
    menu = [
        item(
            str(n),
            f"A Rather Long Name of a Product, Number {n} | Flower | 3.5g",
            special=[30] if n % 2 else [],
            brandName=f"Brand {n % 20}",
        )
        for n in range(80)
    ]
    await front.crawl(await front.shop.store(city="Phoenix", state="AZ"), 0, menu)
    number = (await front.rows("SELECT min(id) FROM storefront_items"))[0][0]
    answer = await front.http.get(f"/p/{number}")
    transport = front.http._transport
    async with served(transport.app) as port:  # type: ignore[attr-defined]
        for path in ("/", "/search", answer.headers["location"], "/s/1-green-leaf", "/stores"):
            total, _ = await on_the_wire(port, path, packed=packed)
            _, html = await on_the_wire(port, path, packed=False)
            parts = re.findall(r'<link rel="(?:stylesheet|icon)" href="([^"]+)"', html)
            assert len(parts) == 2
            # The only scripts offer notifications of the browser, and its position.
            scripts = re.findall(r'<script src="([^"]+)"', html)
            names = ["push.js"] * path.startswith("/p/") + ["locate.js"] * (not path.startswith("/s/"))
            assert [script.rpartition("/")[2] for script in scripts] == names
            parts += scripts
            for part in parts:
                total += (await on_the_wire(port, part, packed=packed))[0]
            assert total < most, f"{path}: {total:,} bytes"


async def test_styles_are_kept_for_good_under_an_address_of_their_content(front: Front) -> None:
    page = await front.page("/about")
    address = page.all("link", rel="stylesheet")[0]["href"] or ""
    kept = await front.http.get(address)
    assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
