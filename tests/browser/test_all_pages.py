"""Every page of the dashboard that a link leads to: no overflow, and axe in light and dark.

axe takes about a second. `make test` opens every page at two widths; it runs axe on pages that no other test looks at (`look` runs it
too) and that have an element of a kind that no page before had, at the narrow width in light, and at the wide one in dark, where it
looks at colours alone. `make proofs` and `make screenshots` take four widths, and run axe on all pages, at all widths in both.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Page

from menuwatch.dashboard.navigation import SCREENS
from tests.browser.conftest import AXE, Served, fits

ALL = "SCREENSHOTS" in os.environ or "ALL_WIDTHS" in os.environ
WIDTHS = (390, 1024, 1440, 1920) if ALL else (390, 1024)
LIGHT = WIDTHS if ALL else (390,)
DARK = WIDTHS if ALL else (1024,)
_KINDS = """() => [...document.body.querySelectorAll('*')].map((one) =>
  [one.tagName, one.getAttribute('role'), one.getAttribute('type'), ...[...one.classList].sort()].join(' '))"""
"""Kinds of elements: what styles and rules tell apart."""
_CHECK = """contrast_only => axe.run(document, {
  resultTypes: ['violations'],
  preload: false,
  ...(contrast_only ? {runOnly: ['color-contrast']} : {}),
}).then(found => found.violations.flatMap(one => one.nodes.slice(0, 3).map(node => `${one.id}: ${node.html.slice(0, 160)}`)))"""
_NAMED = re.compile(r"(/admin/(?:workers|hosts)/)[^/]+")
_LOOKED = re.compile(r'\blook\(\s*f?"(/admin[^"]*)"')
_SKIPPED = re.compile(r"/admin/(?:login|logout|static|.*\bexport\b)")


def _pattern(path: str) -> str:
    """Pages of one kind have one pattern: numbers and names of objects are left out."""
    return re.sub(r"/\d+", "/N", _NAMED.sub(r"\1N", path))


def _looked_at() -> set[str]:
    """Patterns of the pages that another test of this folder gives to `look`."""
    texts = (file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("test_*.py"))
    paths = (path for text in texts for path in _LOOKED.findall(text))
    return {_pattern(re.sub(r"\{[^}]+\}", "1", urlsplit(path).path)) for path in paths}


@pytest.mark.timeout(900)
def test_every_page_at_each_of_the_widths(page: Page, server: Served) -> None:
    """Found by following links from the screens, one page of each kind."""
    root = urlsplit(server.address).path
    waiting = [f"{root}/admin{screen.path}" for screen in SCREENS]
    seen = {_pattern(path) for path in waiting}
    left = set() if ALL else _looked_at()
    wrong: list[str] = []
    with_axe: set[str] = set()
    known: set[str] = set()
    while waiting:
        path = waiting.pop(0)
        page.set_viewport_size({"width": WIDTHS[0], "height": 900})
        answer = page.goto(server.address.removesuffix(root) + path)
        assert answer is not None
        if not answer.headers.get("content-type", "").startswith("text/html"):
            continue
        page.locator("main h1").first.wait_for()
        kinds = set(page.evaluate(_KINDS))
        has_axe = ALL or (_pattern(path.removeprefix(root)) not in left and not kinds <= known)
        if has_axe:
            known |= kinds
            page.evaluate(AXE.read_text(encoding="utf-8") + "; undefined")
            with_axe.add(path)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            if not fits(page):
                wrong.append(f"{path} is wider than {width} px")
            # What a scheme changes is colours alone.
            for scheme, widths in (("light", LIGHT), ("dark", DARK)):
                if not has_axe or width not in widths:
                    continue
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                wrong += [f"{path}, {width} px, {scheme}: {one}" for one in page.evaluate(_CHECK, scheme == "dark")]
        links = page.eval_on_selector_all(
            "main a[href]:not([download]):not([data-plain])", "all => all.map(a => a.pathname?.baseVal ?? a.pathname)"
        )
        for link in links:
            if (
                link
                and link.startswith(f"{root}/admin/")
                and _pattern(unquote(link)) not in seen
                and not _SKIPPED.match(link)
            ):
                seen.add(_pattern(unquote(link)))
                waiting.append(link)
    assert len(seen) > 40, sorted(seen)
    assert len(with_axe) > 10, sorted(with_axe)
    assert not wrong, "\n".join(dict.fromkeys(wrong))
