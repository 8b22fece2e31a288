"""The doors and the frame: login, the way back, errors, the theme, keys, and pages that are live."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Look, Served, axe, fits, shot, watch


def test_login_leads_back_to_where_one_wanted_to_be(browser: Browser, server: Served, login_state: object) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{server.address}/admin/account?from=12")
    expect(page).to_have_url(re.compile(r"/admin/login\?next="))
    assert not axe(page)
    shot(page, "login")
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill("not this one at all")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("Incorrect user name or password")
    expect(page.get_by_label("User name")).to_have_value("admin")
    page.get_by_label("Password").fill("a long enough pass phrase 7")
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(f"{server.address}/admin/account?from=12")
    page.set_viewport_size({"width": 380, "height": 700})
    assert fits(page)
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Overview").click()
    expect(page.locator("h1")).to_have_text("Overview")
    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url(re.compile(r"/admin/login"))
    page.goto(f"{server.address}/admin/")
    expect(page).to_have_url(re.compile(r"/admin/login\?next="))
    context.close()


def test_the_account_page(look: Look) -> None:
    look("/admin/account", "account")


def test_an_unknown_page_is_a_helpful_404(page: Page, server: Served) -> None:
    answer = page.goto(f"{server.address}/admin/scedules")
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("link", name="Schedules").last).to_be_visible()
    assert not axe(page)
    shot(page, "not-found")


def test_theme_and_keys(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/")
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert not axe(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("/")
    expect(page.locator("#jump")).to_be_focused()
    page.keyboard.type("1")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/admin/tasks/1$"))
    # A screen with a search of its own has the key; the one at the top says how it is reached then.
    page.goto(f"{server.address}/admin/tasks")
    expect(page.locator("#jump")).to_have_attribute("placeholder", re.compile(r"\( g / \)$"))
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.locator("h1").click()
    page.keyboard.press("g")
    page.keyboard.press("/")
    expect(page.locator("#jump")).to_be_focused()


def test_a_change_shows_within_two_seconds_and_focus_and_scroll_stay(page: Page, server: Served) -> None:
    page.set_viewport_size({"width": 1280, "height": 300})
    page.goto(f"{server.address}/admin/")
    expect(page.locator("#live")).to_have_text("Live")
    pending = page.locator(".figure", has_text="Pending").locator(".value").first
    before = int(pending.inner_text().replace(",", ""))
    link = page.locator(".figure", has_text="Failed").first
    link.focus()
    page.evaluate("scrollTo(0, 40)")
    at = page.evaluate("scrollY")
    took = []
    for nth in range(1, 4):
        started = time.monotonic()
        server.sql(
            "INSERT INTO worker_tasks (role, payload) VALUES ('analytics_refresh', jsonb_build_object('why', 'live', 'n', %s::int))",
            [nth],
        )
        expect(pending).to_have_text(f"{before + nth:,}", timeout=15_000)
        took.append(time.monotonic() - started)
    assert min(took) < 2.0  # a busy machine may hold up one of them
    assert page.evaluate("scrollY") == at
    assert page.evaluate("document.activeElement.className") == "figure"
    server.sql("SELECT cancel_tasks(array_agg(id)) FROM task_live WHERE payload->>'why' = 'live'")
    expect(pending).to_have_text(f"{before:,}", timeout=15_000)


def test_live_pauses_and_goes_on(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/")
    page.locator("#live").click()
    expect(page.locator("#live")).to_have_text("Paused")
    page.locator("#live").click()
    expect(page.locator("#live")).to_have_text("Live")


@pytest.mark.parametrize("path", ["/admin/", "/admin/account"])
def test_nothing_is_shown_to_who_has_not_logged_in(browser: Browser, server: Served, path: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    complaints: list[str] = []
    watch(page, complaints)
    page.goto(f"{server.address}{path}")
    expect(page).to_have_url(re.compile(r"/admin/login\?next="))
    assert not complaints
    context.close()


def test_the_font_is_ours_and_kept_for_good(page: Page, server: Served) -> None:
    fonts = []
    page.on("response", lambda answer: fonts.append(answer) if answer.url.endswith(".woff2") else None)
    page.goto(f"{server.address}/admin/tasks")
    assert page.evaluate("document.fonts.ready.then(() => document.fonts.check('14px Inter'))")
    # The page's own link and the style sheet name one address, so that it is loaded once.
    assert len({answer.url for answer in fonts}) == 1
    assert fonts[0].headers["cache-control"].endswith("immutable")
    assert fonts[0].headers["content-type"] == "font/woff2"
    # Figures of a table are equally wide.
    widths = page.evaluate(
        """() => ["111111", "000000", "888888"].map((text) => {
          const cell = document.querySelector("tbody td.num");
          cell.innerHTML = "<span></span>";
          cell.firstChild.textContent = text;
          return cell.firstChild.getBoundingClientRect().width;
        })"""
    )
    assert len(set(widths)) == 1, widths
