"""Alerts on the dashboard: rules in words, edits that collide, messages, and secrets that no page shows."""

from __future__ import annotations

import re
from decimal import Decimal
from html import unescape
from typing import Any

import httpx
import msgspec
import pytest

from menuwatch.alerts import format as alert_format
from menuwatch.alerts.events import AlertEvent
from menuwatch.alerts.service import AlertRule
from menuwatch.db.pool import Pool
from tests.market import add_store

SECRET = "planted-secret-of-a-channel"
RULE = {
    "name": "Acme below 25", "condition": "price_below", "amount": "25", "brand": "Acme", "state": "AZ", "price": "effective",
    "digest": "daily", "digest_at": "08:00", "timezone": "America/Phoenix", "debounce_crawls": "3", "on_existing": "skip",
}  # fmt: skip
CHANNELS = {"webhook": f"https://hooks.example.com/{SECRET}", "secret": SECRET, "notify": f"ntfy://{SECRET}"}


async def _rows(pool: Pool, statement: str) -> list[tuple[Any, ...]]:
    async with pool.connection() as conn:
        return await (await conn.execute(statement)).fetchall()


async def test_a_rule_is_made_and_its_channels_are_in_no_page(admin: httpx.AsyncClient, pool: Pool) -> None:
    made = await admin.post("/admin/alerts/new", data={**RULE, **CHANNELS})
    assert made.status_code == 303
    assert SECRET not in str(made.headers)
    assert await _rows(pool, "SELECT name, amount, brand, state, digest, debounce_crawls FROM alert_rules") == [
        ("Acme below 25", Decimal(25), "Acme", "AZ", "daily", 3)
    ]
    assert await _rows(pool, "SELECT kind, address, secret FROM alert_channels ORDER BY id") == [
        ("webhook", CHANNELS["webhook"], SECRET),
        ("apprise", CHANNELS["notify"], None),
    ]
    (rule_id,) = (await _rows(pool, "SELECT id FROM alert_rules"))[0]
    for path in ("", f"/{rule_id}", "/events", "/messages"):
        page = await admin.get(f"/admin/alerts{path}")
        assert page.status_code == 200
        assert SECRET not in page.text
    words = (
        "Fires when the price of anything of Acme in the state AZ falls below $25.00, after 3 consecutive crawls; "
        "sent daily at 08:00 (America/Phoenix)."
    )
    assert words in (await admin.get("/admin/alerts")).text
    assert words in (await admin.get(f"/admin/alerts/{rule_id}")).text
    assert SECRET not in (await admin.get(f"/admin/alerts/{rule_id}/edit")).text
    await admin.post(f"/admin/alerts/{rule_id}/test")
    assert await _rows(pool, "SELECT kind, status FROM alert_deliveries") == [("test", "waiting")] * 2
    assert SECRET not in (await admin.get(f"/admin/alerts/messages?rule={rule_id}&status=waiting")).text


WRONG: tuple[tuple[dict[str, str], str, str], ...] = (
    ({"name": ""}, "name", "enter a name"),
    ({"amount": "cheap"}, "amount", "enter a number such as 24.50"),
    ({"amount": "0"}, "amount", "must be greater than 0"),
    ({"store": "no such shop"}, "store", "does not exist"),
    ({"state": "Arizona!"}, "state", "Arizona!"),
    ({"digest_at": "noon"}, "digest_at", "is not a time of day"),
    ({"secret": "short"}, "secret", "at least 16 characters"),
    ({"webhook": f"http://10.0.0.1/{SECRET}"}, "webhook", "10.0.0.1"),
    ({"notify": f"nonsense://{SECRET}"}, "notify", ""),
    ({"debounce_crawls": "-1"}, "debounce_crawls", "too small"),
)


