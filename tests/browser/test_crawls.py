"""Search crawls in the browser: looked at, one started with a mistake in it, and cancelled."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served, agree


def test_the_screens(look: Look, server: Served) -> None:
    ((job,),) = server.sql("SELECT id FROM crawl_jobs WHERE provider = 'serpwatch' ORDER BY id LIMIT 1")
    look("/admin/crawls", "crawls")
    look(f"/admin/crawls/{job}", "crawl")
    for tab in ("products", "pages", "submissions"):
        look(f"/admin/crawls/{job}/{tab}", f"crawl-{tab}")
    ((product,),) = server.sql("SELECT id FROM crawl_products ORDER BY length(name) DESC, id LIMIT 1")
    look(f"/admin/crawls/{job}/products/{product}", "crawl-product")


def test_one_is_started_and_cancelled(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/crawls")
    page.get_by_text("Start a crawl").click()
    page.get_by_label("Keywords").fill("led lamp\n!!!")
    page.get_by_label("Country").fill("us")
    page.get_by_role("button", name="Start").click()
    expect(page.locator(".wrong")).to_contain_text("keyword 2 of 2 contains no letter or digit")
    expect(page.get_by_label("Country")).to_have_value("us")
    page.get_by_label("Keywords").fill("blue kettle\nred kettle")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("status")).to_contain_text("started with 2 keywords")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Crawl")
    ((job, pages),) = server.sql(
        "SELECT j.id, j.max_pages FROM crawl_jobs j WHERE keywords = ARRAY['blue kettle', 'red kettle']"
    )
    assert pages == 10
    page.get_by_role("button", name="Cancel").click()
    agree(page)
    expect(page.get_by_role("status")).to_contain_text("is cancelled")
    expect(page.locator("h1 + .badge")).to_have_text("cancelled")
    server.sql(f"DELETE FROM crawl_jobs WHERE id = {job}")
