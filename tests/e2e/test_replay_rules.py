"""What a replay does to archive and catalogue: the same bytes again, parts of a menu, archive files, stores by their names."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg.rows import dict_row

from menuwatch.archive.files import FileArchive
from menuwatch.core.clock import ManualClock
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Pool
from menuwatch.pipeline.context import HandlerContext
from menuwatch.pipeline.replay import Replayed, replay
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details
from tests.e2e.recordings import NOW, SHOP, archived, page, product


@dataclass
class Bench:
    """Replays into a database of its own; the clock moves on a minute for each replay."""

    pool: Pool
    parts: HandlerContext
    clock: ManualClock
    folder: Path

    def file(self, name: str, body: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(body)
        return path

    async def replay(self, *bodies: bytes, store: str | None = None) -> Replayed:
        """One replay of files with these contents; it is of one menu."""
        self.clock.advance(timedelta(minutes=1))
        files = [self.file(f"{n}.json", body) for n, body in enumerate(bodies)]
        (done,) = (await replay(self.parts, self.parts.platforms["dutchie"], files, store=store)).menus
        return done

    async def rows(self, query: Any, *values: Any) -> list[dict[str, Any]]:
        async with self.pool.connection() as conn, conn.cursor(row_factory=dict_row) as cur:
            await cur.execute(query, values)
            return await cur.fetchall()

    async def misses(self) -> dict[str, int]:
        rows = await self.rows("SELECT provider_product_id, consecutive_misses FROM store_products ORDER BY id")
        return {row["provider_product_id"]: row["consecutive_misses"] for row in rows}

    def staged(self) -> list[object]:
        return list(self.parts.archive.staged())


@pytest.fixture
def bench(pool: Pool, tmp_path: Path) -> Bench:
    def no_session(**_: Any) -> Any:
        raise AssertionError("a replay never touches the network")

    clock = ManualClock(NOW)
    parts = HandlerContext(
        pool=pool,
        clock=clock,
        archive=FileArchive(tmp_path / "storage"),
        platforms={"dutchie": Dutchie()},
        open_session=no_session,
        suspect_share=0.4,
        blocked_wait=timedelta(seconds=1),
    )
    return Bench(pool, parts, clock, tmp_path)


def told(done: Replayed) -> dict[str, int]:
    """The figures that are not 0."""
    return {key: n for key, n in done.counts.items() if n and key != "warning_count"}


async def test_the_same_file_changes_nothing_after_others_came_between(bench: Bench) -> None:
    a, b = (page([product(n, price=price) for n in range(5)]) for price in (10, 12))
    assert told(await bench.replay(a)) == {"products": 5, "new": 5}
    assert told(await bench.replay(b)) == {"products": 5, "changed": 5, "price_changes": 5}
    for body in (a, b, a):
        assert told(await bench.replay(body)) == {"products": 5, "unchanged": 5, "already_applied": True}
    (figures,) = await bench.rows("SELECT count(*) AS crawls FROM store_crawls")
    assert figures == {"crawls": 2}
    assert {row["price_rec"] for row in await bench.rows("SELECT price_rec FROM store_products")} == {12}


async def test_figures_of_a_menu_that_was_applied_are_those_of_its_crawl(bench: Bench) -> None:
    """22 rows are 20 distinct products, the first time and the second."""
    body = page([product(n) for n in range(20)] + [product(0), product(1)])
    first = await bench.replay(body)
    assert told(first) == {"products": 20, "new": 20}
    assert told(await bench.replay(body)) == {"products": 20, "unchanged": 20, "already_applied": True}
    assert [row["product_count"] for row in await bench.rows("SELECT product_count FROM raw_crawl_payloads")] == [20]


async def test_one_file_named_three_times_is_one_page(bench: Bench) -> None:
    body = page([product(n) for n in range(20)])
    assert told(await bench.replay(body, body, body)) == {"products": 20, "new": 20}
    assert told(await bench.replay(body)) == {"products": 20, "unchanged": 20, "already_applied": True}
    assert [row["page_count"] for row in await bench.rows("SELECT page_count FROM raw_crawl_payloads")] == [1]


async def test_a_quarantined_file_stays_the_one_payload(bench: Bench) -> None:
    await bench.replay(page([product(n) for n in range(20)]))
    short = page([product(0)])
    first, second = await bench.replay(short), await bench.replay(short)
    assert first.refused == "shrunk: 1 products, usually 20"
    assert (second.payload_id, second.refused) == (first.payload_id, first.refused)
    assert set((await bench.misses()).values()) == {0}


async def test_many_replays_of_one_file_at_once_make_one_crawl(bench: Bench) -> None:
    await bench.replay(page([product(n) for n in range(5)]))
    file = bench.file("next.json", page([product(n, price=13) for n in range(5)]))
    platform = bench.parts.platforms["dutchie"]
    ended = await asyncio.gather(*(replay(bench.parts, platform, [file]) for _ in range(4)))
    figures = sorted(
        (told(done) for (done,) in (one.menus for one in ended)), key=lambda counts: "changed" not in counts
    )
    again = {"products": 5, "unchanged": 5, "already_applied": True}
    assert figures == [{"products": 5, "changed": 5, "price_changes": 5}, again, again, again]
    assert len(await bench.rows("SELECT 1 FROM raw_crawl_payloads")) == 2


async def test_replays_of_different_files_at_one_instant(bench: Bench) -> None:
    """The clock stands still: each takes an instant of its own, and every payload has its file."""
    files = [bench.file(f"{price}.json", page([product(n, price=price) for n in range(5)])) for price in range(10, 14)]
    platform = bench.parts.platforms["dutchie"]
    ended = await asyncio.gather(*(replay(bench.parts, platform, [file]) for file in files))
    rows = await bench.rows("SELECT id, path, sha256, fetched_at FROM raw_crawl_payloads ORDER BY fetched_at")
    assert [row["fetched_at"] - NOW for row in rows] == [timedelta(microseconds=n) for n in range(4)]
    assert len({row["id"] for row in rows} & {done.payload_id for (done,) in (one.menus for one in ended)}) == 4
    for row in rows:
        assert len(bench.parts.archive.read(row["path"], row["sha256"]).pages) == 1
    assert bench.staged() == []


# HandlerContext of a menu.


def half(first: bool, price: int = 10) -> bytes:
    numbers = range(80) if first else range(80, 138)
    return page([product(n, price=price) for n in numbers], total=138, pages=2)


async def test_both_pages_are_the_whole_menu(bench: Bench) -> None:
    done = await bench.replay(half(True), half(False))
    assert (told(done), done.part) == ({"products": 138, "new": 138}, None)
    assert [row["notes"] for row in await bench.rows("SELECT notes FROM raw_crawl_payloads")] == [
        ["replayed from a file"]
    ]


async def test_pages_one_by_one_make_no_product_missing(bench: Bench) -> None:
    first = await bench.replay(half(True))
    assert (told(first), first.part) == ({"products": 80, "new": 80}, "80 of 138 products")
    second = await bench.replay(half(False))
    assert (told(second), second.part) == ({"products": 58, "new": 58}, "58 of 138 products")
    again = await bench.replay(half(True, price=11))
    # They were not seen in between, so they come back; that they were missing nobody said.
    assert told(again) == {"products": 80, "changed": 80, "price_changes": 80, "returned": 80}
    assert set((await bench.misses()).values()) == {0}
    rows = await bench.rows(
        "SELECT product_count, total_count, notes, status, is_partial FROM raw_crawl_payloads ORDER BY id"
    )
    assert [(row["product_count"], row["total_count"], row["status"]) for row in rows] == [
        (80, 138, "ok"), (58, 138, "ok"), (80, 138, "ok"),
    ]  # fmt: skip
    assert rows[0]["notes"] == ["replayed from a file", "80 of 138 products"]
    assert all(row["is_partial"] for row in rows)


async def test_a_part_is_no_measure_of_the_stores_size(bench: Bench) -> None:
    """A small part is not quarantined, and a menu is not compared with one."""
    await bench.replay(page([product(n) for n in range(100)]))
    part = await bench.replay(page([product(n, price=11) for n in range(5)], total=100))
    assert (part.refused, part.part) == (None, "5 of 100 products")
    short = await bench.replay(page([product(n, price=12) for n in range(20)]))
    assert short.refused == "shrunk: 20 products, usually 100"


# Archive files.


async def test_archive_files_keep_their_time_and_make_history_in_its_order(bench: Bench) -> None:
    days = [NOW - timedelta(days=n) for n in (1, 3, 2)]
    files = [bench.file(f"{n}.json", archived(at, page([product(1, price=10 + n)]))) for n, at in enumerate(days)]
    done = (await replay(bench.parts, bench.parts.platforms["dutchie"], files)).menus
    assert [told(one) for one in done] == [
        {"products": 1, "new": 1},
        {"products": 1, "changed": 1, "price_changes": 1},
        {"products": 1, "changed": 1, "price_changes": 1},
    ]
    rows = await bench.rows("SELECT fetched_at, platform FROM raw_crawl_payloads ORDER BY id")
    assert [row["fetched_at"] for row in rows] == sorted(days)
    changes = await bench.rows("SELECT changed_at, price_rec_after FROM product_changes ORDER BY changed_at")
    assert [(row["changed_at"], row["price_rec_after"]) for row in changes][-2:] == [(days[2], 12), (days[0], 10)]
    again = (await replay(bench.parts, bench.parts.platforms["dutchie"], files)).menus
    assert [told(one) for one in again] == [{"products": 1, "unchanged": 1, "already_applied": True}] * 3


async def test_an_archive_file_of_our_own_changes_nothing(bench: Bench) -> None:
    done = await bench.replay(page([product(n) for n in range(3)]))
    await bench.replay(page([product(n, price=12) for n in range(3)]))
    (row,) = await bench.rows("SELECT path FROM raw_crawl_payloads WHERE id = %s", done.payload_id)
    again = await bench.replay((bench.folder / "storage" / row["path"]).read_bytes())
    assert (again.payload_id, told(again)) == (
        done.payload_id,
        {"products": 3, "unchanged": 3, "already_applied": True},
    )


async def test_an_archive_file_older_than_the_last_crawl_is_superseded(bench: Bench) -> None:
    await bench.replay(page([product(1)]))
    old = archived(NOW - timedelta(days=1), page([product(1, price=9)]))
    first, second = await bench.replay(old), await bench.replay(old)
    assert first.refused is not None
    assert first.refused.startswith(
        "superseded: the catalog shows a newer crawl of the store than the one of 2026-02-28"
    )
    assert (second.payload_id, second.refused, first.counts) == (first.payload_id, first.refused, {})
    assert [row["price_rec"] for row in await bench.rows("SELECT price_rec FROM store_products")] == [10]


async def test_an_archive_files_word_on_being_whole_counts_before_its_totals(bench: Bench) -> None:
    """The crawl saw every page, and noted that the total is too high: what the menu lacks is missing."""
    lying = [archived(NOW + timedelta(hours=n), page([product(0)], total=30)) for n in (1, 2)]
    done = await bench.replay(lying[0])
    assert (told(done), done.part) == ({"products": 1, "new": 1}, None)
    part = await bench.replay(archived(NOW + timedelta(hours=3), page([product(0)]), whole=False))
    assert part.part == "1 products"
    rows = await bench.rows("SELECT is_partial FROM raw_crawl_payloads ORDER BY id")
    assert [row["is_partial"] for row in rows] == [False, True]


async def test_another_menu_of_the_very_same_instant_is_refused(bench: Bench) -> None:
    await bench.replay(archived(NOW, page([product(1)])))
    with pytest.raises(Refused, match="already has a different menu with that time, payload 1"):
        await bench.replay(archived(NOW, page([product(2)])))
    assert bench.staged() == []


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"pages": (), "broken": (b"<html>",)}, "contains a rejected response, not a menu"),
        ({"pages": ()}, "contains a rejected response, not a menu"),
        ({"pages": (page([product(1)]),), "broken": (b"<html>",)}, "contains a rejected response, not a menu"),
        ({"pages": (b'{"errors":[{"message":"no"}]}',)}, "errors: "),
        ({"platform": "elsewhere"}, "unknown platform 'elsewhere'; use one of: "),
    ],
)
async def test_an_archive_file_without_a_menu_is_refused(bench: Bench, more: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        await bench.replay(archived(NOW, page([product(1)]), **more))
    assert await bench.rows("SELECT 1 FROM dispensaries") == []


@pytest.mark.parametrize("odd", [{"Name": "cut \ud83d"}, {"Name": "byte order mark"}])
async def test_a_page_that_is_no_strict_json_is_a_menu_all_the_same(bench: Bench, odd: dict[str, Any]) -> None:
    await bench.replay(page([product(n) for n in range(3)]))
    body = page([product(0, **odd), product(1, price=11), product(2)])
    body = b"\xef\xbb\xbf" + body if "mark" in odd["Name"] else body
    done = await bench.replay(body)
    assert (told(done)["products"], done.refused) == (3, None)
    assert set((await bench.misses()).values()) == {0}
    (row,) = await bench.rows("SELECT path, sha256 FROM raw_crawl_payloads WHERE id = %s", done.payload_id)
    assert bench.parts.archive.read(row["path"], row["sha256"]).pages == (body,)


# Stores.


async def test_a_slug_that_a_person_gives_is_no_platform_id(bench: Bench) -> None:
    nameless = page([product(n, store=None) for n in range(3)])
    done = await bench.replay(nameless, store="my-shop")
    assert (done.store.slug, done.store.platform_dispensary_id) == ("my-shop", None)
    named = await bench.replay(page([product(n, price=11) for n in range(3)]), store="my-shop")
    assert named.store.id == done.store.id, "a file that names the store tells what its slug did not"
    rows = await bench.rows("SELECT platform_dispensary_id, slug FROM dispensaries")
    assert rows == [{"platform_dispensary_id": SHOP, "slug": "my-shop"}]
    again = await bench.replay(nameless, store=SHOP)
    assert (again.store.id, again.counts["already_applied"]) == (done.store.id, True)


async def test_a_store_that_replay_made_is_the_one_that_discovery_finds(bench: Bench) -> None:
    done = await bench.replay(page([product(1, store=None)]), store="my-shop")
    async with bench.pool.connection() as conn:
        details = Details(platform_dispensary_id=SHOP, slug="my-shop", name="My Shop", name_raw="My Shop")
        assert (await stores.promote(conn, "dutchie", details))[0] == done.store.id


async def test_a_file_of_another_store_than_the_one_named_is_refused(bench: Bench) -> None:
    other = "5f00000000000000000000bb"
    await bench.replay(page([product(1)]), store="one")
    await bench.replay(page([product(1, store=other)]), store="two")
    with pytest.raises(Refused, match="--store two: is store 2, the file is of store 1"):
        await bench.replay(page([product(1, price=11)]), store="two")
    with pytest.raises(Refused, match="--store three: no such store; the file belongs to store 1"):
        await bench.replay(page([product(1, price=12)]), store="three")
    with pytest.raises(Refused, match="the files belong to 2 stores"):
        await bench.replay(page([product(1)]), page([product(1, store=other)]), store="one")
    with pytest.raises(Refused, match="--store 77: no store has that ID"):
        await bench.replay(page([product(1, store=None)]), store="77")


async def test_an_answer_that_is_no_menu_is_kept_once_when_its_store_is_known(bench: Bench) -> None:
    await bench.replay(page([product(1)]), store="one")
    for _ in range(2):
        with pytest.raises(Refused, match="html"):
            await bench.replay(b"<html><title>Just a moment...</title></html>", store="one")
    rows = await bench.rows("SELECT path, sha256, reason FROM raw_crawl_payloads WHERE status = 'rejected'")
    assert [row["reason"].partition(":")[0] for row in rows] == ["html"]
    kept = bench.parts.archive.read(rows[0]["path"], rows[0]["sha256"])
    assert (kept.pages, kept.broken) == ((), (b"<html><title>Just a moment...</title></html>",))
    assert bench.staged() == []
