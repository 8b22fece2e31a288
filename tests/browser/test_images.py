"""Images: what is stored, what was given up and why, and asking for that again."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served


def test_the_screen(look: Look) -> None:
    look("/admin/images", "images")


def test_the_figures_and_pictures(page: Page, faces: Served) -> None:
    page.goto(f"{faces.address}/admin/images")
    ((stored, failed),) = faces.sql(
        "SELECT count(*) FILTER (WHERE status = 'stored'), count(*) FILTER (WHERE status = 'failed') FROM image_uses"
    )
    expect(page.locator(".figure", has_text="Downloaded").locator(".value")).to_have_text(f"{stored:,}")
    expect(page.locator(".figure", has_text="Failed").locator(".value")).to_have_text(f"{failed:,}")
    picture = page.locator(".gallery img").first
    picture.scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('.gallery img').naturalWidth > 0")


def test_what_failed_is_asked_for_again(page: Page, faces: Served) -> None:
    uses = faces.sql("SELECT id, error, settled_at FROM image_uses WHERE status = 'failed'")
    sources = faces.sql("SELECT id, attempts FROM image_sources WHERE status = 'failed'")
    assert uses
    page.goto(f"{faces.address}/admin/images")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Retry what failed").click()
    expect(page.get_by_role("status").first).to_contain_text(f"{len(uses)} wait again")
    assert faces.sql("SELECT count(*) FROM image_uses WHERE status = 'failed'") == [(0,)]
    for number, error, settled in uses:
        faces.sql(
            "UPDATE image_uses SET status = 'failed', error = %s, settled_at = %s WHERE id = %s",
            [error, settled, number],
        )
    for number, attempts in sources:
        faces.sql(
            "UPDATE image_sources SET status = 'failed', attempts = %s, due_at = NULL WHERE id = %s", [attempts, number]
        )
