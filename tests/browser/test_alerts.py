"""Alerts in the browser: a rule is made, corrected where it was wrong, tested, and removed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served, axe, shot

MADE = "A rule of the browser's test"


@pytest.fixture
def rules(server: Served) -> Iterator[int]:
    """A rule that found something and told of it; it is gone afterwards."""
    ((rule_id,),) = server.sql(
        "INSERT INTO alert_rules (name, condition, reach, brand, amount, armed_at, created_at, updated_at) "
        "VALUES ('Flower below 25', 'price_below', 'brand', 'Acme', 25, now(), now(), now()) RETURNING id"
    )
    server.sql(
        "INSERT INTO alert_channels (rule_id, kind, address, shown) "
        "VALUES (%s, 'apprise', 'ntfy://planted-secret', 'ntfy://')",
        [rule_id],
    )
    server.sql(
        "INSERT INTO alert_events (rule_id, source, product_id, fired_at, due_at, notified, facts) "
        "SELECT %s, 's', min(id), now(), now(), true, "
        """'{"product": {"name": "Blue Dream", "brand": "Acme"}, "store": {"name": "Corner"}, "option": "3.5g",
             "reference_price": null, "before": {"price": 29, "stock_status": "in_stock"},
             "after": {"price": 24.5, "stock_status": "in_stock"}}' """
        "FROM catalog_products",
        [rule_id],
    )
    server.sql(
        "INSERT INTO alert_deliveries (rule_id, channel, event_ids, payload, status, attempts, error, created_at) "
        "VALUES (%s, 'ntfy://', '{}', '{}', 'failed', 10, 'the name leads to no address', now())",
        [rule_id],
    )
    yield rule_id
    server.sql("DELETE FROM alert_rules WHERE id = %s OR name = %s", [rule_id, MADE])


def test_the_screens(look: Look, server: Served, rules: int) -> None:
    look("/admin/alerts", "alerts")
    look(f"/admin/alerts/{rules}", "alert")
    look(f"/admin/alerts/{rules}/edit", "alert-edit")
    look("/admin/alerts/new", "alert-conditions")
    look("/admin/alerts/new?condition=stores_stale", "alert-operations")
    ((message,),) = server.sql("SELECT id FROM alert_deliveries WHERE rule_id = %s", [rules])
    look(f"/admin/alerts/messages/{message}", "alert-message")
    look("/admin/alerts/events", "alert-events")
    look("/admin/alerts/messages", "alert-messages")


def test_without_rules_it_says_what_one_is_for(look: Look) -> None:
    look("/admin/alerts", "alerts-none")


def test_a_rule_is_made_corrected_and_turned_off(page: Page, server: Served, rules: int) -> None:
    page.goto(f"{server.address}/admin/alerts")
    page.get_by_role("link", name="New rule").click()
    page.get_by_role("link", name="Price drops by").click()
    page.get_by_label("Name", exact=True).fill(MADE)
    page.get_by_label("Brand").fill("Acme")
    page.get_by_role("button", name="Create rule").click()
    expect(page.locator(".wrong")).to_contain_text("either an amount or a percentage")
    expect(page.get_by_label("Brand")).to_have_value("Acme")
    assert not axe(page)
    shot(page, "alert-wrong")
    page.get_by_label("Percentage").fill("20")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview")).to_contain_text("0 products")
    page.get_by_role("button", name="Create rule").click()
    expect(page.locator("main h1")).to_have_text(MADE)
    page.get_by_role("link", name="Alerts", exact=True).first.click()
    row = page.locator("tr", has_text=MADE)
    expect(row).to_contain_text("drops by 20 %")
    row.get_by_role("button", name="Disable").click()
    expect(row.locator(".badge")).to_have_text("off")
    assert server.sql("SELECT enabled, percent::int FROM alert_rules WHERE name = %s", [MADE]) == [(False, 20)]
    assert "planted-secret" not in page.content()
