"""Below a path prefix (PUBLIC_URL with a path): every screen and page, its links, forms, styles and scripts lie below it, whether the
proxy in front takes the prefix off or leaves it on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from menuwatch.dashboard.navigation import SCREENS
from tests.browser.conftest import NEW_PASSWORD, Served, watch
from tests.conftest import ROOT

PREFIX = "/menus/of/ours"


@pytest.fixture(scope="module")
def below(server: Served) -> Iterator[str]:
    """A second server on the same database, below the prefix; gives its address with it."""
    environment = {
        **os.environ, "DATABASE_URL": server.database, "MENUWATCH_HOME": server.home, "LOG_LEVEL": "error",
        "PUBLIC_URL": f"http://127.0.0.1:1{PREFIX}", "PASSWORD_MEMORY_KIB": "1024",
    }  # fmt: skip
    child = subprocess.Popen(
        [sys.executable, "-m", "menuwatch.cli.main", "server", "--port", "0"],
        cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert child.stderr is not None
        line = next(line for line in child.stderr if "listening on" in line)
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert found, line
        yield found[0] + PREFIX
    finally:
        child.terminate()
        child.wait(30)


@pytest.mark.usefixtures("login_state")
def test_every_screen_lies_below_the_prefix(browser: Browser, below: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    complaints: list[str] = []
    watch(page, complaints)
    page.on(
        "response", lambda answer: complaints.append(f"{answer.status} {answer.url}") if answer.status == 404 else None
    )
    page.on(
        "request", lambda asked: complaints.append(f"outside: {asked.url}") if not _inside(asked.url, below) else None
    )
    page.goto(f"{below}/admin/tasks")
    expect(page).to_have_url(re.compile(rf"{PREFIX}/admin/login\?next="))
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(NEW_PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(f"{below}/admin/tasks")
    for screen in SCREENS:
        page.goto(f"{below}/admin{screen.path}")
        expect(page.locator("main h1")).to_be_visible()
        complaints += [f"{screen.path} leads to {link}" for link in _links(page) if not _inside(link, below)]
    page.goto(f"{below}/")
    complaints += [f"the site leads to {link}" for link in _links(page) if not _inside(link, below)]
    assert not complaints, "\n".join(complaints)
    context.close()


def _links(page: Page) -> list[str]:
    """Where links, forms, pictures, styles and scripts lead, as the browser understands them; each once."""
    found = page.evaluate(
        "[...document.querySelectorAll('[href], [src], form')].map((e) => e.href ?? e.src ?? e.action)"
        ".filter((a) => typeof a === 'string' && a.startsWith('http'))"
    )
    return sorted(set(found))


def _inside(address: str, below: str) -> bool:
    # What leads elsewhere on purpose (a store's own menu) is no address of this server.
    return not address.startswith(below.removesuffix(PREFIX)) or address == below or address.startswith(below + "/")


def test_a_proxy_may_take_the_prefix_off(below: str) -> None:
    bare = below.removesuffix(PREFIX)
    with httpx.Client(base_url=bare) as http:
        for path, status in (("/healthz", 200), ("/admin/login", 200), ("/", 200), ("/api/tasks", 401)):
            assert http.get(path).status_code == status, path
            assert http.get(PREFIX + path).status_code == status, PREFIX + path
        assert http.get("/admin/").headers["location"].startswith(f"{PREFIX}/admin/login?next=")
        assert f'href="{PREFIX}/admin/static/' in http.get("/admin/login").text
