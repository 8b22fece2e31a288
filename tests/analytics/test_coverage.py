"""What figures rest on: which crawls were scheduled and succeeded, which stores were seen and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from menuwatch.analytics.refresh import refresh
from tests.api.shop import Shop, at, item

WEEK = timedelta(days=7)


async def _ended(shop: Shop, store: int, hours: float, status: str, payload: int | None = None, **more: Any) -> None:
    """A crawl task that ended that many hours into the story."""
    values = {
        "store": store,
        "at": at(hours),
        "status": status,
        "error": None if status == "completed" else "why",
        "payload": payload,
        "role": more.get("role", "payload_fetch"),
    }
    await shop.execute("SELECT ensure_task_history_partition(%s)", [at(hours)])
    await shop.execute(
        "INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, dispensary_id, priority, attempt,"
        " retry_count, max_retries, postpone_count, role, platform, status, worker_id, error_message, payload, result)"
        " VALUES (nextval('task_ids'), %(at)s, %(at)s, %(at)s, %(at)s, %(store)s, 0, 1, 0, 3, 0, %(role)s, 'dutchie', %(status)s,"
        " 'w', %(error)s, '{}', CASE WHEN %(payload)s::bigint IS NOT NULL THEN jsonb_build_object('payload_id', %(payload)s) END)",
        values,
    )


async def test_every_end_of_a_crawl(shop: Shop) -> None:
    await shop.execute("UPDATE task_schedules SET enabled = false")
    store, other = await shop.store("one", state="NM"), await shop.store("two", state="NM")
    menu = [item("a", options=[("1g", 10, 5)])]
    for n in range(3):
        await _ended(shop, store, 4.0 * n + 1, "completed", await shop.crawl(store, 4.0 * n, menu))
    await _ended(
        shop, store, 13, "completed", await shop.archived(store, 12, b"{}", status="quarantined", reason="small")
    )
    await _ended(
        shop, store, 14, "completed", await shop.archived(store, 13.5, b"{}", status="rejected", reason="html")
    )
    await _ended(shop, store, 17, "failed")
    await _ended(shop, store, 18, "failed", await shop.archived(store, 16, b"{}", status="partial", reason="partial"))
    await _ended(shop, store, 19, "cancelled")
    await _ended(shop, store, 20, "completed")
    await _ended(shop, store, 21, "failed", role="product_refresh")
    await _ended(shop, store, 22, "completed", await shop.archived(store, 21, b"{}"))
    await _ended(shop, store, 47.5, "completed", await shop.archived(store, 47, b"{}"))
    await _ended(shop, store, -24 * 8, "failed")
    await _ended(
        shop,
        other,
        5,
        "completed",
        await shop.crawl(other, 4, [item("b", options=[("1g", 10, 5)])]),
        role="product_discovery",
    )
    await refresh(shop.pool, window=WEEK, now=at(48))
    one, two = await shop.walk("/api/analytics/stores", state="NM")
    # Two failed, one completed with nothing to show, and one whose menu waits to be taken in for longer than a day.
    assert (one["failed"], one["quarantined"], one["never_begun"], one["undecided"]) == (4, 2, 0, 1)
    assert {k: one["coverage"][k] for k in ("scheduled", "succeeded", "share")} == {
        "scheduled": 9,
        "succeeded": 3,
        "share": 0.3333,
    }
    assert {k: two["coverage"][k] for k in ("scheduled", "succeeded", "share")} == {
        "scheduled": 1,
        "succeeded": 1,
        "share": 1,
    }
    (price,) = await shop.walk("/api/analytics/price-per-gram", state="NM")
    covered = price["coverage"]
    assert (covered["stores"], covered["known_stores"], covered["stale_stores"]) == (2, 2, 2), (
        "the last menu is older than 8 hours"
    )
    assert (covered["scheduled"], covered["succeeded"], covered["share"]) == (10, 4, 0.4)
    assert datetime.fromisoformat(covered["oldest_crawl_at"]) == at(4)
    (state,) = (await shop.ask("/api/analytics/coverage", params={"state": "NM"}))["items"]
    assert (state["known_stores"], state["failed"], state["quarantined"], state["coverage"]) == (2, 4, 2, covered)
    days = {
        (r["day"], r["dispensary_id"]): r["coverage"]
        for r in await shop.walk("/api/analytics/new-and-gone", by="store")
    }
    assert [days["2026-03-01", store][k] for k in ("scheduled", "succeeded")] == [3, 3]
    assert [days["2026-03-02", store][k] for k in ("scheduled", "succeeded")] == [6, 0]


async def test_crawls_that_nobody_began(shop: Shop) -> None:
    """An outage of everything: no task failed, since there was none."""
    await shop.execute("DELETE FROM task_schedules")
    now = datetime.now(UTC)
    ids = {name: await shop.store(name, state="AZ") for name in ("seen", "new", "slow", "off", "elsewhere")}
    await shop.execute("UPDATE dispensaries SET created_at = %s", [now - timedelta(days=60)])
    await shop.execute("UPDATE dispensaries SET created_at = %s WHERE id = %s", [now - timedelta(hours=21), ids["new"]])
    await shop.execute("UPDATE dispensaries SET crawl_interval_hours = 24 WHERE id = %s", [ids["slow"]])
    await shop.execute("UPDATE dispensaries SET crawl_enabled = false WHERE id = %s", [ids["off"]])
    await shop.execute("UPDATE dispensaries SET state = 'NM' WHERE id = %s", [ids["elsewhere"]])
    await shop.execute(
        "INSERT INTO task_schedules (name, role, interval_hours, state_code, next_run_at, created_at)"
        " VALUES ('arizona', 'payload_fetch', 4, 'AZ', now(), now() - interval '30 days')"
    )
    await refresh(shop.pool, window=WEEK, now=now)
    found = {r["store"].lower(): r for r in await shop.walk("/api/analytics/stores")}
    # Of 42, 5 and 7 crawls one is allowed to be missing.
    assert {name: (r["is_scheduled"], r["never_begun"], r["coverage"]["scheduled"]) for name, r in found.items()} == {
        "seen": (True, 41, 41), "new": (True, 4, 4), "slow": (True, 6, 6), "off": (False, 0, 0), "elsewhere": (False, 0, 0),
    }  # fmt: skip
    assert found["seen"]["coverage"]["share"] == 0
    assert found["off"]["coverage"]["share"] is None
    assert found["seen"]["is_stale"], "it was never seen"


async def test_a_store_that_was_never_seen_is_known_and_in_no_figure(shop: Shop) -> None:
    await shop.execute("UPDATE task_schedules SET enabled = false")
    await shop.store(state="AZ")
    await refresh(shop.pool, window=WEEK, now=at(0))
    for path in (
        "price-per-gram",
        "brands",
        "categories",
        "discounts",
        "out-of-stock",
        "out-of-stock/products",
        "new-and-gone",
    ):
        assert await shop.walk(f"/api/analytics/{path}") == [], path
    (store,) = await shop.walk("/api/analytics/stores")
    assert (store["last_crawled_at"], store["age_hours"], store["is_stale"], store["observed_share"]) == (
        None,
        None,
        True,
        0,
    )
    assert store["coverage"]["stores"] == 0
    whole, state = (await shop.ask("/api/analytics/coverage"))["items"]
    for row in (whole, state):
        assert (row["known_stores"], row["crawled_stores"], row["never_crawled"], row["stale_stores"]) == (1, 0, 1, 0)
        assert (row["coverage"]["share"], row["observed_share"], row["median_age_hours"]) == (None, None, None)
    assert (whole["all_states"], state["state"]) == (True, "AZ")


async def test_how_fresh_stores_are(shop: Shop) -> None:
    menu = [item("a")]
    crawls: dict[str, tuple[float, ...]] = {
        "fresh": (-2, 2, 6, 10, 14, 18, 22), "late": (0, 4, 8), "gap": (0, 12, 20), "day-old": (-30,)
    }  # fmt: skip
    for slug, hours in crawls.items():
        store = await shop.store(slug, state="AZ")
        await shop.execute("SELECT ensure_product_history_partition(%s)", [at(hours[0])])
        for hour in hours:
            await shop.crawl(store, hour, menu)
    await refresh(shop.pool, window=timedelta(hours=24), now=at(24))
    found = {r["store"].lower(): r for r in await shop.walk("/api/analytics/stores", limit=1)}
    assert {name: (r["age_hours"], r["is_stale"], r["observed_share"]) for name, r in found.items()} == {
        "fresh": (2, False, 1),
        "late": (16, True, pytest.approx(8 / 24, abs=0.0001)),
        "gap": (4, False, 0.5),
        "day-old": (54, True, 0),
    }
    assert {r["store"].lower() for r in await shop.walk("/api/analytics/stores", stale="true")} == {"late", "day-old"}
    whole = (await shop.ask("/api/analytics/coverage", params={"state": "all"}))["items"][0]
    assert (whole["stale_stores"], whole["observed_share"]) == (2, pytest.approx((1 + 8 / 24 + 0.5) / 4, abs=0.0001))


async def test_partial_menus_are_counted(shop: Shop) -> None:
    """`part` has a partial menu last, `mended` had one the day before, `whole` never, and `new` has none at all."""
    await shop.execute("UPDATE task_schedules SET enabled = false")
    ids = {name: await shop.store(name, state="NM") for name in ("whole", "part", "mended", "new")}
    await shop.execute("UPDATE dispensaries SET crawl_interval_hours = 24")
    a, b = item("a", options=[("1g", 10, 5)]), item("b", "B", options=[("1g", 30, 0)])
    await shop.crawl(ids["whole"], 0, [a, b])
    await shop.crawl(ids["part"], 0, [a, b])
    await shop.crawl(ids["mended"], 0, [a], is_partial=True)
    await shop.crawl(ids["whole"], 24, [a, b])
    await shop.crawl(ids["part"], 12, [a, b])
    await shop.crawl(ids["part"], 24, [a], is_partial=True)
    await shop.crawl(ids["mended"], 24, [a, b])
    await refresh(shop.pool, window=WEEK, now=at(30))
    groups: list[tuple[str, dict[str, Any]]] = [
        ("price-per-gram", {}), ("brands", {}), ("categories", {}), ("discounts", {}), ("discounts", {"category": "all"}),
        ("out-of-stock", {}), ("out-of-stock", {"by": "all"}), ("out-of-stock", {"by": "category"}),
        ("out-of-stock", {"by": "state"}), ("coverage", {}),
    ]  # fmt: skip
    for path, params in groups:
        rows = (await shop.ask(f"/api/analytics/{path}", params=params))["items"]
        assert rows, (path, params)
        for row in rows:
            covered = row["coverage"]
            assert (covered["stores"], covered["partial"], covered["known_stores"]) == (3, 1, 4), (path, params)
            assert (covered["scheduled"], covered["succeeded"], covered["share"]) == (0, 0, None), (path, params)
    (acme,) = await shop.walk("/api/analytics/brands", state="NM")
    assert (acme["products"], acme["of_products"]) == (5, 5), "what the partial menu lacks is not counted"
    for path, params, among in (
        ("stores", {}, {*ids}),
        ("out-of-stock", {"by": "store"}, {"whole", "part", "mended"}),
        ("out-of-stock", {"by": "store_category"}, {"whole", "part", "mended"}),
        ("out-of-stock/products", {}, {"whole", "part", "mended"}),
    ):
        found = {
            row["store"].lower(): row["coverage"]["partial"]
            for row in await shop.walk(f"/api/analytics/{path}", **params)
        }
        assert found == {name: int(name == "part") for name in among}, (path, params)
    for by in ("all", "state"):
        days = {row["day"]: row["coverage"] for row in await shop.walk("/api/analytics/new-and-gone", by=by)}
        assert {day: (covered["stores"], covered["partial"]) for day, covered in days.items()} == {
            "2026-03-01": (3, 1), "2026-03-02": (3, 1),
        }, by  # fmt: skip
    by_store = await shop.walk("/api/analytics/new-and-gone", by="store")
    assert {(row["day"], row["store"].lower()) for row in by_store if row["coverage"]["partial"]} == {
        ("2026-03-01", "mended"),
        ("2026-03-02", "part"),
    }
