"""Payloads: the archive, what differs between two menus, and a dry run that changes nothing before the real one is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served, agree

_COPY = """
INSERT INTO raw_crawl_payloads (dispensary_id, platform, status, reason, product_count, total_count, page_count, fetched_at, path,
                                bytes, raw_bytes, sha256, content_sha256)
SELECT dispensary_id, platform, 'quarantined', 'it is far smaller than usual', product_count, total_count, page_count,
       now(), path, bytes, raw_bytes, sha256, content_sha256
  FROM raw_crawl_payloads WHERE status = 'ok' AND path NOT LIKE '%%chronicle%%' ORDER BY id LIMIT 1 RETURNING id, dispensary_id
"""
_CATALOGUE = """
SELECT md5(string_agg(p::text, ' ' ORDER BY p.id)), (SELECT count(*) FROM store_crawls WHERE dispensary_id = %(id)s),
       (SELECT count(*) FROM product_history WHERE dispensary_id = %(id)s), (SELECT max(id) FROM alert_events),
       (SELECT last_crawled_at FROM dispensaries WHERE id = %(id)s)
  FROM catalog_products p WHERE dispensary_id = %(id)s
"""


@pytest.fixture
def quarantined(server: Served) -> Iterator[tuple[int, int]]:
    """(payload, store): the first menu of a store, once more, as if it had come just now and looked wrong."""
    ((payload, store),) = server.sql(_COPY)
    yield payload, store
    server.sql("DELETE FROM task_live WHERE payload->>'payload_id' = %s", [str(payload)])
    server.sql("DELETE FROM raw_crawl_payloads WHERE id = %s", [payload])


def test_the_screens(look: Look, server: Served, quarantined: tuple[int, int]) -> None:
    payload, store = quarantined
    look("/admin/payloads", "payloads")
    look(f"/admin/payloads?store={store}", "payloads-of-store")
    look(f"/admin/payloads/{payload}", "payload")
    look(f"/admin/payloads/{payload}/data", "payload-data")
    look(f"/admin/payloads/{payload}/diff", "payload-diff")
    look(f"/admin/payloads/{payload}/replay", "payload-replay")


def test_the_quarantine_is_walked_with_the_keyboard(
    look: Look, page: Page, server: Served, quarantined: tuple[int, int]
) -> None:
    newest, _ = quarantined
    ((second, _),) = server.sql(_COPY.replace("now()", "now() - interval '1 hour'"))
    try:
        look("/admin/quarantine", "quarantine")
        expect(page.locator("#held-title + .more")).to_contain_text(f"Payload {newest}")
        page.keyboard.press("j")
        expect(page.locator("#held-title + .more")).to_contain_text(f"Payload {second}")
        page.keyboard.press("k")
        expect(page.locator("#held-title + .more")).to_contain_text(f"Payload {newest}")
    finally:
        server.sql("DELETE FROM raw_crawl_payloads WHERE id = %s", [second])


def test_an_item_is_a_tree_beside_its_text(page: Page, server: Served) -> None:
    ((payload, name),) = server.sql(
        "SELECT r.id, p.name FROM raw_crawl_payloads r JOIN catalog_products p USING (dispensary_id)"
        " WHERE r.status = 'ok' AND r.path NOT LIKE '%chronicle%' ORDER BY r.id, p.id LIMIT 1"
    )
    page.goto(f"{server.address}/admin/payloads/{payload}/data")
    first = page.locator("#item-1")
    expect(first.locator("> summary")).to_contain_text(name)
    options = first.locator("li", has=page.get_by_text("Options", exact=True)).locator("details")
    expect(options.locator("li").first).not_to_be_visible()
    options.locator("summary").click()
    expect(options.locator("li").first).to_be_visible()
    expect(first.locator("pre")).to_contain_text('"Options": [')


def test_differences_name_the_field_before_and_after(page: Page, server: Served) -> None:
    ((store, older, newer),) = server.sql(
        "SELECT dispensary_id, min(id), max(id) FROM raw_crawl_payloads WHERE status = 'ok' AND path NOT LIKE '%chronicle%'"
        " GROUP BY 1 ORDER BY 1 LIMIT 1"
    )
    ((previous,),) = server.sql(
        "SELECT id FROM raw_crawl_payloads WHERE dispensary_id = %s AND status = 'ok' AND id < %s ORDER BY fetched_at DESC LIMIT 1",
        [store, newer],
    )
    page.goto(f"{server.address}/admin/payloads/{newer}")
    expect(page.get_by_label("With")).to_have_value(str(previous))
    page.goto(f"{server.address}/admin/payloads/{newer}/diff?with={older}")
    told = page.locator("#prices tbody tr").first
    name = told.locator("td").first.inner_text().strip()
    before, after = (told.locator(f"td[data-label={side}]").inner_text() for side in ("Before", "After"))
    assert re.fullmatch(r"\$\d+\.\d\d", before)
    assert re.fullmatch(r"\$\d+\.\d\d", after)
    assert before != after
    href = told.get_by_role("link", name=name, exact=True).get_attribute("href") or ""
    number = int(href.removeprefix("/admin/products/"))
    assert server.sql("SELECT dispensary_id, name FROM catalog_products WHERE id = %s", [number]) == [(store, name)]
    page.goto(f"{server.address}/admin/payloads/{older}/diff?with={newer}")
    expect(page.locator("#prices tbody tr").first.locator("td[data-label=Before]")).to_have_text(before)


def test_a_dry_run_changes_nothing_and_the_real_one_is_asked_for(
    page: Page, server: Served, quarantined: tuple[int, int]
) -> None:
    payload, store = quarantined
    before = server.sql(_CATALOGUE, {"id": store})
    page.goto(f"{server.address}/admin/payloads?status=quarantined")
    page.locator(f"a[href$='/payloads/{payload}']").click()
    page.get_by_role("link", name="Review and release").click()
    expect(page.locator("h1")).to_have_text(f"Release payload {payload}")
    ((products,),) = server.sql("SELECT product_count FROM raw_crawl_payloads WHERE id = %s", [payload])
    expect(page.locator(".figure", has_text="Products").locator(".value")).to_have_text(str(products))
    expect(page.locator("del.before").first).to_be_visible()
    assert server.sql(_CATALOGUE, {"id": store}) == before
    assert server.sql("SELECT status, released_at FROM raw_crawl_payloads WHERE id = %s", [payload]) == [
        ("quarantined", None)
    ]
    page.get_by_role("button", name="Release and apply").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert server.sql("SELECT status FROM raw_crawl_payloads WHERE id = %s", [payload]) == [("quarantined",)]
    page.get_by_role("button", name="Release and apply").click()
    agree(page)
    expect(page.get_by_role("status")).to_contain_text("Released from quarantine")
    assert server.sql("SELECT status FROM raw_crawl_payloads WHERE id = %s", [payload]) == [("ok",)]
    assert server.sql(
        "SELECT role, priority, dispensary_id FROM worker_tasks WHERE payload->>'payload_id' = %s", [str(payload)]
    ) == [("product_refresh", 20, store)]


def test_what_was_applied_already_says_so(page: Page, server: Served) -> None:
    ((payload,),) = server.sql(
        "SELECT max(id) FROM raw_crawl_payloads WHERE applied_at IS NOT NULL AND path NOT LIKE '%chronicle%'"
    )
    page.goto(f"{server.address}/admin/payloads/{payload}")
    page.get_by_role("link", name="Replay").click()
    expect(page.get_by_role("status")).to_contain_text("The catalog already has this menu")