async def test_what_is_wrong_stands_beside_the_field_and_all_that_was_typed_stays(
    admin: httpx.AsyncClient, pool: Pool, capsys: pytest.CaptureFixture[str]
) -> None:
    for changed, field, why in WRONG:
        typed = {**RULE, **CHANNELS, **changed}
        answer = await admin.post("/admin/alerts/new", data=typed)
        assert answer.status_code == 422, field
        assert answer.headers["cache-control"] == "private, no-store", "nobody keeps the secret that is in it"
        secret = 'type="password" '
        for place in (f'name="webhook" value="{typed["webhook"]}"', f'name="secret" {secret}value="{typed["secret"]}"'):
            assert place in answer.text
        assert re.findall(r'<textarea id="f-notify"[^>]*>([^<]*)<', answer.text) == [typed["notify"]]
        (said,) = re.findall(rf'class="wrong" id="h-{field}">([^<]*)<', answer.text)
        assert why in said
        assert SECRET not in said
        assert 'value="Acme"' in answer.text, "what was typed is kept"
    assert await _rows(pool, "SELECT 1 FROM alert_rules") == []
    assert SECRET not in "".join(capsys.readouterr()), "no log has it"


async def test_taking_all_channels_away_stays_chosen_when_something_else_is_wrong(
    admin: httpx.AsyncClient, pool: Pool
) -> None:
    await admin.post("/admin/alerts/new", data={**RULE, **CHANNELS})
    ((rule,),) = await _rows(pool, "SELECT id FROM alert_rules")
    answer = await admin.post(
        f"/admin/alerts/{rule}/edit", data={**RULE, "no_channels": "1", "amount": "cheap", "debounce_crawls": "3"}
    )
    assert answer.status_code == 422
    assert 'name="no_channels" value="1" checked' in answer.text
    assert 'id="patience" open' in answer.text


async def test_a_stale_edit_shows_both_and_channels_stay_unless_given(admin: httpx.AsyncClient, pool: Pool) -> None:
    await admin.post("/admin/alerts/new", data={**RULE, **CHANNELS})
    ((rule_id,),) = await _rows(pool, "SELECT id FROM alert_rules")

    async def version() -> str:
        text = (await admin.get(f"/admin/alerts/{rule_id}/edit")).text
        return re.findall(r'name="version" value="([^"]+)"', text)[0]

    first = await version()
    theirs = await admin.post(f"/admin/alerts/{rule_id}/edit", data={**RULE, "amount": "20", "version": first})
    assert theirs.status_code == 303
    assert len(await _rows(pool, "SELECT 1 FROM alert_channels")) == 2
    mine = await admin.post(f"/admin/alerts/{rule_id}/edit", data={**RULE, "amount": "30", "version": first})
    assert mine.status_code == 412
    assert '<del class="before">20</del>' in mine.text
    assert '<ins class="after">30</ins>' in mine.text
    again = {
        **RULE,
        "amount": "30",
        "no_channels": "1",
        "version": re.findall(r'name="version" value="([^"]+)"', mine.text)[0],
    }
    assert (await admin.post(f"/admin/alerts/{rule_id}/edit", data=again)).status_code == 303
    assert await _rows(pool, "SELECT amount FROM alert_rules") == [(Decimal(30),)]
    assert await _rows(pool, "SELECT 1 FROM alert_channels") == []


async def test_it_is_turned_off_and_removed_and_messages_go_out_again(admin: httpx.AsyncClient, pool: Pool) -> None:
    await admin.post("/admin/alerts/new", data={**RULE, **CHANNELS})
    ((rule_id,),) = await _rows(pool, "SELECT id FROM alert_rules")
    await admin.post(f"/admin/alerts/{rule_id}/disable")
    assert await _rows(pool, "SELECT enabled FROM alert_rules") == [(False,)]
    await admin.post(f"/admin/alerts/{rule_id}/enable")
    await admin.post(f"/admin/alerts/{rule_id}/test")
    async with pool.connection() as conn:
        await conn.execute("UPDATE alert_deliveries SET status = 'failed', next_attempt_at = NULL, error = '<script>x'")
    page = (await admin.get("/admin/alerts/messages")).text
    assert "&lt;script&gt;x" in page
    ((delivery, *_), _) = await _rows(pool, "SELECT id FROM alert_deliveries ORDER BY id")
    await admin.post(f"/admin/alerts/messages/{delivery}/again")
    assert await _rows(pool, f"SELECT status, replays FROM alert_deliveries WHERE id = {delivery}") == [("waiting", 1)]
    await admin.post(f"/admin/alerts/{rule_id}/remove")
    assert await _rows(pool, "SELECT 1 FROM alert_rules UNION ALL SELECT 1 FROM alert_deliveries") == []


