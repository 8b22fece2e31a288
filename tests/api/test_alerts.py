"""Alert rules over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from menuwatch.alerts.store import record_rule_failure
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details
from tests.alerts.rule_factory import rows
from tests.api.shop import Shop, item

HOOK = {"kind": "webhook", "url": "https://example.com/token-in-the-path", "secret": "sixteen characters"}


@pytest.fixture
async def stocked(shop: Shop) -> Shop:
    store = await shop.store(state="AZ")
    await shop.crawl(store, 1, [item("a", options=[("1/8oz", 40, 5)]), item("b", "Gelato", options=[("1/8oz", 20, 5)])])
    return shop


async def rows_of(shop: Shop, query: str) -> list[dict[str, Any]]:
    async with shop.pool.connection() as conn:
        return await rows(conn, query)


async def _make(shop: Shop, status: int = 201, **body: Any) -> Any:
    given = {"name": "cheap", "condition": "price_below", "amount": 25, "brand": "Acme", **body}
    return await shop.ask("/api/alerts", method="POST", status=status, json=given)


async def test_a_place_is_given_by_its_name(stocked: Shop) -> None:
    """ZIP code 87501 is at 35.70, -105.98, by the Census Bureau's gazetteer; the positions of 35.08,-106.65 are exact."""
    place = ("latitude", "longitude", "miles")
    rule = (await _make(stocked, near="87501"))["rule"]
    assert [rule[name] for name in place] == [pytest.approx(35.70, abs=0.05), pytest.approx(-105.98, abs=0.05), 25]
    changed = await stocked.ask("/api/alerts/1", method="PATCH", json={"near": "35.08,-106.65", "miles": 5})
    assert [changed["rule"][name] for name in place] == [35.08, -106.65, 5]
    anywhere = await stocked.ask("/api/alerts/1", method="PATCH", json={"near": None})
    assert [anywhere["rule"][name] for name in place] == [None] * 3
    for body, status, message in (
        ({"near": "Nowhere"}, 422, "unknown place 'Nowhere': give a city with its state"),
        ({"near": "87501", "latitude": 35}, 422, "give one of them"),
        ({"near": "87501", "miles": 501}, 400, "miles must be more than 0 and at most 500"),
    ):
        refused = await stocked.http.patch("/api/alerts/1", json=body)
        assert (refused.status_code, message in refused.text) == (status, True), body


async def test_make_show_change_remove(stocked: Shop) -> None:
    made = await _make(stocked, channels=[HOOK], amount=24.95)
    rule = made["rule"]
    assert (made["warnings"], made["fired"]) == ([], 0)
    assert (rule["amount"], rule["hysteresis_percent"], rule["digest"], rule["enabled"]) == (
        24.95,
        2,
        "immediately",
        True,
    )
    assert rule["channels"] == [{"kind": "webhook", "shown": "https://example.com/…"}]
    assert await stocked.ask("/api/alerts/1") == rule
    assert (await stocked.ask("/api/alerts"))["items"] == [rule]
    body = {"digest": "daily", "digest_at": "08:00", "timezone": "America/Phoenix"}
    changed = (await stocked.ask("/api/alerts/1", method="PATCH", json=body))["rule"]
    assert (changed["digest_at"], changed["amount"], changed["armed_at"]) == ("08:00", 24.95, rule["armed_at"])
    anew = (await stocked.ask("/api/alerts/1", method="PATCH", json={"store_id": 1, "brand": None}))["rule"]
    assert (anew["store_id"], anew["brand"]) == (1, None)
    assert anew["armed_at"] > rule["armed_at"], "another scope: it begins anew"
    off = (await stocked.ask("/api/alerts/1", method="PATCH", json={"enabled": False}))["rule"]
    assert off["enabled"] is False
    await stocked.ask("/api/alerts/1", method="DELETE")
    assert (await stocked.ask("/api/alerts"))["items"] == []
    await stocked.refused("/api/alerts/1", 404)


async def test_what_holds_already_fires_where_that_is_asked(stocked: Shop) -> None:
    made = await _make(stocked, on_existing="fire")
    assert made["fired"] == 1
    (event,) = (await stocked.ask("/api/alerts/events"))["items"]
    assert (event["facts"]["product"]["name"], event["facts"]["after"]["price"], event["delivery"]) == (
        "Gelato",
        20,
        "pending",
    )
    assert made["warnings"] == ["it has no channel: events are recorded, but no notification is sent"]


