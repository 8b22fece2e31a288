"""The installation in the browser."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served


def test_the_screens(look: Look, page: Page, server: Served) -> None:
    look("/admin/system", "system")
    look("/admin/system/settings", "settings")
    look("/admin/system/doctor", "doctor")
    page.get_by_role("link", name="Check again").click()
    expect(page.get_by_role("cell", name="schema")).to_be_visible()
