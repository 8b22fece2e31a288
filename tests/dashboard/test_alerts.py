"""Alerts on the dashboard: rules in words, edits that collide, messages, and secrets that no page shows."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import httpx
import msgspec
import pytest

from menuwatch.db.pool import Pool
from menuwatch.operations import alert_words

SECRET = "planted-secret-of-a-channel"
RULE = {
    "name": "Acme below 25", "condition": "price_below", "amount": "25", "brand": "Acme", "state": "az", "price": "effective",
    "digest": "daily", "digest_at": "08:00", "timezone": "America/Phoenix", "debounce_crawls": "3", "on_existing": "skip",
}  # fmt: skip
CHANNELS = {"webhook": f"https://hooks.example.com/{SECRET}", "secret": SECRET, "notify": f"ntfy://{SECRET}"}


async def _rows(pool: Pool, statement: str) -> list[tuple[Any, ...]]:
    async with pool.connection() as conn:
        return await (await conn.execute(statement)).fetchall()


async def test_a_rule_is_made_and_its_channels_are_in_no_page(admin: httpx.AsyncClient, pool: Pool) -> None:
    made = await admin.post("/admin/alerts/add", data={**RULE, **CHANNELS})
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
        "Tells when the price of anything of Acme in the state AZ falls below $25.00, once 3 crawls in a row find it; "
        "told each day at 08:00 (America/Phoenix)."
    )
    assert words in (await admin.get("/admin/alerts")).text
    await admin.post(f"/admin/alerts/{rule_id}/test")
    assert await _rows(pool, "SELECT kind, status FROM alert_deliveries") == [("test", "waiting")] * 2
    assert SECRET not in (await admin.get(f"/admin/alerts/messages?rule={rule_id}&status=waiting")).text


WRONG: tuple[tuple[dict[str, str], str, str], ...] = (
    ({"name": ""}, "name", "an alert rule needs a name"),
    ({"amount": "cheap"}, "amount", "a number, as 24.50"),
    ({"amount": "0"}, "amount", "it could never fire"),
    ({"store": "no such shop"}, "store", "does not exist, so the rule could never fire"),
    ({"state": "Arizona!"}, "state", "Arizona!"),
    ({"digest_at": "noon"}, "digest_at", "is no time of day"),
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
        answer = await admin.post("/admin/alerts/add", data=typed)
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
    await admin.post("/admin/alerts/add", data={**RULE, **CHANNELS})
    ((rule,),) = await _rows(pool, "SELECT id FROM alert_rules")
    answer = await admin.post(
        f"/admin/alerts/{rule}", data={**RULE, "nobody": "1", "amount": "cheap", "debounce_crawls": "3"}
    )
    assert answer.status_code == 422
    assert 'name="nobody" value="1" checked' in answer.text
    assert 'id="patience" open' in answer.text


async def test_a_stale_edit_shows_both_and_channels_stay_unless_given(admin: httpx.AsyncClient, pool: Pool) -> None:
    await admin.post("/admin/alerts/add", data={**RULE, **CHANNELS})
    ((rule_id,),) = await _rows(pool, "SELECT id FROM alert_rules")

    async def version() -> str:
        text = (await admin.get(f"/admin/alerts/{rule_id}")).text
        return re.findall(r'name="version" value="([^"]+)"', text)[0]

    first = await version()
    theirs = await admin.post(f"/admin/alerts/{rule_id}", data={**RULE, "amount": "20", "version": first})
    assert theirs.status_code == 303
    assert len(await _rows(pool, "SELECT 1 FROM alert_channels")) == 2
    mine = await admin.post(f"/admin/alerts/{rule_id}", data={**RULE, "amount": "30", "version": first})
    assert mine.status_code == 412
    assert '<del class="before">20</del>' in mine.text
    assert '<ins class="after">30</ins>' in mine.text
    again = {
        **RULE,
        "amount": "30",
        "nobody": "1",
        "version": re.findall(r'name="version" value="([^"]+)"', mine.text)[0],
    }
    assert (await admin.post(f"/admin/alerts/{rule_id}", data=again)).status_code == 303
    assert await _rows(pool, "SELECT amount FROM alert_rules") == [(Decimal(30),)]
    assert await _rows(pool, "SELECT 1 FROM alert_channels") == []


async def test_it_is_turned_off_and_removed_and_messages_go_out_again(admin: httpx.AsyncClient, pool: Pool) -> None:
    await admin.post("/admin/alerts/add", data={**RULE, **CHANNELS})
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


async def test_a_viewer_changes_nothing(admin: httpx.AsyncClient, viewer: httpx.AsyncClient) -> None:
    await admin.post("/admin/alerts/add", data={**RULE, **CHANNELS})
    text = (await viewer.get("/admin/alerts")).text
    assert "Acme below 25" in text
    assert 'method="post" action="/admin/alerts' not in text
    assert SECRET not in text
    for path in ("/add", "/1", "/1/test", "/1/enable", "/1/disable", "/1/remove", "/messages/1/again"):
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
        ({"condition": "proxies_down"}, "Tells when no proxy is active; told at once."),
        (
            {"condition": "circuit_opened", "digest": "hourly"},
            "Tells when a host refuses so many that nobody asks it for a while; told once an hour.",
        ),
        (
            {
                "condition": "price_drops_by",
                "percent": Decimal("12.50"),
                "product_id": 7,
                "option": "3.5g",
                "price": "med",
            },
            "Tells when the medical price of product 7 (3.5g) drops by 12.5 %; told at once.",
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
                "Tells when anything named “OG” at Corner is out of stock, once it has been so for 1,440 min, "
                "about one product every 60 min at most; told at once."
            ),
        ),
        (
            {"condition": "new_product", "category": "flower"},
            "Tells when anything in flower is new on a menu; told at once.",
        ),
    ],
)
def test_rules_in_words(rule: dict[str, Any], words: str) -> None:
    assert alert_words.sentence({**NOTHING, **rule}) == words


def test_an_event_that_lacks_what_a_line_is_made_of_is_shown_as_it_is() -> None:
    event = {"facts": msgspec.Raw(b'{"x": 1}'), "rule": "r", "condition": "price_below"}
    assert "x" in alert_words.found(event) or "None of" in alert_words.found(event)
