"""Figures by day, which refreshes write and keep."""

from __future__ import annotations

from datetime import timedelta

from menuwatch.analytics.refresh import refresh
from tests.api.shop import Shop, at, item
from tests.matching_rows import add_brand, add_product, listing, match

DAY = 24
WINDOW = timedelta(days=2)


async def test_days_are_kept_as_of_their_last_refresh(shop: Shop) -> None:
    """`one` has a special of a quarter off and a product out of stock on the first day; on the second day it has a second special.
    `two`, whose menu has no stock, is never crawled again."""
    one, two = await shop.store("one", state="NM"), await shop.store("two", state="AZ")
    for path in ("by-day", "by-day/brands"):
        none = await shop.ask(f"/api/analytics/{path}")
        assert (none["items"], none["kept_since"]) == ([], None)
        assert none["notice"].startswith("No reports yet."), path
    await shop.execute("UPDATE dispensaries SET crawl_interval_hours = 12")
    plain = item("a", "A", options=[("1g", 10, 5)])
    reduced = item("b", "B", options=[("1g", 20, 5)], special=[15])
    gone = item("c", "C", options=[("1g", 30, 0)], type="Edible")
    half = item("a", "A", options=[("1g", 10, 5)], special=[5])
    await shop.crawl(one, 0, [plain, gone])
    await shop.crawl(two, 0, [item("x", "X", options=[("1g", 10, None)])])
    async with shop.pool.connection() as conn:
        acme = await add_brand(conn, "Acme")
        kush = await add_product(conn, "Kush", acme)
        await match(conn, kush, await listing(conn, one, "a"))
    await refresh(shop.pool, window=WINDOW, now=at(1))
    await shop.crawl(one, 2, [plain, reduced, gone])
    await refresh(shop.pool, window=WINDOW, now=at(3))
    await shop.crawl(one, DAY + 2, [half, reduced])
    await refresh(shop.pool, window=WINDOW, now=at(DAY + 3))
    await refresh(shop.pool, window=WINDOW, now=at(DAY + 3))
    rows = await shop.walk("/api/analytics/by-day", limit=3, category="all")
    assert [(row["day"], row["state"]) for row in rows] == [
        ("2026-03-02", "NM"), ("2026-03-02", "all"),
        ("2026-03-01", "AZ"), ("2026-03-01", "NM"), ("2026-03-01", "all"),
    ]  # fmt: skip
    names = (
        "products",
        "in_stock",
        "out_of_stock",
        "unknown_stock",
        "out_share",
        "priced",
        "on_special",
        "special_share",
        "depth_median",
        "stores",
    )
    figures = {(row["day"][-2:], row["state"]): tuple(row[name] for name in names) for row in rows}
    assert figures["01", "NM"] == (3, 2, 1, 0, 0.3333, 2, 1, 0.5, 0.25, 1)
    assert figures["01", "all"] == (4, 2, 1, 1, 0.3333, 3, 1, 0.3333, 0.25, 2)
    # `c` is no longer on the menu; the median of 0.25 and 0.5.
    assert figures["02", "NM"] == (2, 2, 0, 0, 0, 2, 2, 1, 0.375, 1)
    assert figures["02", "all"] == figures["02", "NM"]
    assert rows[1]["known_stores"] == 2
    (edible,) = await shop.walk("/api/analytics/by-day", category="edible", state="NM")
    assert (edible["day"], edible["out_of_stock"], edible["priced"], edible["special_share"]) == (
        "2026-03-01",
        1,
        0,
        None,
    )
    first = await shop.walk("/api/analytics/by-day", until="2026-03-02", state="all", category="all")
    assert [row["day"] for row in first] == ["2026-03-01"]
    brands = await shop.walk("/api/analytics/by-day/brands", limit=1, brand="ACME")
    assert [(row["day"], row["state"], row["products"], row["of_products"], row["stores"], row["of_stores"]) for row in brands] == [
        # A product that is not matched has the brand of its name: Acme as well.
        ("2026-03-02", "NM", 2, 2, 1, 1), ("2026-03-02", "all", 2, 2, 1, 1),
        ("2026-03-01", "AZ", 1, 1, 1, 1), ("2026-03-01", "NM", 3, 3, 1, 1), ("2026-03-01", "all", 4, 4, 2, 2),
    ]  # fmt: skip
    assert brands[0]["share"] == brands[0]["store_share"] == 1
    for path in ("by-day", "by-day/brands"):
        known = await shop.ask(f"/api/analytics/{path}")
        assert (known["kept_since"], known["notice"]) == ("2026-03-01", None)
        before = await shop.ask(f"/api/analytics/{path}", params={"since": "2026-02-01", "until": "2026-03-01"})
        assert (before["items"], before["kept_since"]) == ([], "2026-03-01")
        assert before["notice"] == "Days are kept since 2026-03-01."
        after = await shop.ask(f"/api/analytics/{path}", params={"since": "2026-03-03"})
        assert (after["items"], after["notice"]) == ([], None), "days after the last one are not before the first"
    assert "kept_since" not in await shop.ask("/api/analytics/brands")
    # Days stay although their reports are gone, and follow a brand that is merged.
    async with shop.pool.connection() as conn:
        merged = await add_brand(conn, "Acme Inc", merged_into=acme)
    await refresh(shop.pool, window=WINDOW, now=at(2 * DAY + 3))
    assert len(await shop.walk("/api/analytics/by-day/brands", brand_id=merged)) == 5
