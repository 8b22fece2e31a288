"""Alerts from end to end: a simulated shop, crawled over real sockets, whose price falls; and the command line."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from menuwatch import bootstrap
from menuwatch.alerts import service as operations
from menuwatch.alerts.delivery_worker import AlertDeliverer
from menuwatch.alerts.validate import AlertSettings
from menuwatch.cli.demo import crawl_all, first_crawl, market
from menuwatch.core.encryption import SecretBox, new_key
from menuwatch.core.errors import Refused
from menuwatch.sim.expected import ExpectedState, Row
from tests.alerts.rule_factory import rows
from tests.alerts.webhook_receiver import receiving
from tests.commands import run_here

SECRET = "sixteen characters and more"


CRAWLS = 9
AMOUNT = Decimal(28)


def _crossings(menus: Sequence[Mapping[str, Row]], amount: Decimal) -> Counter[str]:
    """How often each product falls below the amount, as a person would count it from what the shop showed."""
    armed: dict[str, bool] = {}
    found: Counter[str] = Counter()
    for number, menu in enumerate(menus):
        for product_id, row in menu.items():
            rec = [p for option in row.options for p in (option.price_rec, option.special_rec) if p is not None]
            med = [p for option in row.options for p in (option.price_med, option.special_med) if p is not None]
            prices = rec or med
            if not prices or row.stock == "oos":
                armed.setdefault(product_id, True)
                continue
            price = min(prices)
            below = price < amount
            if below and armed.get(product_id, number > 0):
                found[product_id] += 1
            if below or price > amount * Decimal("1.02"):
                armed[product_id] = not below
            else:
                armed.setdefault(product_id, True)
    return found


async def test_every_price_that_falls_below_is_told_once(home: Path) -> None:
    """Against what the simulated shop says that it showed."""
    async with (
        receiving() as receiver,
        market(home, store_count=1, product_count=150, seed=9) as (sim, system),
        bootstrap.run_worker(system),
    ):
        settings = dataclasses.replace(system.settings, alert_allow_private=1)
        (shop,) = sim.market.stores
        async with system.pool.connection() as conn, conn.transaction():
            for search in ("a", "A"):  # two rules that find the same
                wish = {
                    "name": search, "condition": "price_below", "search": search, "amount": AMOUNT,
                    "channels": [{"kind": "webhook", "url": receiver.url(), "secret": SECRET}],
                }  # fmt: skip
                await operations.add_rule(
                    conn, wish, settings=AlertSettings.of(settings, ("dutchie",)), now=system.clock.now()
                )
        deliverer = AlertDeliverer(system.pool, settings)
        await first_crawl(system)
        for _ in range(CRAWLS - 1):
            await sim.tick()
            await crawl_all(system)
            await deliverer.step()
        async with system.pool.connection() as conn:
            names = {
                row["provider_product_id"]: row["name"]
                for row in await rows(conn, "SELECT provider_product_id, name FROM catalog_products")
            }
    state = ExpectedState(sim.market)
    told = Counter(
        (got.json()["rule"]["name"], event["product"]["provider_product_id"])
        for got in receiver.got
        for event in got.json()["events"]
    )
    expected = _crossings([state.rows(shop.slug, tick) for tick in range(CRAWLS)], AMOUNT)
    assert sum(expected.values()) > 10
    assert max(expected.values()) > 1, "some fall twice"
    with_a = {product: count for product, count in expected.items() if "a" in names[product].lower()}
    assert told == {(rule, product): count for rule in "aA" for product, count in with_a.items()}
    assert all(got.signed_with(SECRET) for got in receiver.got)


@pytest.fixture
def run(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("MENUWATCH_HOME", str(tmp_path))

    def invoke(*words: str, code: int = 0, given: str | None = None) -> Any:
        found = run_here(["alerts", *words], given)
        assert found.exit_code == code, (found.output, found.exception)
        return found

    return invoke


def test_the_command_line(run: Any) -> None:
    made = run(
        "add", "cheap", "--when", "price_below", "--amount", "24.95", "--brand", "Acme", "--digest", "08:00", "--timezone",
        "America/Phoenix", "--webhook", "https://example.com/hidden", "--secret-file", "-", "--json", given=SECRET + "\n",
    )  # fmt: skip
    rule = json.loads(made.stdout)["rule"]
    assert (rule["amount"], rule["digest_at"], rule["brand"]) == (24.95, "08:00", "Acme")
    shown = run("show", "cheap").stdout
    assert "example.com" in shown
    assert "hidden" not in shown
    assert "$24.95" in shown
    assert not re.search(r":\d\d\.\d", shown), "times to the second"
    (listed,) = json.loads(run("list", "--json").stdout)
    assert listed["name"] == "cheap"
    run("list")
    edited = json.loads(run("edit", "cheap", "--without", "brand", "--search", "dream", "--json").stdout)["rule"]
    assert (edited["brand"], edited["search"]) == (None, "dream")
    run("disable", "cheap")
    run("enable", "1")
    run("deliveries")
    run("remove", "cheap")
    assert json.loads(run("list", "--json").stdout) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "x", "--when", "price_below", "--amount", "-1", "--brand", "A"), "greater than 0"),
        (("add", "x", "--when", "price_below", "--amount", "few", "--brand", "A"), "not a number"),
        (("add", "x", "--when", "price_drops_by", "--percent", "120", "--brand", "A"), "at most 100"),
        (
            ("add", "x", "--when", "price_drops_by", "--percent", "101", "--brand", "A"),
            "--percent: the percentage must be",
        ),
        (("add", "x", "--when", "out_of_stock", "--store", "nowhere"), "--store: store 'nowhere' does not exist"),
        (("add", "x", "--when", "out_of_stock", "--search", ""), "--search: the search is empty: leave it out"),
        (
            ("add", "x", "--when", "out_of_stock", "--brand", "A", "--hysteresis", "-1"),
            "--hysteresis: hysteresis must be between 0 and 1000 percent, not -1",
        ),
        (
            ("add", "x", "--when", "out_of_stock", "--brand", "A", "--hysteresis", "nan"),
            "--hysteresis: hysteresis must be between 0 and 1000 percent, not NaN",
        ),
        (("add", "x", "--when", "out_of_stock", "--brand", "A", "--debounce-crawls", "0"), "--debounce-crawls: "),
        (("add", "x", "--when", "out_of_stock"), "the rule has no scope"),
        (("add", "x", "--when", "out_of_stock", "--brand", "A", "--secret-file", "x"), "--webhook"),
        (
            (
                "add",
                "x",
                "--when",
                "out_of_stock",
                "--brand",
                "A",
                "--webhook",
                "https://example.com",
                "--secret-file",
                "/dev/null",
            ),
            "at least 16",
        ),
        (("add", "x", "--when", "out_of_stock", "--brand", "A", "--digest", "noon"), "for example 08:00"),
        (("show", "nothing"), "does not exist"),
        (("replay", "7"), "does not exist"),
    ],
)
def test_what_is_refused(run: Any, words: tuple[str, ...], says: str) -> None:
    found = run(*words, code=1)
    assert isinstance(found.exception, Refused)
    assert says in str(found.exception)


def test_what_is_odd_is_noted_in_whole_sentences(run: Any, database_url: str) -> None:
    assert (
        "Note: no product has the category 'Flowr' yet."
        in run("add", "x", "--when", "out_of_stock", "--category", "Flowr").output
    )
    with psycopg.connect(database_url) as conn:
        conn.execute(
            "INSERT INTO dispensaries (platform, platform_dispensary_id, slug, name, name_raw) VALUES ('dutchie', 'x', 'x', 'X', 'X')"
        )
        conn.execute(
            "INSERT INTO dispensaries (platform, platform_dispensary_id, slug, name, name_raw) VALUES ('weedmaps', 'y', 'y', 'Y', 'Y')"
        )
    refused = run("add", "z", "--when", "back_in_stock", "--store", "y", "--platform", "dutchie", code=1)
    assert str(refused.exception) == "--platform: the store is on weedmaps"
    run("add", "z", "--when", "back_in_stock", "--store", "y", "--platform", "weedmaps")


def test_channels_from_before_the_key_are_sealed_on_demand(
    run: Any, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stored() -> list[tuple[str, str | None]]:
        with psycopg.connect(database_url) as conn:
            return conn.execute("SELECT address, secret FROM alert_channels ORDER BY id").fetchall()

    scope = ("--when", "out_of_stock", "--brand", "Acme")
    run("add", "a", *scope, "--webhook", "https://example.com/hidden", "--secret-file", "-", given=SECRET)
    run("add", "b", *scope, "--notify", "ntfy://topic")
    assert stored() == [("https://example.com/hidden", SECRET), ("ntfy://topic", None)]
    found = run("seal", code=1)
    assert "SECRET_KEY is not set: `menuwatch proxies key` generates a key" in str(found.exception)
    old, new = new_key(), new_key()
    monkeypatch.setenv("SECRET_KEY", old)
    assert run("seal").stdout == "Encrypted 2 of 2 channels.\n"
    assert run("seal").stdout == "Encrypted 0 of 2 channels; the others already used this key.\n"
    sealed = stored()
    assert all(address.startswith("fernet:") for address, _ in sealed)
    assert [SecretBox([old]).decrypt(secret) for _, secret in sealed] == [SECRET, None]
    monkeypatch.setenv("SECRET_KEY", new)
    found = run("seal", code=1)
    assert isinstance(found.exception, Refused)
    assert "2 of 2 alert channels are encrypted (" in str(found.exception)
    assert "of rule 1" in str(found.exception)
    assert "`menuwatch alerts edit 1 --webhook …`" in str(found.exception)
    assert SECRET not in str(found.exception)
    assert stored() == sealed
    doctor = run_here(["doctor", "--json"])
    (one,) = [one for one in json.loads(doctor.stdout)["findings"] if one["check"] == "alerts"]
    assert (doctor.exit_code, one["level"], "no key in SECRET_KEY decrypts" in one["detail"]) == (1, "problem", True)
    monkeypatch.setenv("SECRET_KEY", f"{new},{old}")
    proxies = run_here(["proxies", "seal"])
    assert proxies.stderr == "Note: 2 alert channels not yet encrypted with this key: `menuwatch alerts seal`.\n"
    assert json.loads(run("seal", "--json").stdout) == {"sealed": 2, "channels": 2}
    assert [SecretBox([new]).decrypt(address) for address, _ in stored()] == [
        "https://example.com/hidden",
        "ntfy://topic",
    ]