async def test_a_place_is_typed_by_its_name_and_an_edit_keeps_its_position(
    admin: httpx.AsyncClient, pool: Pool
) -> None:
    position = "SELECT latitude, longitude, miles, armed_at FROM alert_rules"
    assert (
        await admin.post("/admin/alerts/new", data={**RULE, "near": "35.084386,-0.00001", "miles": "5"})
    ).status_code == 303
    ((latitude, longitude, miles, armed),) = await _rows(pool, position)
    assert (latitude, longitude, miles) == (35.084386, -0.00001, 5)
    form = (await admin.get("/admin/alerts/1/edit")).text
    typed = {name: re.search(rf'name="{name}"[^>]* value="([^"]*)"', form) for name in ("near", "miles", "version")}
    values = {name: found[1] for name, found in typed.items() if found is not None}
    assert (await admin.post("/admin/alerts/1/edit", data={**RULE, **values, "name": "Renamed"})).status_code == 303
    assert await _rows(pool, position) == [(35.084386, -0.00001, 5, armed)], "the rule is not reset"
    for place, field, message in (
        ({"near": "Nowhere"}, "near", "unknown place &#39;Nowhere&#39;: give a city with its state"),
        ({"miles": "5"}, "near", "enter the place that the distance is from"),
        ({"near": "87501", "miles": "501"}, "miles", "a distance up to 500 miles"),
    ):
        page = (await admin.post("/admin/alerts/new", data={**RULE, "name": "Other", **place})).text
        assert re.search(rf'id="h-{field}">[^<]*{re.escape(message)}', page), place


async def test_all_that_is_wrong_is_shown_at_once(admin: httpx.AsyncClient) -> None:
    wrong = {
        **RULE, "name": "", "amount": "cheap", "store": "no such shop", "digest_at": "noon", "debounce_crawls": "x",
        "webhook": "http://10.0.0.1/", "secret": "short", "notify": "nonsense://x",
    }  # fmt: skip
    page = (await admin.post("/admin/alerts/new", data=wrong)).text
    shown = set(re.findall(r'class="wrong" id="h-(\w+)"', page))
    assert shown == {"name", "amount", "store", "digest_at", "debounce_crawls", "webhook", "secret", "notify"}


async def test_the_form_has_the_fields_of_its_condition(admin: httpx.AsyncClient) -> None:
    async def names(condition: str) -> set[str]:
        text = (await admin.get(f"/admin/alerts/new?condition={condition}")).text
        return set(re.findall(r' name="(\w+)"', text[text.index('class="stack rule"') :]))

    always = {"name", "condition", "version", "webhook", "secret", "notify", "act", "digest", "digest_at", "timezone"}
    scope = {"brand", "category", "search", "store", "state", "platform", "near", "miles"}
    timing = {"debounce_crawls", "debounce_minutes", "cooldown_minutes"}
    assert await names("no_worker") == always | {"debounce_minutes"}
    assert await names("circuit_opened") == always
    assert await names("failure_rate") == always | {"debounce_minutes", "percent"}
    assert await names("stores_stale") == always | {"debounce_minutes", "amount"}
    assert await names("new_product") == always | scope | timing
    price = {"amount", "price", "option", "hysteresis_percent", "product_id", "canonical_product_id"}
    assert await names("price_below") == always | scope | timing | price | {"on_existing"}
    assert await names("price_drops_by") == always | scope | timing | price | {"percent"}


