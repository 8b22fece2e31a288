"""`menuwatch stores` and `payloads reject`: what the dashboard and the API do, on the command line."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.api.shop import Shop, item, menu
from tests.api.test_payloads_cli import Run, run

__all__ = ["run"]


async def _rows(shop: Shop, query: str) -> list[tuple[Any, ...]]:
    async with shop.pool.connection() as conn:
        return await (await conn.execute(query)).fetchall()


async def test_crawl_pause_and_resume(shop: Shop, run: Run) -> None:
    store = await shop.store("north")
    assert (await run("stores", "crawl", "north")).stdout == "Crawl queued (task 1).\n"
    assert (await run("stores", "crawl", "North")).stdout == "Already queued (task 1).\n", "its name will do"
    assert json.loads((await run("stores", "crawl", store, "--json")).stdout) == {"id": 1, "created": False}
    assert (await run("stores", "pause", store)).stdout == "Crawling disabled.\n"
    assert (await shop.ask(f"/api/stores/{store}"))["crawl_enabled"] is False
    assert (await run("stores", "resume", store)).stdout == "Crawled every 4 h.\n"
    assert (await shop.ask(f"/api/stores/{store}"))["crawl_enabled"] is True
    assert "'nowhere' does not exist" in str((await run("stores", "crawl", "nowhere", code=2)).exception)


async def test_stores_are_added_with_their_platform(shop: Shop, run: Run) -> None:
    url = "https://dutchie.com/dispensary/green-leaf"
    assert "unknown platform 'leafly'" in str(
        (await run("stores", "add", url, "--platform", "leafly", code=2)).exception
    )
    assert "Added store 1 (green-leaf)" in (await run("stores", "add", url, "--platform", "dutchie")).stdout
    weedmaps = "https://weedmaps.com/dispensaries/green-leaf"
    assert "set WEEDMAPS_BASE_URL" in str((await run("stores", "add", weedmaps, code=2)).exception)


async def test_the_menu_url_is_edited(shop: Shop, run: Run) -> None:
    await run("stores", "add", "https://dutchie.com/dispensary/grean-leaf")
    url = "https://dutchie.com/dispensary/green-leaf"
    assert (
        await run("stores", "edit", "grean-leaf", "--menu-url", url)
    ).stdout == f"Menu URL of store 1 (green-leaf): {url}\n"
    assert await _rows(shop, "SELECT slug, menu_url FROM dispensaries") == [("green-leaf", url)]
    refused = await run("stores", "edit", 1, "--menu-url", "https://example.com/menu", code=2)
    assert "is not a menu URL" in str(refused.exception)


async def test_stores_are_shown_hidden_renamed_and_placed(shop: Shop, run: Run) -> None:
    store = await shop.store("green-leaf-west")
    assert (await run("stores", "hide", store)).stdout.endswith("is hidden from the public site.\n")
    assert (await shop.ask(f"/api/stores/{store}"))["shown"] is False
    assert (await run("stores", "publish", store)).stdout.endswith(
        "is shown on the public site, as soon as it has a menu.\n"
    )
    assert (await shop.ask(f"/api/stores/{store}"))["shown"] is True
    assert (await run("stores", "publish", store, "--automatic")).stdout.endswith(
        "is shown on the public site while crawling is enabled, as soon as it has a menu.\n"
    )
    assert (await shop.ask(f"/api/stores/{store}"))["shown"] is None
    assert (await run("stores", "rename", store, "Leaf")).stdout == f"Store {store} is now named Leaf.\n"
    said = await run(
        "stores", "place", "Leaf", "--city", "Reno", "--state", "NV", "--latitude", "39.5", "--longitude", "-119.8"
    )
    assert said.stdout == f"Store {store} (Leaf): Reno, NV; at 39.5, -119.8; time zone unknown.\n"
    for wrong, message in (
        (("rename", store), "give either a new name or --reset"),
        (("rename", store, "A", "--reset"), "give either a new name or --reset"),
        (("place", store), "give either values to set"),
        (("place", store, "--timezone", "Mars/Base"), "unknown time zone Mars/Base"),
        (("hide", "nowhere"), "'nowhere' does not exist"),
    ):
        assert message in str((await run("stores", *wrong, code=2)).exception)


async def test_a_store_is_printed(shop: Shop, run: Run) -> None:
    store = await shop.store("green-leaf", city="Reno", state="NV", latitude=39.5, longitude=-119.8)
    text = (await run("stores", "show", "green-leaf")).stdout
    assert _lines(text, "Last crawl") == ["never"]
    assert _lines(text, "Data quality") == ["no menu measured yet"]
    for hour, price in ((0, 20), (5, 18)):
        await shop.crawl(store, hour, [item("a", options=[("1g", price, 5)]), *([item("b")] if hour else [])])
    await run("stores", "hide", store)
    await run("stores", "pause", store)
    await run("stores", "rename", store, "Leaf")
    text = (await run("stores", "show", "Leaf")).stdout
    for heading, value in (
        ("#", str(store)), ("Name", "Leaf"), ("Slug", "green-leaf"), ("Platform", "dutchie"), ("Address", "Reno, NV"),
        ("Position", "39.5, -119.8"), ("Set by hand", "name"), ("Crawling", "disabled"),
        ("Visibility", "hidden from the public site"), ("New", "1"), ("Changed", "1"), ("Price changes", "1"), ("Warnings", "0"),
    ):  # fmt: skip
        assert _lines(text, heading) == [value], heading
    assert _lines(text, "Products") == ["2", "2"], "of the store, and of its last crawl"
    assert (await shop.ask(f"/api/stores/{store}"))["shown"] is False, "showing a store changes nothing"
    shown = json.loads((await run("stores", "show", store, "--json")).stdout)
    assert shown == await shop.ask(f"/api/stores/{store}")
    assert "'nowhere' does not exist" in str((await run("stores", "show", "nowhere", code=2)).exception)


def _lines(text: str, heading: str) -> list[str]:
    """The values behind a heading."""
    found = (re.fullmatch(rf" *{re.escape(heading)}  +(.+)", line) for line in text.splitlines())
    return [match[1] for match in found if match]


async def test_a_store_that_is_added_has_a_readable_name(shop: Shop, run: Run) -> None:
    await run("stores", "add", "https://dutchie.com/dispensary/r-greenleaf_west")
    assert await _rows(shop, "SELECT name, slug FROM dispensaries") == [("R Greenleaf West", "r-greenleaf_west")]


async def test_a_store_is_removed_after_a_look(shop: Shop, run: Run) -> None:
    store = await shop.store("north")
    for hour in range(2):
        await shop.crawl(store, hour, [item("a"), item("b")])
    await shop.execute(
        "INSERT INTO task_history (id, role, dispensary_id, platform, status, attempt, retry_count, max_retries, postpone_count,"
        " priority, created_at, completed_at, error_message, payload)"
        " VALUES (7, 'payload_fetch', %s, 'dutchie', 'failed', 1, 0, 3, 0, 0, now(), now(), 'x', '{}')",
        [store],
    )
    line = f"Remove store {store} (north): 2 payloads, 2 crawls, 2 products.\n"
    assert (await run("stores", "remove", "north", "--dry-run")).stdout == line
    assert "pass --yes" in str((await run("stores", "remove", "north", code=2)).exception)
    assert await _rows(shop, "SELECT count(*) FROM dispensaries") == [(1,)]
    assert (await run("stores", "remove", "north", "--yes")).stdout == f"{line}Done.\n"
    assert await _rows(shop, "SELECT count(*) FROM dispensaries") == [(0,)]
    assert list(shop.storage.rglob("*.json*")) == [], "its files are gone"
    assert await _rows(shop, "SELECT id FROM task_history") == [(7,)]


async def test_two_rows_of_a_shop_are_merged_after_a_look(shop: Shop, run: Run) -> None:
    one, two = await shop.store("north"), await shop.store("south")
    await shop.crawl(one, 0, [item("a"), item("b")])
    await shop.crawl(two, 1, [item("a")])
    dry = (await run("stores", "merge", "north", "south", "--dry-run")).stdout
    assert dry == (
        f"Merge store {one} (north) into store {two}: 1 payload, 1 crawl, 1 product, 1 shared product.\n"
        "Both stores have a catalog: it is rebuilt from 2 payloads of both.\n"
    )
    assert (await run("stores", "merge", "north", "south", "--yes")).stdout == f"{dry}Done.\n"
    assert await _rows(shop, "SELECT dispensary_id, count(*) FROM store_crawls GROUP BY 1") == [(two, 2)]
    assert (await run("rebuild", "south", "--dry-run")).stdout == (
        f"South (store {two}): would be rebuilt from 2 payloads; no differences.\n"
    )
    three = await shop.store("east")
    found = json.loads((await run("stores", "merge", three, two, "--dry-run", "--json")).stdout)
    assert found["contents"]["rebuilt_from"] == 0
    await run("stores", "merge", three, three, code=2)


async def test_a_quarantined_payload_is_rejected(shop: Shop, run: Run) -> None:
    store = await shop.store()
    odd = await shop.archived(store, 2, menu([item("a")]), count=1, status="quarantined", reason="shrunk: 1 product")
    await run("payloads", "reject", odd, "--note", "a block page")
    payload = await shop.ask(f"/api/payloads/{odd}")
    assert payload["status"] == "rejected"
    assert "a block page" in (await run("payloads", "show", odd)).stdout
    assert "quarantine" in str((await run("payloads", "reject", odd, code=1)).exception)