async def test_a_preview_counts_what_creating_the_rule_does(stocked: Shop) -> None:
    """Of two products, at 40 and 20, one is below 25."""

    async def preview(**body: Any) -> tuple[int, int | None, int | None]:
        given = {"name": "p", "condition": "price_below", "amount": 25, "brand": "Acme", **body}
        found = await stocked.ask("/api/alerts/preview", method="POST", json=given)
        return found["would_fire"], found["matching"], found["in_scope"]

    assert await preview() == (0, 1, 2)
    assert await preview(on_existing="fire") == (1, 1, 2)
    assert await preview(amount=60, on_existing="fire") == (2, 2, 2)
    assert await preview(amount=60, on_existing="fire", debounce_crawls=2) == (0, 2, 2)
    assert await preview(option="1/8oz", on_existing="fire") == (1, 1, 2)
    assert await preview(condition="back_in_stock", amount=None) == (0, None, 2)
    operations = {"condition": "no_worker", "amount": None, "brand": None}
    assert await preview(**operations) == (1, None, None), "no worker runs here"
    assert await preview(**operations | {"condition": "quarantined", "amount": 1}) == (0, None, None)
    assert (await stocked.ask("/api/alerts"))["items"] == []
    for amount in (25, 60):
        made = await _make(stocked, name=f"below {amount}", amount=amount, on_existing="fire")
        assert made["fired"] == (await preview(amount=amount, on_existing="fire"))[0]


async def test_all_that_is_wrong_is_named_at_once(stocked: Shop) -> None:
    wrong = {
        "name": "r", "condition": "price_below", "amount": 0, "percent": 5, "store_id": 99, "timezone": "Mars", "debounce_crawls": 0,
        "digest": "daily", "channels": [{"kind": "webhook", "url": "http://127.0.0.1/", "secret": "short"}],
    }  # fmt: skip
    problem = await stocked.refused("/api/alerts", 400, method="POST", json=wrong)
    assert {error["pointer"] for error in problem["errors"]} == {
        "#/amount", "#/percent", "#/store_id", "#/timezone", "#/debounce_crawls", "#/digest_at", "#/channels/0/url",
        "#/channels/0/secret",
    }  # fmt: skip


async def test_a_secret_is_generated_and_returned_once(stocked: Shop) -> None:
    answer = await stocked.http.post(
        "/api/alerts",
        json={"name": "r", "condition": "no_worker", "channels": [{"kind": "webhook", "url": HOOK["url"]}]},
    )
    (made,) = answer.json()["secrets"]
    assert made["secret"].startswith("whsec_")
    assert answer.headers["cache-control"] == "no-store"
    assert (await rows_of(stocked, "SELECT secret FROM alert_channels")) == [{"secret": made["secret"]}]
    assert made["secret"] not in str(await stocked.ask("/api/alerts/1"))


async def test_mute_and_what_became_of_events(stocked: Shop) -> None:
    await _make(stocked, on_existing="fire")
    until = datetime.now(UTC) + timedelta(hours=8)
    muted = await stocked.ask("/api/alerts/1/mute", method="POST", json={"until": until.isoformat()})
    assert datetime.fromisoformat(muted["muted_until"]) == until
    for wrong in (until - timedelta(days=1), until + timedelta(days=100)):
        await stocked.refused("/api/alerts/1/mute", 400, method="POST", json={"until": wrong.isoformat()})
    assert (await stocked.ask("/api/alerts/1/mute", method="POST", json={"until": None}))["muted_until"] is None

    async def became(channels: list[str], *, muted: bool = False, notified: bool = True) -> tuple[str, list[str]]:
        async with stocked.pool.connection() as conn:
            await conn.execute("UPDATE alert_events SET notified = %s, muted = %s", [notified, muted])
            await conn.execute("DELETE FROM alert_deliveries")
            for status in channels:
                await conn.execute(
                    "INSERT INTO alert_deliveries (rule_id, channel, event_ids, payload, status, created_at)"
                    " SELECT 1, 'ntfy://', ARRAY[id], '{}', %s, now() FROM alert_events",
                    [status],
                )
        (event,) = (await stocked.ask("/api/alerts/events"))["items"]
        return event["delivery"], [one["status"] for one in event["deliveries"]]

    assert await became([], notified=False) == ("pending", [])
    assert await became([]) == ("no_channel", [])
    assert await became([], muted=True) == ("muted", [])
    assert await became(["delivered", "waiting"]) == ("pending", ["delivered", "waiting"])
    assert await became(["delivered", "failed"]) == ("failed", ["delivered", "failed"])
    assert await became(["delivered"]) == ("delivered", ["delivered"])


