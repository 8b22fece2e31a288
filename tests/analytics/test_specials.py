"""Specials of stores whose prices are known, checked by a refresh."""

from __future__ import annotations

from datetime import timedelta

from menuwatch.analytics.refresh import refresh
from tests.api.shop import Shop, at, item

DAY = 24


def on_special(product: str, regular: float, price: float, **more: object) -> dict[str, object]:
    return item(product, product, options=[("1/8oz", regular, 5)], special=[price], **more)


async def test_spellings_of_a_brand_that_differ_in_case_are_one(shop: Shop) -> None:
    """Of three specials two are of `Stiiizy` and one of `STIIIZY`; another brand has one."""
    one, two = await shop.store("one", state="NM"), await shop.store("two", state="AZ")
    await shop.crawl(
        one, 0, [on_special("a", 60, 30, brandName="STIIIZY"), on_special("b", 60, 30, brandName="Stiiizy")]
    )
    await shop.crawl(
        two, 0, [on_special("c", 60, 30, brandName="Stiiizy"), on_special("d", 60, 30, brandName="Stiiiz")]
    )
    await refresh(shop.pool, window=timedelta(days=2), now=at(1))
    path = "/api/analytics/specials/groups"
    found = {
        state: sorted((row["brand"], row["specials"]) for row in await shop.walk(path, by="brand", state=state))
        for state in ("all", "NM", "AZ")
    }
    assert found == {
        "all": [("Stiiiz", 1), ("Stiiizy", 3)],
        "NM": [("Stiiizy", 2)],
        "AZ": [("Stiiiz", 1), ("Stiiizy", 1)],
    }
    assert [row["specials"] for row in await shop.walk(path, by="brand", state="all", brand="STIIIZY")] == [3]


def plain(product: str, price: float) -> dict[str, object]:
    return item(product, product, options=[("1/8oz", price, 5)])


async def test_specials_are_judged_by_what_was_asked(shop: Shop) -> None:
    """Daily menus over 60 days: `real` costs 50 until day 50, `fake` 32, `always` is on special all the time; `new` came on day 50."""
    one, two = await shop.store("one", state="NM"), await shop.store("two", state="AZ")
    await shop.execute("UPDATE dispensaries SET crawl_interval_hours = 24")
    await shop.execute(
        "SELECT ensure_product_history_partition(%s::timestamptz + make_interval(months => m)) FROM generate_series(0, 3) m",
        [at(0)],
    )
    for day in range(61):
        menu = [on_special("always", 60, 30)]
        if day < 50:
            menu += [plain("real", 50), plain("fake", 32)]
        else:
            menu += [on_special("real", 50, 30), on_special("fake", 50, 30), on_special("new", 40, 20)]
        await shop.crawl(one, DAY * day, menu)
    await shop.crawl(two, DAY * 60, [on_special("far", 40, 20)])
    await refresh(shop.pool, window=timedelta(days=2), now=at(DAY * 60 + 1))
    rows = await shop.walk("/api/analytics/specials", limit=2)
    found = {row["name"]: row for row in rows}
    assert {name: (row["verdict"], row["score"], row["usual"]) for name, row in found.items()} == {
        "real": ("genuine", 100, 50),
        # (32 - 30) / (50 - 30)
        "fake": ("never_asked", 10, 32),
        "always": ("never_asked", 0, 30),
        "new": ("unknown", None, None),
        "far": ("unknown", None, None),
    }
    assert [row["name"] for row in rows] == ["always", "fake", "real", "new", "far"]
    fake = found["fake"]
    assert (fake["price"], fake["regular"], fake["stated_saving"], fake["saving"]) == (30, 50, 0.4, 0.0625)
    assert (fake["size"], fake["observed_days"], fake["regular_until"]) == ("3.5 g", 60.04, None)
    assert fake["began_at"] == found["real"]["began_at"] == "2026-04-20T12:00:00Z"
    assert found["real"]["regular_until"] == "2026-04-20T12:00:00Z"
    never = await shop.walk("/api/analytics/specials", verdict="never_asked", state="NM")
    assert [row["name"] for row in never] == ["always", "fake"]
    groups = await shop.walk("/api/analytics/specials/groups")
    assert [
        (row["store"], row["specials"], row["never_asked"], row["unknown"], row["never_asked_share"]) for row in groups
    ] == [
        ("One", 4, 2, 1, 0.6667),
        ("Two", 1, 0, 1, None),
    ]
    (everywhere,) = await shop.walk("/api/analytics/specials/groups", by="state", state="all")
    assert (everywhere["specials"], everywhere["genuine"], everywhere["score_median"]) == (5, 1, 10)
    (acme,) = await shop.walk("/api/analytics/specials/groups", by="brand", state="NM", brand="acme")
    assert (acme["brand"], acme["specials"], acme["never_asked_share"]) == ("Acme", 4, 0.6667)
    # A special that ends is listed no more.
    await shop.crawl(one, DAY * 61, [plain("real", 50)])
    await refresh(shop.pool, window=timedelta(days=2), now=at(DAY * 61 + 1))
    assert [row["name"] for row in await shop.walk("/api/analytics/specials")] == ["far"]