async def test_alert_me_links_fill_the_scope(admin: httpx.AsyncClient, pool: Pool) -> None:
    async with pool.connection() as conn:
        store = await add_store(conn)
    choice = (await admin.get(f"/admin/alerts/new?store={store}")).text
    assert "condition=price_below" in choice
    assert f"store={store}" in choice
    assert "condition=no_worker" not in choice, "it takes no store"
    form = (await admin.get(f"/admin/alerts/new?store={store}&condition=out_of_stock")).text
    assert re.search(rf'name="store" type="text" value="{store}"', form)
    assert "condition=new_product" not in (await admin.get("/admin/alerts/new?product=1")).text, (
        "no product is new again"
    )


async def test_the_condition_of_a_rule_for_a_store_can_be_changed(admin: httpx.AsyncClient, pool: Pool) -> None:
    async with pool.connection() as conn:
        store = await add_store(conn)
    await admin.post("/admin/alerts/new", data={**RULE, **CHANNELS, "store": str(store)})
    ((rule_id, of_store),) = await _rows(pool, "SELECT id, dispensary_id FROM alert_rules")
    assert of_store == store
    form = (await admin.get(f"/admin/alerts/{rule_id}/edit")).text
    links = {unescape(one) for one in re.findall(rf'href="(/admin/alerts/{rule_id}/edit\?[^"]+)"', form)}
    assert f"/admin/alerts/{rule_id}/edit?condition=out_of_stock" in links
    for link in links:
        page = await admin.get(link)
        assert page.status_code == 200, link
        assert page.text.count(f'name="store" type="text" value="{store}"') == page.text.count('name="store"'), link


async def test_a_preview_saves_nothing_and_a_secret_is_shown_once(admin: httpx.AsyncClient, pool: Pool) -> None:
    rule = {"name": "Nobody works", "condition": "no_worker", "webhook": "https://hooks.example.com/x"}
    page = await admin.post("/admin/alerts/new", data={**rule, "act": "preview"})
    assert page.status_code == 200
    assert "0 workers online" in re.findall(r'id="preview">(.*?)</div>', page.text, re.DOTALL)[0]
    assert await _rows(pool, "SELECT 1 FROM alert_rules") == []
    made = await admin.post("/admin/alerts/new", data=rule)
    ((rule_id, secret),) = await _rows(pool, "SELECT rule_id, secret FROM alert_channels")
    assert made.headers["cache-control"] == "private, no-store"
    assert secret in made.text
    assert "0 workers online" in (await admin.get(f"/admin/alerts/{rule_id}")).text
    assert secret not in (await admin.get(f"/admin/alerts/{rule_id}")).text


async def test_events_say_what_was_delivered(admin: httpx.AsyncClient, pool: Pool) -> None:
    """A rule without a channel has events, and no message."""
    await admin.post("/admin/alerts/new", data={"name": "Quiet", "condition": "no_worker"})
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO alert_events (rule_id, source, fired_at, due_at, notified, facts) SELECT id, 's', now(), now(), true,"
            """ '{"firing": true, "detail": "0 workers online"}' FROM alert_rules"""
        )
    page = (await admin.get("/admin/alerts/events")).text
    assert ">no channel<" in page
    assert "badge dot good" not in page
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO alert_deliveries (rule_id, channel, event_ids, payload, status, error, created_at) SELECT rule_id, 'ntfy://',"
            """ ARRAY[id], '{"kind": "alert", "rule": {"name": "Quiet", "condition": "no_worker"}, "events": [{"firing": true,"""
            """ "detail": "0 workers online"}]}', 'failed', 'refused there', now() FROM alert_events RETURNING id"""
        )
    page = (await admin.get("/admin/alerts/events")).text
    assert "no channel" not in page
    assert "refused there" in page
    ((message,),) = await _rows(pool, "SELECT id FROM alert_deliveries")
    assert f"/admin/alerts/messages/{message}" in page
    body = (await admin.get(f"/admin/alerts/messages/{message}")).text
    assert "Quiet: no worker is online" in body
    assert "refused there" in body