async def test_odd_names_are_warned_of(stocked: Shop) -> None:
    made = await _make(stocked, brand="Acmee", channels=[HOOK])
    assert made["warnings"] == ["no product has the brand 'Acmee' yet: did you mean 'Acme'?"]


# fmt: off
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"amount": -5}, "#/amount", "greater than 0"),
    ({"amount": 0}, "#/amount", "greater than 0"),
    ({"amount": None}, "#/amount", "price_below needs an amount"),
    ({"amount": "NaN"}, "#/amount", "finite"),
    ({"percent": 20}, "#/percent", "price_drops_by"),
    ({"condition": "price_drops_by", "amount": None, "percent": 101}, "#/percent", "at most 100"),
    ({"condition": "price_drops_by", "amount": None, "percent": 0}, "#/percent", "greater than 0"),
    ({"condition": "price_drops_by", "amount": 3, "percent": 5}, "#/percent", "either"),
    ({"condition": "price_drops_by", "amount": None}, "#/percent", "either"),
    ({"condition": "back_in_stock"}, "#/amount", "does not take an amount"),
    ({"condition": "back_in_stock", "amount": None, "price": "rec"}, "#/price", "does not use a price"),
    ({"condition": "new_product", "amount": None, "on_existing": "fire"}, "#/on_existing", "use on_existing=skip"),
    ({"condition": "new_product", "amount": None, "product_id": 1}, "#/product_id", "never new"),
    ({"condition": "new_product", "amount": None, "option": "1g"}, "#/option", "does not take an option"),
    ({"condition": "proxies_down", "amount": None}, "#/brand", "takes no scope"),
    ({"condition": "sometimes"}, "#/condition", "price_below"),
    ({"brand": None}, "#/product_id", "has no scope"),
    ({"brand": "  "}, "#/brand", "is empty"),
    ({"product_id": 999}, "#/product_id", "does not exist"),
    ({"product_id": 1, "store_id": 2}, "#/store_id", "another store's"),
    ({"store_id": 99}, "#/store_id", "does not exist"),
    ({"store_id": 1, "state": "NV"}, "#/state", "in AZ"),
    ({"state": "ZZ"}, "#/state", "unknown state 'ZZ'"),
    ({"store_id": 3, "platform": "dutchie"}, "#/platform", "the store is on weedmaps"),
    ({"product_id": 1, "state": "NV"}, "#/state", "the product is in AZ"),
    ({"product_id": 2, "platform": "dutchie"}, "#/platform", "the product is on weedmaps"),
    ({"platform": "nowhere"}, "#/platform", "one of: dutchie"),
    ({"digest": "daily"}, "#/digest_at", "example 08:00"),
    ({"digest_at": "08:00"}, "#/digest_at", "only a daily digest"),
    ({"digest": "daily", "digest_at": "25:00"}, "#/digest_at", "is not a valid time of day: write it as 14:30"),
    ({"timezone": "Mars/Olympus"}, "#/timezone", "unknown time zone"),
    ({"debounce_crawls": 0}, "#/debounce_crawls", "between 1 and 100"),
    ({"cooldown_minutes": -1}, "#/cooldown_minutes", "between 0"),
    ({"hysteresis_percent": -1}, "#/hysteresis_percent", "between 0 and 1000"),
    ({"channels": [{**HOOK, "secret": "short"}]}, "#/channels/0/secret", "at least 16"),
    ({"channels": [HOOK, {**HOOK, "url": "http://127.0.0.1/"}]}, "#/channels/1/url", "not a public address"),
    ({"channels": [{"kind": "apprise", "url": "nosuch://x"}]}, "#/channels/0/url", "unknown service nosuch://"),
    ({"channels": [{"kind": "mail", "url": "x"}]}, "#/channels/0/kind", "webhook"),
    ({"name": ""}, "#/name", "at least 1"),
    ({"treshold": 3}, "#/treshold", "unknown"),
]
# fmt: on


