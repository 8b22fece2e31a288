"""Images: what is stored, what was given up and why, and asking for that again."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served, agree


def test_the_screen(look: Look) -> None:
    look("/admin/images", "images")


def test_the_figures_and_pictures(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/images")
    ((stored, failed),) = server.sql(
        "SELECT count(*) FILTER (WHERE status = 'stored'), count(*) FILTER (WHERE status = 'failed') FROM image_references"
    )
    expect(page.locator(".figure", has_text="Downloaded").locator(".value")).to_have_text(f"{stored:,}")
    expect(page.locator(".figure", has_text="Failed").locator(".value")).to_have_text(f"{failed:,}")
    picture = page.locator(".gallery img").first
    picture.scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('.gallery img')?.naturalWidth > 0")


def test_what_failed_is_asked_for_again(page: Page, server: Served) -> None:
    uses = server.sql("SELECT id, error, settled_at FROM image_references WHERE status = 'failed'")
    sources = server.sql("SELECT id, attempts FROM image_urls WHERE status = 'failed'")
    assert uses
    page.goto(f"{server.address}/admin/images")
    page.get_by_role("button", name="Retry failed").click()
    agree(page)
    expect(page.get_by_role("status").first).to_contain_text(f"{len(uses)} queued for retry")
    assert server.sql("SELECT count(*) FROM image_references WHERE status = 'failed'") == [(0,)]
    for number, error, settled in uses:
        server.sql(
            "UPDATE image_references SET status = 'failed', error = %s, settled_at = %s WHERE id = %s",
            [error, settled, number],
        )
    for number, attempts in sources:
        server.sql(
            "UPDATE image_urls SET status = 'failed', attempts = %s, due_at = NULL WHERE id = %s", [attempts, number]
        )
