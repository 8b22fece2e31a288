"""A crawl ends with pictures on disk, and the next one downloads none."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from psycopg.rows import dict_row

from menuwatch import bootstrap
from menuwatch.cli.demo import crawl_all, first_crawl, market
from menuwatch.images import store as images
from menuwatch.images.files import ImageFiles
from menuwatch.images.vips import sniff
from menuwatch.sim.http import Request
from menuwatch.sim.images import image_response
from menuwatch.system import System


async def _rows(system: System, query: Any) -> list[dict[str, Any]]:
    async with system.pool.connection() as conn, conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(query)
        return await cur.fetchall()


async def _drained(system: System) -> images.ImageCounts:
    """Waits until no picture is asked for any more."""
    async with asyncio.timeout(60):
        while True:
            async with system.pool.connection() as conn:
                found = await images.counts(conn)
            if found.queued == found.waiting == 0:
                return found
            await asyncio.sleep(0.05)


def _is_good(url: str) -> bool:
    """Whether the simulated host has a whole picture there: from its own rule, not from what was stored."""
    answer = image_response(Request("GET", urlsplit(url).path, {}, {}, b"", 0))
    return answer.status == 200 and answer.headers.get("ETag") is not None


async def test_pictures_are_downloaded_once(home: Path) -> None:
    async with market(home, store_count=2, product_count=25, seed=5, image_downloads=6) as (sim, system):
        files = ImageFiles(system.settings.storage)
        async with bootstrap.run_worker(system):
            await first_crawl(system)
            found = await _drained(system)
            asked = [a for a in await sim.arrivals() if a.host == urlsplit(sim.image_url).netloc]
            products = await _rows(
                system,
                "SELECT p.id, p.image_url, p.local_image_path, d.state, d.slug FROM store_products p JOIN dispensaries d "
                "ON d.id = p.dispensary_id ORDER BY p.id",
            )
            for product in products:
                path, url = product["local_image_path"], product["image_url"]
                if not url or not _is_good(url):
                    assert path is None, product
                    continue
                assert path.startswith(f"images/products/{product['state'].lower()}/{product['slug']}/"), product
                assert f"/{product['id']}/image-" in path
                assert sniff(files.get(path)) == "webp"
            good = {product["image_url"] for product in products if product["local_image_path"]}
            assert len(good) > 20
            brands = await _rows(
                system, "SELECT brand, url, path, status FROM image_references WHERE brand IS NOT NULL"
            )
            assert len(brands) > 5
            for brand in brands:
                assert (brand["path"] is not None) == _is_good(brand["url"]), brand
                if brand["path"] is not None:
                    assert brand["path"].startswith(f"images/brands/{brand['brand']}/logo-")
                    assert sniff(files.get(brand["path"])) == "webp"
            wanted = [*products, *({"image_url": b["url"], "local_image_path": b["path"]} for b in brands)]
            assert found.stored == sum(one["local_image_path"] is not None for one in wanted)
            assert found.failed == sum(bool(one["image_url"]) and one["local_image_path"] is None for one in wanted)
            # One address is asked once, however many products have it, and one that failed as often as it is worth while.
            per_url: dict[str, int] = {}
            for arrival in asked:
                per_url[arrival.path] = per_url.get(arrival.path, 0) + 1
            assert {per_url[urlsplit(url).path] for url in good} == {1}
            assert max(per_url.values()) <= system.settings.image_tries
            assert all(arrival.proxy is not None for arrival in asked), "through a proxy"

            (robots,) = [path for path in per_url if path == "/robots.txt"]
            assert per_url[robots] == 1
            places = [
                system.settings.storage / files.place(one["local_image_path"])
                for one in wanted
                if one["local_image_path"]
            ]
            contents = {place.read_bytes() for place in places}
            inodes = {place.stat().st_ino for place in places}
            assert len(inodes) == len(contents) == found.images, "the same picture lies on disk once"

            before = len(await sim.arrivals())
            await sim.tick()
            await crawl_all(system)
            found = await _drained(system)
            again = [a.path for a in (await sim.arrivals())[before:] if a.host == urlsplit(sim.image_url).netloc]
            known = {urlsplit(product["image_url"]).path for product in products if product["image_url"]}
            assert not known & set(again), "what was there, or was given up, is not asked for again"
        for folder, _, names in os.walk(system.settings.storage / "images"):
            assert not [name for name in names if name.startswith(".")], folder
