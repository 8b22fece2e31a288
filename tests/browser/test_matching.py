"""Matching in a browser: pairs judged by keys, one after the other, undone, and by buttons without scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Look, Served
from tests.matching.match_rows import MatchRows, key

_REASONS = [
    {"code": "same_brand", "detail": "Modern Flower", "weight": 4.2},
    {"code": "shared_words", "detail": "kush cake", "weight": 6.8},
    {"code": "other_words", "detail": "la", "weight": -3.1},
    {"code": "one_store_lists_both", "detail": "Trulieve Zanesville"},
]
_TABLES = (
    "match_reviews, match_corrections, match_dirty_blocks, product_matches, match_signatures, match_stores, match_events,"
    " canonical_sizes, canonical_products, brand_aliases, brands"
)


@pytest.fixture
def market(server: Served) -> Iterator[MatchRows]:
    """Three pairs: `first`, `second` and `third` in the order of the queue, of two brands and five stores."""
    rows = MatchRows(server.sql)
    rows.sql(f"TRUNCATE {_TABLES} RESTART IDENTITY CASCADE")
    rows.brand("Modern Flower", "Modern Flwr", "MF")
    rows.brand("Strane")
    kush, dream, haze = (
        rows.canonical(name, brand="Modern Flower") for name in ("LA Kush Cake", "Blue Dream", "Amnesia Haze")
    )
    pairs = [
        ("LA Kush Cake (K) | 3.5g", "Kush Cake 3.5g [Flower]"),
        ("Blue Dream", "Blue Dreem Smalls"),
        ("Haze", "Amnesia Haze"),
    ]
    for n, (one, other) in enumerate(pairs):
        product = (kush, dream, haze)[n]
        a = rows.product(one, brand="Modern Flower", store="Trulieve Zanesville", price=24 + n)
        b = rows.product(
            other, brand="Modern Flwr", store="The Green Leaf of a Rather Long Name", platform="weedmaps", price=22
        )
        first = rows.signature(f"{n} a", [a], canonical=product)
        joined = {"canonical": product, "linked_to": first, "confidence": 0.71, "reasons": _REASONS} if n == 0 else {}
        second = rows.signature(f"{n} b", [b], **joined)  # type: ignore[arg-type]
        rows.review(
            first, second, confidence=(0.6, 0.45, 0.1)[n], impact=(40, 9, 3)[n], together=n == 0, reasons=_REASONS
        )
    rows.sql(
        "UPDATE catalog_products p SET local_image_path = (SELECT min(local_image_path) FROM catalog_products) FROM product_matches m"
        " WHERE m.product_id = p.id AND m.signature_id = 1"
    )
    rows.sql("INSERT INTO canonical_sizes (canonical_product_id, size) VALUES (%s, '3.5 g')", [kush])
    rows.sql("UPDATE canonical_products SET merged_into = %s WHERE id = %s", [kush, haze])
    rows.sql(
        "INSERT INTO match_events (kind, from_id, to_id, listings, cause) VALUES ('merged', %s, %s, 3, 'correction')",
        [haze, kush],
    )
    yield rows
    stores = list(rows.stores.values())
    rows.sql(f"TRUNCATE {_TABLES} RESTART IDENTITY CASCADE")
    rows.sql("DELETE FROM catalog_products WHERE dispensary_id = ANY (%s)", [stores])
    rows.sql("DELETE FROM dispensaries WHERE id = ANY (%s)", [stores])


def test_the_screens(look: Look, market: MatchRows, server: Served) -> None:
    one = {"listing_id": "1", "store": "1", "store_name": "Trulieve", "name": "Sour Diesel 3.5g", "brand": "Strane"}
    other = {"listing_id": "2", "store": "2", "name": "Sr Diesel"}
    market.sql(
        "INSERT INTO match_corrections (same, a_key, b_key, a, b, note, made_by) VALUES (true, %s, %s, %s, %s, 'short form', 'ann')",
        [key("a"), key("b"), json.dumps(one), json.dumps(other)],
    )
    look("/admin/matching", "matching-review")
    look("/admin/matching/corrections", "matching-corrections")
    look("/admin/matching/brands", "matching-brands")
    look("/admin/matching/brands/1", "matching-brand")
    look("/admin/matching/overview", "matching-overview")
    look("/admin/matching/products/1", "matching-product")
    ((product,),) = market.sql("SELECT min(product_id) FROM product_matches")
    look(f"/admin/products/{product}", "matching-elsewhere")
    market.sql("DELETE FROM match_reviews")
    look("/admin/matching", "matching-nothing")


def test_pairs_are_judged_by_keys_without_another_page(page: Page, server: Served, market: MatchRows) -> None:
    page.goto(f"{server.address}/admin/matching")
    page.evaluate("window.same_page = true")
    heading, left = page.locator(".match-pair h2").first, page.locator(".match-count")
    expect(heading).to_contain_text("LA Kush Cake")
    expect(left).to_have_text("3 left")
    expect(page.locator(".match-pair h2 mark")).to_have_text(["LA", "K", "Flower"])
    page.keyboard.press("y")
    expect(heading).to_contain_text("Blue Dream")
    expect(left).to_have_text("2 left")
    page.keyboard.press("n")
    expect(heading).to_contain_text("Haze")
    page.keyboard.press("s")
    expect(page.locator("main")).to_contain_text("Nothing to review")
    page.keyboard.press("u")
    expect(heading).to_contain_text("Haze")
    assert market.sql("SELECT same, withdrawn_at IS NULL FROM match_corrections ORDER BY id") == [
        (True, True),
        (False, True),
    ]
    assert page.evaluate("window.same_page"), "the page was loaded again"


def test_the_last_decision_is_undone_by_a_key(page: Page, server: Served, market: MatchRows) -> None:
    page.goto(f"{server.address}/admin/matching")
    heading = page.locator(".match-pair h2").first
    page.keyboard.press("n")
    expect(heading).to_contain_text("Blue Dream")
    page.keyboard.press("u")
    expect(heading).to_contain_text("LA Kush Cake")
    assert market.sql("SELECT withdrawn_at IS NULL FROM match_corrections") == [(False,)]


def test_keys_are_letters_where_text_is_typed_and_after_g(page: Page, server: Served, market: MatchRows) -> None:
    page.goto(f"{server.address}/admin/matching")
    page.locator("#pair-filters summary").click()
    page.get_by_label("Brand").fill("y")
    page.get_by_label("Brand").press("n")
    page.keyboard.press("Escape")
    expect(page.locator(".match-count")).to_have_text("3 left")
    page.locator("h1").click()
    page.keyboard.press("g")
    page.keyboard.press("s")
    page.wait_for_url("**/admin/schedules")
    page.goto(f"{server.address}/admin/matching")
    page.keyboard.press("?")
    expect(page.locator("dialog#keys")).to_contain_text("same product, different products")
    page.keyboard.press("y")
    assert market.sql("SELECT count(*) FROM match_corrections") == [(0,)]


def test_buttons_do_the_same_without_scripts(
    browser: Browser, login_state: object, server: Served, market: MatchRows
) -> None:
    context = browser.new_context(java_script_enabled=False, storage_state=login_state)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{server.address}/admin/matching?now=apart")
    expect(page.locator(".match-pair h2").first).to_contain_text("Blue Dream")
    page.get_by_role("button", name="Different").click()
    expect(page).to_have_url(f"{server.address}/admin/matching?now=apart")
    expect(page.locator(".match-pair h2").first).to_contain_text("Haze")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".match-pair h2").first).to_contain_text("Blue Dream")
    context.close()


def test_an_earlier_correction_is_replaced_after_a_question(page: Page, server: Served, market: MatchRows) -> None:
    page.goto(f"{server.address}/admin/matching")
    page.keyboard.press("y")
    expect(page.locator(".match-pair h2").first).to_contain_text("Blue Dream")
    page.goto(f"{server.address}/admin/matching/products/1")
    page.get_by_role("button", name="Split off").last.click()
    expect(page.locator("h1")).to_have_text("Replace the earlier correction?")
    page.get_by_role("button", name="Withdraw it and record mine").click()
    expect(page.locator("h1")).to_have_text("Corrections")
    assert market.sql("SELECT same, withdrawn_at IS NULL FROM match_corrections ORDER BY id") == [
        (True, False),
        (False, True),
    ]


def test_a_brand_is_merged_and_the_merge_undone(page: Page, server: Served, market: MatchRows) -> None:
    page.goto(f"{server.address}/admin/matching/brands/2")
    page.get_by_label("Brand that stays").fill("nothing like it")
    page.get_by_role("button", name="Merge").click()
    expect(page.locator("#toasts")).to_contain_text("there is no brand 'nothing like it'")
    page.get_by_label("Brand that stays").fill("modern flwr")
    page.get_by_role("button", name="Merge").click()
    expect(page.locator("h1")).to_have_text("Modern Flower")
    expect(page.locator("main table")).to_contain_text("Strane")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("h1")).to_have_text("Strane")
    assert market.sql("SELECT count(*) FROM brands WHERE merged_into IS NOT NULL") == [(0,)]
