"""Users, tokens and the audit in the browser: what is secret is seen once."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Look, Served, agree, axe, shot


def test_the_screens(look: Look) -> None:
    look("/admin/users", "users")
    look("/admin/account/tokens", "tokens")
    look("/admin/audit", "audit")


def test_a_user_is_added_changed_and_removed(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/users")
    page.get_by_role("link", name="Add a user").click()
    page.get_by_label("User name").fill("browser.user")
    page.get_by_label("Viewer").check()
    page.get_by_role("button", name="Add user").click()
    password = page.locator(".secret code")
    expect(password).to_have_text(re.compile(r"^[a-z0-9-]{20,}$"))
    secret = password.inner_text()
    assert not axe(page)
    shot(page, "user-once")
    page.reload()
    assert secret not in page.content()
    page.goto(f"{server.address}/admin/users")
    page.get_by_role("link", name="browser.user").click()
    page.get_by_label("Operator").check()
    page.get_by_role("button", name="Change role").click()
    expect(page.get_by_role("status")).to_contain_text("browser.user now has the role operator")
    assert server.sql("SELECT role FROM users WHERE name = 'browser.user'") == [("operator",)]
    page.get_by_role("button", name="Disable").click()
    agree(page, to="browser.user")
    expect(page.get_by_role("status")).to_contain_text("browser.user is disabled")
    page.get_by_role("button", name="Remove").click()
    agree(page)
    expect(page.get_by_role("status")).to_contain_text("browser.user was removed")
    page.goto(f"{server.address}/admin/audit?id=browser.user")
    expect(page.locator("tbody tr")).to_have_count(4)


def test_news_does_not_take_a_password_away(page: Page, server: Served) -> None:
    """Where it is shown is no address that could be asked again: half a minute later it is still there."""
    page.clock.install()
    server.sql(
        "INSERT INTO users (name, role, password_hash, must_change_password) SELECT 'forgetful', 'viewer', password_hash, false"
        " FROM users WHERE name = 'admin'"
    )
    (number,) = server.sql("SELECT id FROM users WHERE name = 'forgetful'")[0]
    page.goto(f"{server.address}/admin/users/{number}")
    page.get_by_role("button", name="Reset password").click()
    agree(page)
    secret = page.locator(".secret code")
    expect(secret).to_have_text(re.compile(r"^[a-z0-9-]{20,}$"))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "x-fragment" in request.headers else None)
    page.clock.run_for(65_000)
    expect(secret).to_be_visible()
    assert asked == []
    server.sql("DELETE FROM users WHERE name = 'forgetful'")


def test_a_token_is_made_and_revoked(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/admin/account")
    page.get_by_role("link", name="Your API tokens").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("browser's test")
    page.get_by_role("checkbox", name=re.compile("^read")).check()
    page.get_by_role("button", name="Create token").click()
    expect(page.locator(".secret code")).to_have_text(re.compile(r"^mw_\d+_\S+$"))
    page.get_by_role("link", name="Done").click()
    row = page.locator("tr", has_text="browser's test")
    row.get_by_role("button", name="Revoke").click()
    agree(page)
    expect(row.locator(".badge")).to_have_text("revoked")
    server.sql("DELETE FROM api_tokens WHERE name = 'browser''s test'")
