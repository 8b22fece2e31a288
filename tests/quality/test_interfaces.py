"""Findings, scores and rules in the API, the commands and the dashboard; alike everywhere."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from msgspec import structs

from menuwatch.alerts.model import Condition
from menuwatch.config.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.ops import alert_readings
from menuwatch.quality import check as checks
from tests.api.shop import Shop as ShopOfApi
from tests.commands import run_here
from tests.dashboard.test_catalogue import words
from tests.quality import world
from tests.quality.proof import NORMALIZERS, history
from tests.quality.world import Shop, World, made_menu


async def _market(pool: Pool) -> World:
    """Five stores, seven quiet menus each, and an eighth: a chain loses its brands, and one store half of its prices."""
    rng = Random(1)
    shops = [Shop("dutchie", "chain" if n < 2 else None, made_menu(rng, 50)) for n in range(5)]
    real = World(2, shops)

    def fault(shop: Shop, menu: list[world.Product]) -> list[world.Product]:
        if shop.chain is not None:
            return world.inject("brand_null", 1.0, menu)
        return world.inject("price_null", 0.5, menu) if shop is shops[2] else menu

    async with pool.connection() as conn:
        await conn.set_autocommit(True)
        await real.open(conn)
        await history(conn, real, 7)
        await real.crawl(conn, fault)
        await checks.check(conn, NORMALIZERS)
    return real


async def _run(*arguments: str) -> Any:
    return await asyncio.to_thread(lambda: run_here(["quality", *arguments]))


async def test_the_api_and_the_commands_agree(
    shop: ShopOfApi, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    assert (await shop.ask("/api/quality"))["checked"] == 0
    assert "No matching findings" in (await _run("findings")).output
    real = await _market(shop.pool)
    ids = [one.id for one in real.shops]

    found = (await shop.ask("/api/quality/findings", params={"severity": ["critical", "warning"]}))["items"]
    facts = {
        (one["dispensary_id"], one["measure"], one["severity"], one["scope"], one["scope_affected"]) for one in found
    }
    assert facts == {
        (ids[0], "null.brand", "warning", "chain", 2), (ids[1], "null.brand", "warning", "chain", 2),
        (ids[2], "null.price", "critical", "store", 1),
    }  # fmt: skip
    (price,) = [one for one in found if one["measure"] == "null.price"]
    assert price["value"] == pytest.approx(25 / 50, abs=0.02)
    assert (price["expected"], price["low"], price["high"]) == (0, 0, pytest.approx(0.1))
    printed = json.loads((await _run("findings", "--severity", "critical", "--severity", "warning", "--json")).stdout)
    assert printed == found
    table = (await _run("findings", "--measure", "null", "--scope", "chain")).stdout
    assert "chain chain: 2 of 2 stores" in table
    first = await shop.ask("/api/quality/findings", params={"limit": 1})
    second = await shop.ask("/api/quality/findings", params={"limit": 100, "cursor": first["next"]})
    assert len({one["id"] for one in first["items"] + second["items"]}) == 1 + len(second["items"])

    summary = await shop.ask("/api/quality")
    assert (summary["checked"], summary["scored"], summary["critical"], summary["warning"]) == (5, 5, 1, 2)
    stores = (await shop.ask("/api/quality/stores"))["items"]
    assert [one["score"] for one in stores] == sorted(one["score"] for one in stores)
    assert json.loads((await _run("stores", "--json")).stdout) == stores
    rows = list(csv.DictReader(io.StringIO((await _run("stores", "--csv")).stdout)))
    assert [row["score"] for row in rows] == [str(one["score"]) for one in stores]
    whole = await shop.ask(f"/api/quality/stores/{ids[2]}")
    assert json.loads((await _run("show", str(ids[2]), "--json")).stdout) == whole
    # One critical finding takes 15 % of what the menu has.
    assert whole["score"] == round(100 * whole["completeness"] * 0.85)
    (band,) = [one for one in whole["bands"] if one["is_out"] and one["measure"] == "null.price"]
    assert band["crawls"] == 7
    text = (await _run("show", str(ids[2]))).stdout
    assert "critical: products without price 50.0 %, usually 0.0 % to 10.0 %" in text
    pages = [await shop.ask("/api/quality/stores", params={"limit": 3})]
    pages.append(await shop.ask("/api/quality/stores", params={"limit": 3, "cursor": pages[0]["next"]}))
    assert [one for page in pages for one in page["items"]] == stores


async def test_a_store_without_a_past_has_no_score_and_says_why(shop: ShopOfApi) -> None:
    rng = Random(1)
    real = World(2, [Shop("dutchie", None, made_menu(rng, 50))])
    async with shop.pool.connection() as conn:
        await conn.set_autocommit(True)
        await real.open(conn)
        before = await shop.ask(f"/api/quality/stores/{real.shops[0].id}")
        assert (before["score"], before["reason"]) == (None, "no menu measured yet")
        await history(conn, real, 2)
    (store,) = (await shop.ask("/api/quality/stores"))["items"]
    assert (store["score"], store["reason"]) == (None, "1 of 5 earlier menus measured")
    assert store["completeness"] > 0.5


async def test_rules_find_and_ignore(shop: ShopOfApi, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    real = await _market(shop.pool)
    ids = [one.id for one in real.shops]
    rule = {
        "measure": "products",
        "condition": "below",
        "amount": 1000,
        "severity": "info",
        "store": ids[4],
        "note": "few",
    }
    added = await shop.ask("/api/quality/rules", method="POST", status=201, json=rule)
    assert (added["measure"], added["amount"], added["dispensary_id"], added["open_findings"]) == (
        "products",
        1000,
        ids[4],
        0,
    )
    ignored = await _run("rules", "add", "null.*", "--ignore", "--platform", "dutchie")
    assert "Added rule" in ignored.output
    async with shop.pool.connection() as conn:
        await conn.set_autocommit(True)
        await real.crawl(conn, lambda _, menu: world.inject("price_null", 1.0, menu))
        await checks.check(conn, NORMALIZERS)
    found = (await shop.ask("/api/quality/findings", params={"measure": "products"}))["items"]
    assert [(one["rule_id"], one["dispensary_id"], one["direction"]) for one in found] == [
        (added["id"], ids[4], "down")
    ]
    closed = (await shop.ask("/api/quality/findings", params={"status": "closed", "measure": "null"}))["items"]
    assert {one["outcome"] for one in closed} == {"ignored"}
    assert len(closed) == 3
    assert (await shop.ask("/api/quality/findings", params={"measure": "null"}))["items"] == []
    listed = json.loads((await _run("rules", "list", "--json")).stdout)
    assert listed == (await shop.ask("/api/quality/rules"))["items"]
    assert [one["open_findings"] for one in listed] == [1, 0]
    removed = await _run("rules", "remove", str(added["id"]))
    assert "1 open finding of it was removed too" in removed.output
    assert (await shop.ask("/api/quality/findings", params={"measure": "products", "status": "all"}))["items"] == []


async def test_category_words_that_come_later_are_events(
    shop: ShopOfApi, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    rng = Random(1)
    real = World(2, [Shop("dutchie", None, made_menu(rng, 50)) for _ in range(2)])
    async with shop.pool.connection() as conn:
        await conn.set_autocommit(True)
        await real.open(conn)
        await history(conn, real, 3)

        def reworded(one: Shop, menu: list[world.Product]) -> list[world.Product]:
            new = {0: ("Moon Rocks", None), 1: ("Buds", "flower")}
            if one is real.shops[0]:
                return menu
            return [
                structs.replace(item, category=new[n][0], category_canon=new[n][1]) if n in new else item
                for n, item in enumerate(menu)
            ]

        await real.crawl(conn, reworded)
        await checks.check(conn, NORMALIZERS)
    found = (await shop.ask("/api/quality/category-words"))["items"]
    assert {(one["word"], one["category"], one["dispensary_id"]) for one in found} == {
        ("moon rocks", None, real.shops[1].id), ("buds", "flower", real.shops[1].id),
    }  # fmt: skip
    assert json.loads((await _run("words", "--json")).stdout) == found
    assert [one["word"] for one in json.loads((await _run("words", "--unknown", "--json")).stdout)] == ["moon rocks"]
    kinds = {one["word"] for one in (await shop.ask("/api/quality/category-words", params={"events": False}))["items"]}
    assert kinds == {"flower", "vaporizer", "edible", "pre_roll", "concentrate", "moon rocks", "buds"}
    first = await shop.ask("/api/quality/category-words", params={"limit": 1})
    second = await shop.ask("/api/quality/category-words", params={"limit": 1, "cursor": first["next"]})
    assert first["items"] + second["items"] == found


async def test_alert_readings_of_data_quality(pool: Pool, tmp_path: Path) -> None:
    names: list[Condition] = ["quality_findings", "new_category_words", "coverage_below"]
    read = alert_readings.reader(Settings(home=tmp_path))
    async with pool.connection() as conn:
        before = await read(conn, names)
    assert [before[name].value for name in names] == [0, 0, 100]
    await _market(pool)
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO quality_category_words VALUES ('dutchie', 'new', NULL, NULL, now(), true), ('dutchie', 'old', NULL, NULL,"
            " now() - interval '2 days', true)"
        )
        # Menus of the market are of March: all but one are stale.
        await conn.execute(
            "UPDATE dispensaries SET last_crawled_at = now() WHERE id = (SELECT min(id) FROM dispensaries)"
        )
        now = await read(conn, names)
    assert [now[name].value for name in names] == [1, 1, 20]
    assert now["coverage_below"].detail == "1 of 5 crawled stores with a current menu"


async def test_the_score_is_with_the_store(shop: ShopOfApi) -> None:
    real = await _market(shop.pool)
    for one in real.shops[:3]:
        store, own = await shop.ask(f"/api/stores/{one.id}"), await shop.ask(f"/api/quality/stores/{one.id}")
        assert (store["quality_score"], store["quality_reason"]) == (own["score"], None)
        assert 0 < own["score"] < 100
    store_id = await shop.store("empty")
    store = await shop.ask(f"/api/stores/{store_id}")
    assert (store["quality_score"], store["quality_reason"]) == (None, "no menu measured yet")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rules", "add", "null.brand"), "give one of --above, --below and --ignore"),
        (("rules", "add", "brands", "--above", "1"), "unknown measure 'brands': use one of products"),
        (("rules", "add", "special", "--above", "nan"), "`above` needs an amount"),
        (("rules", "add", "special", "--ignore", "--severity", "info"), "`ignore` takes neither"),
        (
            ("rules", "add", "special", "--above", "1", "--severity", "bad"),
            "unknown severity 'bad'; use one of: critical",
        ),
        (("rules", "add", "special", "--above", "1", "--platform", "x"), "--platform x: "),
        (("rules", "remove", "9"), "data quality rule 9 does not exist"),
        (("findings", "--scope", "world"), "unknown scope 'world'; use one of: store"),
        (("findings", "--status", "gone"), "unknown status 'gone'; use one of: open"),
        (("show", "nowhere"), "nowhere"),
    ],
)
def test_what_commands_refuse(
    database_url: str, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    assert message in str(run_here(["quality", *arguments]).exception)


async def test_a_point_of_sale_is_set_and_explains_findings(shop: ShopOfApi) -> None:
    rng = Random(1)
    real = World(2, [Shop("dutchie", None, made_menu(rng, 50)) for n in range(6)])
    async with shop.pool.connection() as conn:
        await conn.set_autocommit(True)
        await real.open(conn)
        for one in real.shops[:3]:
            said = await shop.ask(
                f"/api/quality/stores/{one.id}/point-of-sale", method="PUT", json={"name": " Till  One "}
            )
            assert said["point_of_sale"] == "Till One"
        await history(conn, real, 6)
        await real.crawl(
            conn, lambda one, menu: world.inject("image_null", 1.0, menu) if one in real.shops[:3] else menu
        )
        await checks.check(conn, NORMALIZERS)
    found = (await shop.ask("/api/quality/findings", params={"measure": "null.image"}))["items"]
    assert {(one["scope"], one["scope_key"], one["scope_affected"]) for one in found} == {
        ("point_of_sale", "Till One", 3)
    }
    cleared = await shop.ask(f"/api/quality/stores/{real.shops[0].id}/point-of-sale", method="PUT", json={"name": None})
    assert cleared["point_of_sale"] is None


async def test_the_screens(admin: httpx.AsyncClient, viewer: httpx.AsyncClient, pool: Pool) -> None:
    assert "No menu measured yet" in words(await viewer.get("/admin/quality"))
    real = await _market(pool)
    store = real.shops[2].id
    text = words(await viewer.get("/admin/quality?severity=critical"))
    assert "products without price null.price 50.0 % 0.0 % to 10.0 % critical this store" in text
    assert "No matching findings" in words(await viewer.get("/admin/quality?platform=weedmaps"))
    assert (await viewer.get("/admin/quality?severity=bad")).status_code == 422
    listed = words(await viewer.get("/admin/quality/stores"))
    assert listed.index("store-2") < listed.index("store-4")
    one = words(await viewer.get(f"/admin/quality/stores/{store}"))
    assert "products without price null.price 50.0 % 0.0 % 0.0 % to 10.0 % unusual 7" in one
    page = await viewer.get(f"/admin/stores/{store}")
    assert f'href="/admin/quality/stores/{store}"' in page.text
    assert "Quality score" in words(page)
    assert "concentrate Dutchie concentrate store-" in words(await viewer.get("/admin/quality/words?show=all"))
    assert "No matching category words" in words(await viewer.get("/admin/quality/words"))
    rules = await viewer.get("/admin/quality/rules")
    assert "Add a rule" not in words(rules)
    wrong = await admin.post(
        "/admin/quality/rules", data={"measure": "x", "condition": "above", "amount": "1"}, headers=_SAME
    )
    assert (wrong.status_code, "unknown measure" in words(wrong)) == (422, True)
    made = await admin.post(
        "/admin/quality/rules", data={"measure": "special", "condition": "above", "amount": "0.5"}, headers=_SAME
    )
    assert made.status_code == 303
    rules = await admin.get("/admin/quality/rules")
    assert "special above 0.5 warning all stores 0" in words(rules)
    number = rules.text.split("/admin/quality/rules/")[1].split("/")[0]
    await admin.post(f"/admin/quality/rules/{number}/remove", headers=_SAME)
    assert "No rules" in words(await admin.get("/admin/quality/rules"))


_SAME = {"Origin": "http://menuwatch"}
