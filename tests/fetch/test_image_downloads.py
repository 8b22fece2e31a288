"""Downloads over real sockets, through real proxies: what is asked how often, and what comes of every kind of answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from menuwatch.catalog import store as catalog
from menuwatch.config.settings import Settings
from menuwatch.core.backoff import Backoff
from menuwatch.db.pool import Pool
from menuwatch.fetch.robots import Policy
from menuwatch.fetch.rotator import Rotator
from menuwatch.images import service as operations
from menuwatch.images import store as images
from menuwatch.images.downloads import BATCH, DownloadPolicy, ImageDownloads
from menuwatch.images.files import ImageFiles
from menuwatch.proxies import store as proxies
from menuwatch.proxies.model import NewProxy
from menuwatch.sim.proxies import ProxyFarm
from tests.fetch.target import NAME, Reply, Seen, Target
from tests.images.image_factory import encoded, halves, noise, png_bomb
from tests.market import START, add_store, crawl, item

PICTURE = encoded(halves(60, 40), ".jpg")
IMAGE = {"Content-Type": "image/jpeg"}


class Shop:
    """Stores whose products have pictures at the target, and a loop that downloads them."""

    def __init__(self, pool: Pool, rotator: Rotator, files: ImageFiles, target: Target) -> None:
        self.pool = pool
        self.rotator = rotator
        self.files = files
        self.target = target
        self.ended: list[str] = []
        self.replies: dict[str, Reply | Callable[[Seen], Reply]] = {}
        target.script = self._answer

    def _answer(self, seen: Seen) -> Reply:
        found = self.replies.get(seen.path, Reply(body=PICTURE, headers=IMAGE))
        return found if isinstance(found, Reply) else found(seen)

    def loop(self, **manner: Any) -> ImageDownloads:
        chosen = {"hosts": (NAME,), "backoff": Backoff(base=0.0), "tries": 3, "timeout_seconds": 1.0} | manner
        return ImageDownloads(
            self.pool,
            self.files,
            self.rotator.open,
            DownloadPolicy(**chosen),
            interval=0.05,
            rng=random.Random(1),
            on_ended=self.ended.append,
        )

    async def stock(self, *urls: str | None, store: str = "store-1", number: int = 0) -> int:
        """A store with a product for each address (a path at the target, or a whole one)."""
        async with self.pool.connection() as conn:
            await conn.execute("SELECT ensure_product_history_partition(%s)", [START])
            store_id = await add_store(conn, store)
            await crawl(conn, store_id, number, [item(f"p{n:03d}") for n in range(len(urls))])
            for n, url in enumerate(urls):
                whole = self.target.url(url) if url is not None and url.startswith("/") and url[1:2] != "/" else url
                await conn.execute(
                    "UPDATE catalog_products SET image_url = %s, brand_name = 'Good Brand' "
                    "WHERE dispensary_id = %s AND provider_product_id = %s",
                    [whole, store_id, f"p{n:03d}"],
                )
            await images.queue_products(conn, store_id)
        return store_id

    async def rows(self, query: str = "SELECT * FROM image_references ORDER BY id") -> list[dict[str, Any]]:
        async with self.pool.connection() as conn, conn.cursor(row_factory=dict_row) as cur:
            await cur.execute(query.encode())
            return await cur.fetchall()

    async def products(self) -> list[str | None]:
        return [
            row["local_image_path"]
            for row in await self.rows("SELECT local_image_path FROM store_products ORDER BY id")
        ]

    async def drain(self, loop: ImageDownloads, steps: int = 30) -> None:
        for _ in range(steps):
            pause = await loop.step()
            async with self.pool.connection() as conn:
                soon = await images.next_due(conn)
            if soon is None or (soon > 1 and pause != 0.0):
                return
        raise AssertionError("there is still something to do")

    def asked(self) -> list[str]:
        return [seen.path for seen in self.target.seen]


@pytest.fixture
async def shop(pool: Pool, farm: ProxyFarm, target: Target, tmp_path: Path) -> AsyncIterator[Shop]:
    settings = Settings(
        fetch_retry_base_seconds=0,
        fetch_timeout_seconds=1.0,
        host_rate=100_000,
        host_burst=1000,
        host_cooldown_seconds=30,
    )
    rotator = Rotator(pool, settings, rng=random.Random(11), robots=lambda _: Policy(respect=False))
    async with pool.connection() as conn:
        for info in farm.infos:
            new = NewProxy(
                protocol=info.protocol, host=info.host, port=info.port, username=info.username, password=info.password
            )
            await proxies.add(conn, new)
    yield Shop(pool, rotator, ImageFiles(tmp_path / "storage"), target)
    await rotator.close()


async def test_a_picture_is_stored_and_its_product_knows(shop: Shop) -> None:
    await shop.stock("/a.jpg", None, "")
    await shop.drain(shop.loop())
    (use,) = await shop.rows()
    first, *others = await shop.products()
    assert first == use["path"]
    assert first is not None
    assert first.startswith(f"images/products/unknown/store-1/good-brand/{use['product_id']}/image-")
    assert others == [None, None]
    (image,) = await shop.rows("SELECT * FROM images")
    assert (image["width"], image["height"], image["source_format"], image["source_bytes"]) == (
        60,
        40,
        "jpeg",
        len(PICTURE),
    )
    assert len(shop.files.get(first)) == image["bytes"]
    (seen,) = shop.target.seen
    assert seen.proxy is not None
    assert seen["accept"].startswith("image/")
    assert (use["status"], use["url"]) == ("stored", shop.target.url("/a.jpg")), "the original address is kept"


async def test_an_address_is_asked_once_and_a_picture_lies_on_disk_once(shop: Shop, tmp_path: Path) -> None:
    await shop.stock("/a.jpg", "/a.jpg", "/same.jpg", "/other.jpg")
    shop.replies["/other.jpg"] = Reply(body=encoded(noise(50, 50), ".png"), headers=IMAGE)
    await shop.stock("/a.jpg", store="store-2")
    await shop.drain(shop.loop())
    assert sorted(shop.asked()) == ["/a.jpg", "/other.jpg", "/same.jpg"]
    paths = await shop.products()
    assert len(set(paths)) == 5, "each product has a path of its own"
    inodes = {(tmp_path / "storage" / shop.files.place(path)).stat().st_ino for path in paths if path}
    assert len(inodes) == 2, "of two pictures"
    await shop.stock("/a.jpg", store="store-3")
    await shop.drain(shop.loop())
    assert len(shop.asked()) == 3, "a new product with a known address costs nothing"
    assert None not in await shop.products()


async def test_two_processes_ask_no_address_twice(shop: Shop) -> None:
    await shop.stock(*(f"/{n}.jpg" for n in range(50)))
    await asyncio.gather(*(shop.drain(shop.loop()) for _ in range(3)))
    await shop.drain(shop.loop())
    assert sorted(shop.asked()) == sorted(f"/{n}.jpg" for n in range(50))
    assert None not in await shop.products()


PAGE = Reply(body=b"<html>busy</html>", headers={"Content-Type": "text/html"})


@pytest.mark.parametrize(
    ("reply", "times", "reason"),
    [
        (Reply(404), 1, "HTTP 404"),
        (Reply(410), 1, "HTTP 410"),
        (Reply(body=png_bomb(), headers=IMAGE), 1, "30000 x 30000 pixels are 900 million"),
        (Reply(body=b"<svg xmlns='http://www.w3.org/2000/svg'/>", headers={"Content-Type": "image/svg+xml"}), 1, "an SVG"),
        (Reply(body=b"BM" + bytes(100), headers={"Content-Type": "image/bmp"}), 1, "a BMP"),
        (PAGE, 3, "a web page"),
        (Reply(body=b'{"error": 1}'), 3, "JSON"),
        (Reply(body=b"", headers=IMAGE), 3, "an empty response"),
        (Reply(body=PICTURE[:200], headers=IMAGE), 3, "premature end"),
        (Reply(body=encoded(noise(90, 90), ".png")[:300], headers=IMAGE), 3, "png cannot be decoded"),
        (Reply(302, headers={"Location": "http://elsewhere.invalid/x.jpg"}), 1, "is not allowed"),
        (Reply(302, headers={"Location": "file:///etc/passwd"}), 1, "only https"),
    ],
)  # fmt: skip
async def test_what_is_no_picture_is_given_up_with_the_reason(
    shop: Shop, reply: Reply, times: int, reason: str
) -> None:
    await shop.stock("/bad.jpg", "/good.jpg")
    shop.replies["/bad.jpg"] = reply
    await shop.drain(shop.loop())
    bad, good = await shop.rows()
    assert (bad["status"], good["status"]) == ("failed", "stored")
    assert reason in bad["error"]
    assert sorted(shop.ended) == ["failed"] * (times - 1) + ["given_up", "stored"]
    assert ("tried 3 times" in bad["error"]) == (times == 3)
    assert shop.asked().count("/bad.jpg") == times
    assert await shop.products() == [None, good["path"]]
    assert not [entry.path for entry in shop.files.every() if entry.path != good["path"]]


async def test_a_wrong_content_type_does_not_matter(shop: Shop) -> None:
    shop.replies["/a"] = Reply(body=PICTURE, headers={"Content-Type": "text/plain"})
    await shop.stock("/a")
    await shop.drain(shop.loop())
    assert None not in await shop.products()


async def test_what_fails_at_first_may_come_in_the_end(shop: Shop) -> None:
    left = [Reply(500), Reply(500), Reply(500), PAGE]
    shop.replies["/a.jpg"] = lambda _: left.pop(0) if left else Reply(body=PICTURE, headers=IMAGE)
    await shop.stock("/a.jpg")
    await shop.drain(shop.loop())
    assert None not in await shop.products()
    assert not left


async def test_waits_grow_and_are_kept(shop: Shop) -> None:
    shop.replies["/a.jpg"] = PAGE
    await shop.stock("/a.jpg")
    await shop.loop(backoff=Backoff(base=600.0, factor=4.0, jitter=0.0)).step()
    (source,) = await shop.rows("SELECT attempts, extract(epoch FROM due_at - now()) AS wait, error FROM image_urls")
    assert (source["attempts"], 595 < source["wait"] <= 600) == (1, True)
    assert "web page" in source["error"]
    assert await shop.loop().step() == 0.05, "it sleeps no longer than its interval"
    assert shop.asked() == ["/a.jpg"]


@pytest.mark.parametrize(
    "url",
    [
        "http://other.invalid/x.jpg", "https://127.0.0.1/x.jpg", "http://169.254.169.254/latest", "file:///etc/passwd", "x.jpg",
        "data:image/png;base64,AAAA", f"http://u:p@{NAME}/x.jpg", f"http://{NAME}.evil.invalid/x", "http://[::1]/x", "http://[x/y",
        "http://" + "a" * 3000, f"http://{NAME}/" + "a" * 3000, "javascript:alert(1)", "http://", "ftp://" + NAME, f"http://{NAME}:x/",
    ],
)  # fmt: skip
async def test_addresses_that_nobody_should_ask(shop: Shop, url: str) -> None:
    await shop.stock(url)
    await shop.drain(shop.loop())
    (use,) = await shop.rows()
    assert use["status"] == "failed"
    assert use["error"]
    assert shop.asked() == []


async def test_a_store_that_may_not_be_contacted(shop: Shop) -> None:
    store = await shop.stock("/a.jpg")
    async with shop.pool.connection() as conn:
        await conn.execute("UPDATE dispensaries SET crawl_enabled = false WHERE id = %s", [store])
    await shop.drain(shop.loop())
    assert shop.asked() == []
    (source,) = await shop.rows("SELECT * FROM image_urls")
    assert "no store may be contacted" in source["error"]
    await shop.stock("/a.jpg", store="store-2")
    await shop.drain(shop.loop())
    async with shop.pool.connection() as conn:
        await conn.execute("UPDATE image_urls SET due_at = now()")
    await shop.drain(shop.loop())
    assert shop.asked() == ["/a.jpg"], "another store wants it as well"


async def test_a_host_that_wants_a_pause_gets_it_and_nothing_is_counted(shop: Shop) -> None:
    await shop.stock(*(f"/{n}.jpg" for n in range(5)))
    for n in range(5):
        shop.replies[f"/{n}.jpg"] = Reply(429, headers={"Retry-After": "300"})
    await shop.loop(concurrency=1).step()
    assert len(shop.asked()) == 1
    sources = await shop.rows("SELECT attempts, extract(epoch FROM due_at - now()) AS wait FROM image_urls")
    assert {source["attempts"] for source in sources} == {0}
    assert all(source["wait"] > 290 for source in sources)


async def test_without_a_proxy_nothing_is_asked_and_nothing_is_lost(shop: Shop) -> None:
    await shop.stock("/a.jpg")
    async with shop.pool.connection() as conn:
        await conn.execute("UPDATE proxies SET is_active = false")
    await shop.loop().step()
    assert shop.asked() == []
    (source,) = await shop.rows("SELECT attempts, status, error FROM image_urls")
    assert (source["attempts"], source["status"]) == (0, "waiting")
    assert "proxy" in source["error"]


async def test_a_refusal_of_all_gives_the_host_a_rest(shop: Shop) -> None:
    await shop.stock("/a.jpg", "/b.jpg")
    shop.replies["/a.jpg"] = shop.replies["/b.jpg"] = Reply(403)
    await shop.loop(concurrency=1, blocked_seconds=500.0, backoff=Backoff(base=100.0, jitter=0.0)).step()
    sources = await shop.rows("SELECT attempts, extract(epoch FROM due_at - now()) AS wait FROM image_urls ORDER BY id")
    assert [source["attempts"] for source in sources] == [1, 0]
    assert all(source["wait"] > 90 for source in sources)
    assert "/b.jpg" not in shop.asked()


async def test_a_claim_lapses_with_its_process(shop: Shop) -> None:
    await shop.stock("/a.jpg")
    loop = shop.loop()
    await loop._assign()
    async with shop.pool.connection() as conn:
        (source,) = await images.claim(conn, BATCH, lease_seconds=0.05)
        assert await images.claim(conn, BATCH, lease_seconds=60) == []
    async with asyncio.timeout(5):
        while await shop.products() == [None]:
            await loop.step()
            await asyncio.sleep(0.01)
    assert source.url == shop.target.url("/a.jpg")


async def test_a_stop_gives_back_what_was_not_begun(shop: Shop) -> None:
    await shop.stock(*(f"/{n}.jpg" for n in range(10)))
    loop = shop.loop(concurrency=1)

    def stop(_: Seen) -> Reply:
        loop.stop()
        return Reply(body=PICTURE, headers=IMAGE)

    for n in range(10):
        shop.replies[f"/{n}.jpg"] = stop
    await loop.step()
    assert len(shop.asked()) == 1
    assert await shop.rows("SELECT 1 FROM image_urls WHERE due_at > now() + interval '1 second'") == []


async def test_a_product_that_failed_is_asked_for_again_at_another_address(shop: Shop) -> None:
    store = await shop.stock("/gone.jpg")
    shop.replies["/gone.jpg"] = Reply(404)
    await shop.drain(shop.loop())
    async with shop.pool.connection() as conn:
        assert await images.queue_products(conn, store) == 0, "not at the same one"
        await conn.execute("UPDATE catalog_products SET image_url = %s", [shop.target.url("/new.jpg")])
        assert await images.queue_products(conn, store) == 1
    await shop.drain(shop.loop())
    assert None not in await shop.products()
    async with shop.pool.connection() as conn:
        await conn.execute("UPDATE catalog_products SET image_url = %s", [shop.target.url("/newer.jpg")])
        assert await images.queue_products(conn, store) == 0, "what has a picture keeps it"


async def test_backfill_asks_for_what_was_given_up(shop: Shop) -> None:
    await shop.stock("/a.jpg", "http://other.invalid/x.jpg")
    shop.replies["/a.jpg"] = Reply(404)
    await shop.drain(shop.loop())
    assert await operations.backfill(shop.pool) == (0, 0)
    del shop.replies["/a.jpg"]
    assert await operations.backfill(shop.pool, failed=True) == (0, 2)
    await shop.drain(shop.loop())
    assert [row["status"] for row in await shop.rows()] == ["stored", "failed"]
    async with shop.pool.connection() as conn:
        await conn.execute("DELETE FROM image_references")
        await conn.execute("UPDATE catalog_products SET local_image_path = NULL")
    assert (await operations.backfill(shop.pool))[0] == 2
    await shop.drain(shop.loop())
    assert shop.asked().count("/a.jpg") == 2, "what an address has is known"


async def test_a_removed_product_wants_nothing(shop: Shop) -> None:
    await shop.stock("/a.jpg", "/b.jpg")
    await shop.loop()._assign()
    async with shop.pool.connection() as conn:
        await conn.execute("DELETE FROM catalog_products WHERE provider_product_id = 'p000'")
    await shop.drain(shop.loop())
    assert shop.asked() == ["/b.jpg"]
    assert len(await shop.rows()) == 1


async def test_whoever_applies_a_menu_is_never_waited_for(shop: Shop, database_url: str) -> None:
    await shop.stock("/a.jpg", "/b.jpg")
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        await other.execute("SELECT 1 FROM catalog_products WHERE provider_product_id = 'p000' FOR NO KEY UPDATE")
        await shop.loop().step()
        await shop.loop().step()
        assert [path is not None for path in await shop.products()] == [False, True]
        await other.rollback()
    async with asyncio.timeout(10):
        while None in await shop.products():
            await shop.loop().step()
            await asyncio.sleep(0.05)
    assert len(shop.asked()) == 2


async def test_logos(shop: Shop) -> None:
    async with shop.pool.connection() as conn:
        logos = {"good-brand": shop.target.url("/logo.png"), "other": "http://x.invalid/y"}
        assert await images.queue_brands(conn, logos) == 2
        assert await images.queue_brands(conn, logos) == 0
    await shop.drain(shop.loop())
    good, other = await shop.rows("SELECT * FROM image_references ORDER BY brand")
    assert good["path"].startswith("images/brands/good-brand/logo-")
    assert shop.files.has(good["path"])
    assert other["status"] == "failed"


async def test_verify_finds_and_repairs(shop: Shop, tmp_path: Path) -> None:
    await shop.stock("/a.jpg", "/b.jpg", "/c.jpg", "/d.jpg")
    shop.replies["/b.jpg"] = Reply(body=encoded(noise(80, 80), ".png"), headers=IMAGE)
    shop.replies["/c.jpg"] = Reply(body=encoded(noise(70, 70), ".png"), headers=IMAGE)
    await shop.drain(shop.loop())
    assert (await operations.verify(shop.pool, shop.files, deep=True, young_seconds=0)).is_whole
    a, b, c, d = [tmp_path / "storage" / shop.files.place(path or "") for path in await shop.products()]
    b.unlink()
    c.write_bytes(c.read_bytes()[:200])
    stray = d.with_name("image-00000000000000000000000000000000.webp")
    stray.write_bytes(b"x")
    async with shop.pool.connection() as conn:
        await conn.execute("UPDATE catalog_products SET local_image_path = NULL WHERE provider_product_id = 'p003'")
    assert (await operations.verify(shop.pool, shop.files)).orphaned == 0, "young ones are left alone"
    found = await operations.verify(shop.pool, shop.files, deep=True, young_seconds=0)
    assert (found.checked, found.missing, found.damaged, found.unlisted, found.orphaned) == (4, 1, 1, 1, 1)
    assert not found.is_whole
    assert stray.exists()
    found = await operations.verify(shop.pool, shop.files, deep=True, repair=True, young_seconds=0)
    assert found.repaired == 4
    await shop.drain(shop.loop())
    assert (await operations.verify(shop.pool, shop.files, deep=True, young_seconds=0)).is_whole
    assert None not in await shop.products()
    assert a.exists()
    assert not stray.exists()


async def test_a_full_disk_costs_no_picture_its_tries(shop: Shop, tmp_path: Path) -> None:
    await shop.stock("/a.jpg")
    (tmp_path / "storage").mkdir()
    (tmp_path / "storage" / "images").write_text("a file where a folder should be")
    await shop.loop().step()
    (source,) = await shop.rows("SELECT attempts, status, error FROM image_urls")
    assert (source["attempts"], source["status"]) == (0, "waiting")
    assert "could not be stored" in source["error"]


async def test_the_catalogue_writes_only_what_is_free(shop: Shop) -> None:
    await shop.stock("/a.jpg")
    async with shop.pool.connection() as conn:
        assert await catalog.set_local_images(conn, {999_999: "x"}) == set()
