"""One filled server and one Chromium for the run; a page that is logged in for each test.

`shot(page, name)` puts a picture of what is seen into the folder SCREENSHOTS names (`make screenshots`), else nowhere.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.conftest import ROOT, in_memory

playwright_api = pytest.importorskip("playwright.sync_api", reason="browser tests need the Python package playwright")
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect  # noqa: E402

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
AXE = ROOT / "src" / "menuwatch" / "web" / "vendor" / "axe.js"
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@dataclass(frozen=True, slots=True)
class Served:
    """A running server. `address` has no slash at its end; `database` is a connection address."""

    address: str
    database: str
    user: str
    password: str
    home: str

    def sql(self, statement: str, values: Any = None) -> list[tuple[Any, ...]]:
        """Runs a statement on its database; the rows, if it gives any."""
        with psycopg.connect(self.database, autocommit=True) as conn:
            cursor = conn.execute(statement, values)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []


def serving(*arguments: str) -> Iterator[Served]:
    """A filled server of one's own, stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="menuwatch-server-", dir=in_memory()) as folder:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.browser.serve", folder, *arguments],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert child.stdout is not None
            assert child.stdin is not None
            line = child.stdout.readline()
            assert line, f"the server did not start (exit {child.wait(30)})"
            yield Served(**json.loads(line))
            child.stdin.close()
            child.wait(60)
        finally:
            child.kill()
            child.wait()


@pytest.fixture(scope="session")
def server() -> Iterator[Served]:
    """The filled server of the run. Tests change only what is their own in it."""
    yield from serving()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium. Not for the whole run: as long as it is driven this way, no asynchronous test of another package can run."""
    if not Path(CHROMIUM).exists():
        pytest.skip("no Chromium here: apt-get install chromium (Debian), and these tests run")
    with playwright_api.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def _logins() -> dict[str, Any]:
    """Cookies by address: a worker may come back to these tests, and the one-time password works once."""
    return {}


@pytest.fixture(scope="package")
def login_state(browser: Browser, server: Served, _logins: dict[str, Any]) -> Any:
    """The cookies of an admin, who has logged in as people do and changed the one-time password."""
    if server.address not in _logins:
        context = browser.new_context()
        log_in(context.new_page(), server)
        _logins[server.address] = context.storage_state()
        context.close()
    return _logins[server.address]


NEW_PASSWORD = "a long enough pass phrase 7"


def log_in(page: Page, server: Served) -> None:
    """Logs the first admin in; the first time the one-time password is changed on the way."""
    page.goto(f"{server.address}/admin/")
    page.get_by_label("User name").fill(server.user)
    page.get_by_label("Password").fill(server.password)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Log out").wait_for()
    if page.get_by_label("New password", exact=True).count():
        page.get_by_label("Current password").fill(server.password)
        page.get_by_label("New password", exact=True).fill(NEW_PASSWORD)
        page.get_by_label("Repeat new password").fill(NEW_PASSWORD)
        page.get_by_role("button", name="Change password").click()
        page.get_by_role("status").wait_for()
    assert page.get_by_role("link", name="Overview").count(), page.locator("main").inner_text()


@pytest.fixture
def complaints() -> list[str]:
    """What the browser complained of during the test; must be empty at its end (`page` looks)."""
    return []


@pytest.fixture
def context(browser: Browser, login_state: Any) -> Iterator[BrowserContext]:
    """A window of the admin's, 1280 × 800, light."""
    made = browser.new_context(
        storage_state=login_state,
        viewport={"width": 1280, "height": 800},
        color_scheme="light",
        # Colours that are still on their way from one theme to the other are of neither.
        reduced_motion="reduce",
        timezone_id="America/Phoenix",
    )
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext, complaints: list[str]) -> Iterator[Page]:
    """A tab. Errors in its console, scripts that throw and answers from 500 on fail the test."""
    tab = context.new_page()
    watch(tab, complaints)
    yield tab
    assert not complaints, "\n".join(complaints)


def watch(tab: Page, complaints: list[str]) -> None:
    """Notes what a tab complains of."""

    def said(message: ConsoleMessage) -> None:
        # What a page is refused on purpose (404, 412, 422) is no error of a script.
        if message.type in {"error", "warning"} and "Failed to load resource" not in message.text:
            complaints.append(f"console: {message.text} ({message.location.get('url')})")

    tab.on("console", said)
    tab.on("pageerror", lambda error: complaints.append(f"script: {error}"))
    tab.on(
        "response", lambda answer: complaints.append(f"{answer.status} {answer.url}") if answer.status >= 500 else None
    )


_COLOUR_RULES = ("color-contrast", "link-in-text-block")


def axe(tab: Page, *, only_colours: bool = False) -> list[str]:
    """What axe-core finds wrong with the page as it is seen now (WCAG 2.2 A and AA, and good practice). `only_colours`: only the rules
    that look at colours, which are what another scheme changes."""
    # Through the debugger, not as a script of the page: the page lets no other scripts in. Once per document: it is large.
    if tab.evaluate("typeof axe") == "undefined":
        tab.evaluate(AXE.read_text(encoding="utf-8") + "; undefined")
    rules = list(_COLOUR_RULES) if only_colours else None
    found = tab.evaluate(
        "rules => axe.run(document, {resultTypes: ['violations'], preload: false, ...(rules ? {runOnly: rules} : {})})",
        rules,
    )
    return [
        f"{one['id']}: {one['help']}: {node['html'][:160]}" for one in found["violations"] for node in one["nodes"][:3]
    ]


def agree(tab: Page, *, to: str = "") -> None:
    """Confirms the question that the page asks, which contains `to`."""
    question = tab.locator("dialog#confirm")
    expect(question).to_contain_text(to)
    question.locator("[data-agree]").click()


def shot(tab: Page, name: str) -> None:
    """A picture of the whole page, where somebody wants pictures."""
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        tab.screenshot(path=f"{folder}/{name}.png", full_page=True)


def fits(tab: Page) -> bool:
    """Whether nothing sticks out to the right of the window; charts draw themselves anew for another width, within a second."""
    for _ in range(10):
        if tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"):
            return True
        tab.wait_for_timeout(100)
    return False


def clipped(tab: Page) -> list[str]:
    """Tables that must be scrolled sideways, except those beneath charts."""
    script = """() => [...document.querySelectorAll('main .table')]
        .filter((box) => !box.closest('details') && box.scrollWidth > box.clientWidth + 1)
        .map((box) => `${box.getAttribute('aria-label')}: ${box.scrollWidth} > ${box.clientWidth}`)"""
    found: list[str] = tab.evaluate(script)
    return found


Look = Callable[..., None]


@pytest.fixture
def look(page: Page, server: Served) -> Look:
    """Opens a screen and looks at it as a whole: light and dark, wide and 380 px narrow; axe, overflow, pictures."""

    def looked(path: str, name: str, *, wait_for: str = "main h1") -> None:
        page.goto(f"{server.address}{path}")
        page.locator(wait_for).first.wait_for()
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            wrong = axe(page, only_colours=scheme == "dark")
            assert not wrong, f"{path}, {scheme}:\n" + "\n".join(wrong)
            shot(page, f"{name}-{scheme}")
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 380, "height": 800})
        shot(page, f"{name}-narrow")
        assert fits(page), f"{path} is wider than 380 px"
        page.set_viewport_size({"width": 1280, "height": 800})

    return looked
