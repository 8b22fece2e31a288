"""The price history of a product: one size, at one store or at the cheapest of all, as far as it was observed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from menuwatch.catalog import packing
from menuwatch.catalog.cold_storage import ParquetPartitions
from tests.api.shop import START, item
from tests.site.shop_pages import Front, Page
from tests.site.test_product_sizes import PHOENIX, TUCSON, page_of

NOW = datetime.now(UTC)


def ago(days: float) -> float:
    """So many days before now, in hours of the story."""
    return (NOW - timedelta(days=days) - START).total_seconds() / 3600


async def crawl(front: Front, store: int, days: float, price: float, quantity: int | None = 5, **more: object) -> None:
    await front.shop.execute(f"SELECT ensure_product_history_partition('{NOW - timedelta(days=days)}')")
    eighth = item(f"of-{store}", options=[("1/8oz", price, quantity), ("1g", price / 2, 5)], **more)  # type: ignore[arg-type]
    await front.crawl(store, ago(days), [eighth])


def figures(page: Page) -> list[str]:
    """The figures beside the chart, as `label: price`."""
    part = page.html[page.html.index('class="figures"') : page.html.index("Show as table")]
    return [f"{label}: {price.strip()}" for label, price in re.findall(r"<dt>(.*?)</dt><dd>(.*?)(?:<span|</dd>)", part)]


def rows(page: Page, table: int = 0) -> list[list[str]]:
    """The cells of a table of the chart."""
    body = page.html[page.html.index('id="history"') :].split("<tbody>")[table + 1].partition("</tbody>")[0]
    return [re.findall(r"<td>(.*?)</td>", row) for row in body.split("<tr>")[1:]]


def shapes(page: Page) -> dict[str, int]:
    """How many of each mark the chart has."""
    found: dict[str, int] = {}
    for tag, attributes in page.tags:
        name = attributes.get("class") or ""
        if tag in ("path", "rect") and name in ("price", "cheapest", "regular", "was", "none", "unseen"):
            found[name] = found.get(name, 0) + (1 if tag == "rect" else (attributes["d"] or "").count("M"))
    return found


@pytest.fixture
async def one(front: Front) -> Front:
    """A store with a special that pauses, a stock-out and a time without crawls."""
    store = await front.shop.store(timezone="America/New_York")
    await front.shop.execute("UPDATE dispensaries SET crawl_interval_hours = 24")
    for days, price, quantity, special in (
        (20, 40, 5, [30, 15]),
        (19, 40, 5, []),
        (18, 40, 5, [32, 16]),
        (17, 40, 0, []),
        (16, 40, 5, []),
        (9, 38, 5, []),
        (8, 38, 5, []),
        *((days, 38, 4, []) for days in (7, 6, 5, 4, 3, 2, 1, 0.01)),
    ):
        await crawl(front, store, days, price, quantity, special=special)
    return front


async def test_specials_stock_outs_and_gaps_are_marked(one: Front) -> None:
    page = await page_of(one, "?size=3.5+g")
    assert shapes(page) == {"price": 3, "regular": 2, "was": 1, "none": 1, "unseen": 1}
    assert [(row[2], row[3], row[4]) for row in rows(page)] == [
        ("$38", "", "On the menu"),
        ("–", "", "Not observed"),
        ("$40", "", "On the menu"),
        ("$40", "", "Out of stock"),
        ("$32", "$40", "On the menu"),
        ("$40", "", "On the menu"),
        ("$30", "$40", "On the menu"),
    ]
    for said in ("Regular price", "Out of stock or not on the menu", "Not observed"):
        assert said in page.text
    path = page.all("path", **{"class": "price"})[0]["d"] or ""
    assert set(re.findall("[A-Za-z]", path)) <= {"M", "H", "V"}


async def test_axis_caption_and_table_are_in_the_time_of_the_store(one: Front) -> None:
    page = await page_of(one, "?size=3.5+g")
    zone = re.search(r"Times in (E[SD]T)\.", page.text)
    assert zone
    assert all(re.search(r" E[SD]T$", row[0]) for row in rows(page))
    assert rows(page)[0][1] == "last update"


async def test_the_lowest_is_named_after_how_long_it_was_observed(one: Front) -> None:
    page = await page_of(one, "?size=3.5+g")
    began = NOW - timedelta(days=20)
    since = f"{began:%b} {began.day}"
    assert figures(page) in (
        ["Now: $38", f"Lowest since {day}: $30", f"Highest since {day}: $40"]
        for day in (since, f"{began - timedelta(hours=5):%b} {(began - timedelta(hours=5)).day}")
    )
    await crawl(one, 1, 95, 70)
    await one.shop.execute(
        "UPDATE product_history SET seen_from = seen_from - interval '80 days' WHERE seen_from < now() - interval '19.5 days'"
    )
    page = await page_of(one, "?size=3.5+g")
    assert figures(page)[1] == "Lowest in 90 days: $30"


async def test_ranges_are_links(one: Front) -> None:
    page = await page_of(one, "?size=3.5+g&near=10001&within=100")
    link = page.link("30 days").removeprefix("http://menus.example").partition("#")[0]
    assert "size=3.5+g" in link
    assert "near=10001" in link
    page = await one.page(link)
    assert [row[2] for row in rows(page)][-1] == "$30"
    nothing = await page_of(one, "?size=28+g&range=nonsense")
    assert nothing.status == 200


async def test_the_cheapest_of_all_stores_is_a_line_of_its_own(front: Front) -> None:
    for slug, place, prices in (
        ("alpha", PHOENIX, (40, 42, 42)),
        ("beta", TUCSON, (50, 45, 38)),
        ("gamma", PHOENIX, (20, 20, 20)),
    ):
        store = await front.shop.store(slug, timezone="America/Phoenix", **place)
        for days, price in zip((2, 1, 0.01), prices, strict=True):
            await front.shop.execute("UPDATE dispensaries SET crawl_interval_hours = 24")
            # Gamma is out of it: its price counts for nothing.
            await crawl(front, store, days, price, 0 if slug == "gamma" else 5)
    page = await page_of(front, "?size=3.5+g")
    assert "Lowest price of 3.5 g across all stores" in page.text
    assert "Cheapest of 3 stores" in page.text
    assert [row[2] for row in rows(page)] == ["$38", "$42", "$40"]
    assert figures(page)[0] == "Now: $38"
    assert "Times in MST." in page.text
    page = await page_of(front, "?size=3.5+g&store=1")
    assert "Price of 3.5 g at Alpha" in page.text
    assert [row[2] for row in rows(page)] == ["$42", "$40"]
    assert [row[2] for row in rows(page, 1)] == ["$38", "$42", "$40"]
    assert shapes(page) == {"price": 1, "cheapest": 1}
    page = await page_of(front, "?size=3.5+g&near=85004")
    assert "Lowest price of 3.5 g across all stores near Phoenix" in page.text
    assert [row[2] for row in rows(page)] == ["$42", "$40"]
    page = await page_of(front, "?size=1+g")
    assert [row[2] for row in rows(page)] == ["$10"]


async def test_stores_in_several_zones_are_shown_in_utc(front: Front) -> None:
    for slug, zone in (("alpha", "America/Phoenix"), ("beta", "America/New_York")):
        await crawl(front, await front.shop.store(slug, timezone=zone), 0.1, 40)
        await crawl(front, 1 if slug == "alpha" else 2, 0.01, 41)
    assert "Times in UTC." in (await page_of(front, "?size=3.5+g")).text


async def test_a_product_that_left_the_menu_is_out_from_then_on(front: Front) -> None:
    for slug in ("alpha", "beta"):
        await crawl(front, await front.shop.store(slug), 2.5, 40 if slug == "alpha" else 30)
    await front.shop.execute("UPDATE dispensaries SET crawl_interval_hours = 12")
    for days in (2, 1.5, 1, 0.5, 0.01):
        await crawl(front, 1, days, 40)
        await front.crawl(2, ago(days), [item("other", "Other")])
    page = await page_of(front, "?size=3.5+g")
    # Beta was cheaper until it was last seen there.
    assert [row[2] for row in rows(page)] == ["$40", "$30"]


async def test_packed_months_are_part_of_it(front: Front) -> None:
    store = await front.shop.store(timezone="UTC")
    await front.shop.execute("UPDATE dispensaries SET crawl_interval_hours = 24 * 30")
    for days, price, quantity in ((200, 40, 5), (180, 42, 5), (179, 42, 4), (150, 38, 5), (100, 38, 0), (1, 39, 5)):
        await crawl(front, store, days, price, quantity)
    before = await page_of(front, "?size=3.5+g&range=all")
    assert [row[2] for row in rows(before)] == ["$39", "–", "$38", "$38", "$42", "$40"]
    archived = ParquetPartitions(front.shop.archive.storage)
    async with front.shop.pool.connection() as conn:
        limit = (NOW - timedelta(days=40)).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        packed = await packing.pack(conn, archived, limit, now=NOW)
    assert sum(month.states for month in packed) >= 4
    for query in ("?size=3.5+g&range=all", "?size=3.5+g&range=1y", "?size=3.5+g"):
        after = await page_of(front, query)
        if query.endswith("all"):
            assert (rows(after), figures(after), shapes(after)) == (rows(before), figures(before), shapes(before))
        assert rows(after)[0][2] == "$39"