async def test_a_rule_is_muted_and_unmuted(admin: httpx.AsyncClient, pool: Pool) -> None:
    await admin.post("/admin/alerts/new", data={"name": "Quiet", "condition": "no_worker"})
    ((rule_id,),) = await _rows(pool, "SELECT id FROM alert_rules")
    query = "SELECT round(extract(epoch FROM muted_until - now()) / 3600) FROM alert_rules"
    await admin.post(f"/admin/alerts/{rule_id}/mute", data={"for": "8h"})
    assert await _rows(pool, query) == [(8,)]
    assert "Unmute" in (await admin.get(f"/admin/alerts/{rule_id}")).text
    await admin.post(f"/admin/alerts/{rule_id}/mute")
    assert await _rows(pool, query) == [(None,)]
    await admin.post(f"/admin/alerts/{rule_id}/mute", data={"for": "8h", "until": "2020-01-01T00:00"})
    assert await _rows(pool, query) == [(None,)], "that is past"


async def test_a_viewer_changes_nothing(admin: httpx.AsyncClient, viewer: httpx.AsyncClient) -> None:
    await admin.post("/admin/alerts/new", data={**RULE, **CHANNELS})
    text = (await viewer.get("/admin/alerts")).text
    assert "Acme below 25" in text
    assert 'method="post" action="/admin/alerts' not in text
    assert SECRET not in text
    for path in ("/new", "/1/edit", "/1/test", "/1/mute", "/1/enable", "/1/disable", "/1/remove", "/messages/1/again"):
        assert (await viewer.post(f"/admin/alerts{path}", data=RULE)).status_code == 403, path


NOTHING: dict[str, Any] = dict.fromkeys(
    ("product_id", "brand", "category", "search", "store", "state", "platform", "amount", "percent", "option", "digest_at")
) | {
    "price": "effective", "debounce_crawls": 1, "debounce_minutes": 0, "cooldown_minutes": 0, "digest": "immediately",
    "timezone": "UTC",
}  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"condition": "proxies_down"}, "Fires when no proxy is active; sent immediately."),
        (
            {"condition": "circuit_opened", "digest": "hourly"},
            "Fires when the circuit of a host opens after too many refusals; sent hourly.",
        ),
        (
            {
                "condition": "price_drops_by",
                "percent": Decimal("12.50"),
                "product_id": 7,
                "option": "3.5g",
                "price": "med",
            },
            "Fires when the medical price of product 7 (3.5g) drops by 12.5 %; sent immediately.",
        ),
        (
            {
                "condition": "out_of_stock",
                "search": "OG",
                "store": "Corner",
                "debounce_minutes": 1440,
                "cooldown_minutes": 60,
            },
            (
                "Fires when anything named “OG” at Corner is out of stock, after 1,440 min, "
                "at most once every 60 min per product; sent immediately."
            ),
        ),
        (
            {"condition": "new_product", "category": "flower"},
            "Fires when anything in flower is new on a menu; sent immediately.",
        ),
    ],
)
def test_rules_in_words(rule: dict[str, Any], words: str) -> None:
    assert (
        alert_format.sentence(AlertRule(**{**dict.fromkeys(AlertRule.__struct_fields__), **NOTHING, **rule})) == words
    )


def test_an_event_that_lacks_what_a_line_is_made_of_is_shown_as_it_is() -> None:
    missing = dict.fromkeys(AlertEvent.__struct_fields__)
    facts = msgspec.Raw(b'{"x": 1}')
    event = AlertEvent(**{**missing, "facts": facts, "rule": "r", "condition": "price_below"})  # type: ignore[arg-type]
    assert "x" in alert_format.event_line(event) or "None of" in alert_format.event_line(event)
