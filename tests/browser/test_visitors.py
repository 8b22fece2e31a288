"""Visitors in the browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served


@pytest.fixture
def seen(server: Served) -> Iterator[None]:
    """Forty days on which people came; gone afterwards."""
    server.sql(
        "INSERT INTO visitor_days SELECT d::date, c, r, t, k, 20 + extract(day FROM d)::int * n, 5, 4 + extract(day FROM d)::int "
        "FROM generate_series(now() - interval '40 d', now() - interval '1 d', interval '1 d') d, "
        "(VALUES ('US', 'Arizona', 'Phoenix', 3), ('CA', 'Ontario', 'Toronto', 1), ('', '', '', 2)) p(c, r, t, n), "
        "(VALUES ('home'), ('product')) q(k) ON CONFLICT DO NOTHING"
    )
    server.sql(
        "INSERT INTO visitor_pages SELECT d::date, 'product', 'blue-dream-1', 7, 3 "
        "FROM generate_series(now() - interval '40 d', now() - interval '1 d', interval '1 d') d ON CONFLICT DO NOTHING"
    )
    yield
    server.sql("DELETE FROM visitor_days WHERE day < current_date")
    server.sql("DELETE FROM visitor_pages WHERE day < current_date")


def test_the_screen_and_its_period(look: Look, page: Page, server: Served, seen: None) -> None:
    look("/admin/visitors", "visitors")
    page.get_by_role("link", name="7 days").click()
    expect(page.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "true")
    expect(page.locator(".figure", has_text="Daily uniques")).to_contain_text("over 7 days")
    page.get_by_label("Locations by").select_option("city")
    expect(page).to_have_url(re.compile("by=city"))
    expect(page.get_by_role("cell", name="Phoenix, Arizona, US")).to_be_visible()
