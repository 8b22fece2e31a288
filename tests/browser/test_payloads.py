"""Payloads: the archive, what differs between two menus, and a dry run that changes nothing before the real one is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served

_COPY = """
INSERT INTO raw_crawl_payloads (dispensary_id, platform, status, reason, product_count, total_count, page_count, fetched_at, path,
                                bytes, raw_bytes, sha256, content_sha256)
SELECT dispensary_id, platform, 'quarantined', 'it is far smaller than usual', product_count, total_count, page_count,
       now(), path, bytes, raw_bytes, sha256, content_sha256
  FROM raw_crawl_payloads WHERE status = 'ok' AND path NOT LIKE '%%chronicle%%' ORDER BY id LIMIT 1 RETURNING id, dispensary_id
"""
_CATALOGUE = """
SELECT md5(string_agg(p::text, ' ' ORDER BY p.id)), (SELECT count(*) FROM store_crawls WHERE dispensary_id = %(id)s),
       (SELECT count(*) FROM past_states WHERE dispensary_id = %(id)s), (SELECT max(id) FROM alert_events),
       (SELECT last_crawled_at FROM dispensaries WHERE id = %(id)s)
  FROM catalog_products p WHERE dispensary_id = %(id)s
"""


@pytest.fixture
def quarantined(faces: Served) -> Iterator[tuple[int, int]]:
    """(payload, store): the first menu of a store, once more, as if it had come just now and looked wrong."""
    ((payload, store),) = faces.sql(_COPY)
    yield payload, store
    faces.sql("DELETE FROM task_live WHERE payload->>'payload_id' = %s", [str(payload)])
    faces.sql("DELETE FROM raw_crawl_payloads WHERE id = %s", [payload])


def test_the_screens(look: Look, faces: Served, quarantined: tuple[int, int]) -> None:
    payload, store = quarantined
    look("/admin/payloads", "payloads")
    look(f"/admin/payloads?store={store}", "payloads-of-store")
    look(f"/admin/payloads/{payload}", "payload")
    look(f"/admin/payloads/{payload}/data", "payload-data")
    look(f"/admin/payloads/{payload}/diff", "payload-diff")
    look(f"/admin/payloads/{payload}/replay", "payload-replay")


def test_an_item_is_a_tree_beside_its_text(page: Page, faces: Served) -> None:
    ((payload, name),) = faces.sql(
        "SELECT r.id, p.name FROM raw_crawl_payloads r JOIN catalog_products p USING (dispensary_id)"
        " WHERE r.status = 'ok' AND r.path NOT LIKE '%chronicle%' ORDER BY r.id, p.id LIMIT 1"
    )
    page.goto(f"{faces.address}/admin/payloads/{payload}/data")
    first = page.locator("#item-1")
    expect(first.locator("> summary")).to_contain_text(name)
    options = first.locator("li", has=page.get_by_text("Options", exact=True)).locator("details")
    expect(options.locator("li").first).not_to_be_visible()
    options.locator("summary").click()
    expect(options.locator("li").first).to_be_visible()
    expect(first.locator("pre")).to_contain_text('"Options": [')


def test_differences_name_the_field_before_and_after(page: Page, faces: Served) -> None:
    ((store, older, newer),) = faces.sql(
        "SELECT dispensary_id, min(id), max(id) FROM raw_crawl_payloads WHERE status = 'ok' AND path NOT LIKE '%chronicle%'"
        " GROUP BY 1 ORDER BY 1 LIMIT 1"
    )
    ((previous,),) = faces.sql(
        "SELECT id FROM raw_crawl_payloads WHERE dispensary_id = %s AND status = 'ok' AND id < %s ORDER BY fetched_at DESC LIMIT 1",
        [store, newer],
    )
    page.goto(f"{faces.address}/admin/payloads/{newer}")
    expect(page.get_by_label("With")).to_have_value(str(previous))
    page.goto(f"{faces.address}/admin/payloads/{newer}/diff?with={older}")
    told = page.locator("#prices tbody tr").first
    name = told.locator("td").first.inner_text().strip()
    before, after = told.locator("del").first.inner_text(), told.locator("ins").first.inner_text()
    assert re.fullmatch(r"\$\d+\.\d\d", before)
    assert re.fullmatch(r"\$\d+\.\d\d", after)
    assert before != after
    href = told.get_by_role("link", name=name, exact=True).get_attribute("href") or ""
    number = int(href.removeprefix("/admin/products/"))
    assert faces.sql("SELECT dispensary_id, name FROM catalog_products WHERE id = %s", [number]) == [(store, name)]
    page.goto(f"{faces.address}/admin/payloads/{older}/diff?with={newer}")
    expect(page.locator("#prices tbody tr").first.locator("del").first).to_have_text(before)


def test_a_dry_run_changes_nothing_and_the_real_one_is_asked_for(
    page: Page, faces: Served, quarantined: tuple[int, int]
) -> None:
    payload, store = quarantined
    before = faces.sql(_CATALOGUE, {"id": store})
    page.goto(f"{faces.address}/admin/payloads?status=quarantined")
    page.locator(f"a[href$='/payloads/{payload}']").click()
    page.get_by_role("link", name="Review and release").click()
    expect(page.locator("h1")).to_have_text(f"Release payload {payload}")
    ((products,),) = faces.sql("SELECT product_count FROM raw_crawl_payloads WHERE id = %s", [payload])
    expect(page.locator(".figure", has_text="Products").locator(".value")).to_have_text(str(products))
    expect(page.locator("del.before").first).to_be_visible()
    assert faces.sql(_CATALOGUE, {"id": store}) == before
    assert faces.sql("SELECT status, released_at FROM raw_crawl_payloads WHERE id = %s", [payload]) == [
        ("quarantined", None)
    ]
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Release it and apply it").click()
    assert faces.sql("SELECT status FROM raw_crawl_payloads WHERE id = %s", [payload]) == [("quarantined",)]
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Release it and apply it").click()
    expect(page.get_by_role("status")).to_contain_text("out of quarantine")
    assert faces.sql("SELECT status FROM raw_crawl_payloads WHERE id = %s", [payload]) == [("ok",)]
    assert faces.sql(
        "SELECT role, priority, dispensary_id FROM worker_tasks WHERE payload->>'payload_id' = %s", [str(payload)]
    ) == [("product_refresh", 20, store)]


def test_what_was_applied_already_says_so(page: Page, faces: Served) -> None:
    ((payload,),) = faces.sql(
        "SELECT max(id) FROM raw_crawl_payloads WHERE applied_at IS NOT NULL AND path NOT LIKE '%chronicle%'"
    )
    page.goto(f"{faces.address}/admin/payloads/{payload}")
    page.get_by_role("link", name="Replay").click()
    expect(page.get_by_role("status")).to_contain_text("The catalogue holds this menu already")