async def test_a_rule_that_could_never_fire_is_refused(stocked: Shop) -> None:
    await stocked.store("other")
    details = Details(platform_dispensary_id="7", slug="third", name="Third", name_raw="Third")
    async with stocked.pool.connection() as conn:
        assert (await stores.promote(conn, "weedmaps", details))[0] == 3
        await conn.execute("UPDATE catalog_products SET provider = 'weedmaps' WHERE id = 2")
    for body, pointer, says in REFUSED:
        given = {"name": "cheap", "condition": "price_below", "amount": 25, "brand": "Acme", **body}
        answer = await stocked.http.post("/api/alerts", json=given)
        assert answer.status_code in (400, 422), (body, answer.text)
        problem = await stocked.refused("/api/alerts", answer.status_code, method="POST", json=given)
        (error,) = problem["errors"]
        assert error["pointer"] == pointer, (body, error)
        assert says in error["detail"], (body, error)
    assert (await stocked.ask("/api/alerts"))["items"] == []
    await _make(stocked)
    assert "already" in (await stocked.refused("/api/alerts", 400, method="POST", json={
        "name": "cheap", "condition": "out_of_stock", "store_id": 2}))["detail"]  # fmt: skip
    assert (await _make(stocked, name="empty", condition="out_of_stock", amount=None, brand=None, store_id=2))["rule"][
        "id"
    ]
    problem = await stocked.refused("/api/alerts/1", 400, method="PATCH", json={"amount": -1})
    assert "greater than 0" in problem["detail"]
    await stocked.refused("/api/alerts/1", 422, method="PATCH", json={})


async def test_a_failure_of_the_rule_itself_is_not_replayed(stocked: Shop) -> None:
    await _make(stocked)
    async with stocked.pool.connection() as conn:
        await record_rule_failure(conn, [1], "the rule could not be evaluated: x", datetime.now(UTC))
    (recorded,) = await rows_of(stocked, "SELECT max(id) AS id FROM alert_deliveries")
    problem = await stocked.refused(f"/api/alerts/deliveries/{recorded['id']}/replay", 409, method="POST")
    assert "there is no message to send" in problem["detail"]


async def test_tests_deliveries_and_secrets(stocked: Shop) -> None:
    await _make(stocked, channels=[HOOK, {"kind": "apprise", "url": "json://user:hidden-word@example.com/"}])
    queued = await stocked.ask("/api/alerts/1/test", method="POST", status=202)
    assert len(queued["deliveries"]) == 2
    listed = (await stocked.ask("/api/alerts/deliveries?status=waiting"))["items"]
    assert [one["channel"] for one in listed] == ["json://…", "https://example.com/…"]
    assert {one["kind"] for one in listed} == {"test"}
    problem = await stocked.refused(f"/api/alerts/deliveries/{listed[0]['id']}/replay", 409, method="POST")
    assert "it is waiting" in problem["detail"]
    await stocked.execute("UPDATE alert_deliveries SET status = 'failed', attempts = 10, next_attempt_at = NULL")
    again = await stocked.ask(f"/api/alerts/deliveries/{listed[0]['id']}/replay", method="POST")
    assert (again["status"], again["attempts"], again["replays"]) == ("waiting", 0, 1)
    await stocked.refused("/api/alerts/deliveries/99/replay", 404, method="POST")
    first = await stocked.ask("/api/alerts/deliveries?limit=1")
    assert (await stocked.ask(f"/api/alerts/deliveries?limit=1&cursor={first['next']}"))["items"][0]["id"] == 1
    seen = ""
    for path in ("/api/alerts", "/api/alerts/1", "/api/alerts/deliveries", "/api/alerts/events"):
        seen += (await stocked.http.get(path)).text
    for hidden in ("token-in-the-path", "sixteen characters", "hidden-word"):
        assert hidden not in seen
    async with stocked.pool.connection() as conn:
        assert len(await rows(conn, "SELECT * FROM alert_channels")) == 2
    await _make(stocked, name="silent")
    assert "no channel" in (await stocked.refused("/api/alerts/2/test", 409, method="POST"))["detail"]
