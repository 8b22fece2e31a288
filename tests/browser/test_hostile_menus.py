"""Everything that a menu says is written by strangers: on every screen of the catalogue it is text, whatever it holds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.browser import history_data
from tests.browser.conftest import Served, fits
from tests.browser.history_data import Planted, Words

_serial = itertools.count()

HOSTILE = {
    # Ends elements, attributes, JSON and templates: whatever a careless page would put it into.
    "markup": '<script>window.__ran = 1</script><img src=x onerror="window.__ran = 1"><svg onload=alert(1)>'
    "\" onmouseover=\"window.__ran=1\" autofocus onfocus='alert(1)' x='"
    '</script><script>window.__ran = 1</script>\u2028\u2029{"a": [1]}\\u003c--><!--]]>'
    "{{ 7 * 7 }}{% raw %} ${7*7} javascript:alert(1) data:text/html,<script>alert(1)</script>",
    # Right to left, joined, stacked and invisible signs, controls, and the lines of a header.
    "signs": "\u202eevil gnirts\u202c \u2067\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627\u2069\u200f"
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\U0001f3f4\U000e0067\U000e0062 Z\u0351\u036b\u0343a\u0363l\u0368g\u0340o\u0321"
    " \ufffd\u0001\u200b\ufeff one\r\nSet-Cookie: a=b\r\n\r\n<b>two</b>\ttab\x7f",
    "endless": "W" * 500,
}
"""Each opens a dozen pages, which takes seconds: three texts hold what nine would."""


@pytest.fixture
def hostile(request: pytest.FixtureRequest, server: Served) -> Iterator[Planted]:
    """A store all of whose words are that text."""
    text: str = HOSTILE[request.param]
    words = Words(f"hostile-{next(_serial)}", text, text, text, text, text, text, text)
    planted = history_data.plant(server.sql, words)
    server.sql(
        "INSERT INTO image_references (product_id, url, status, error) VALUES (%s, %s, 'failed', %s)",
        [planted.product, "http://images.invalid/" + text[:200], text],
    )
    server.sql(
        "UPDATE dispensaries SET last_error = %s, address = %s, phone = %s, menu_url = %s WHERE id = %s",
        [text] * 4 + [planted.store],
    )
    yield planted
    server.sql("DELETE FROM image_references WHERE product_id = %s", [planted.product])
    history_data.clear(server.sql, planted)


@pytest.mark.parametrize("hostile", HOSTILE, indirect=True)
def test_names_are_text(
    page: Page, server: Served, hostile: Planted, complaints: list[str], request: pytest.FixtureRequest
) -> None:
    text = HOSTILE[request.node.callspec.params["hostile"]]
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    # What the policy refuses is told in the console, and the fixture `page` fails for anything told there.
    page.set_viewport_size({"width": 380, "height": 800})
    for path in (
        "/stores",
        f"/stores/{hostile.store}",
        f"/stores/{hostile.store}/menu",
        "/products?sort=updated",
        f"/products?store={hostile.store}",
        f"/products/{hostile.product}",
        "/payloads",
        f"/payloads?store={hostile.store}",
        f"/payloads/{hostile.quarantined}",
        f"/payloads/{hostile.quarantined}/data",
        f"/payloads/{hostile.quarantined}/replay",
        "/images",
    ):
        page.goto(f"{server.address}/admin{path}")
        page.locator("main h1").first.wait_for()
        assert page.evaluate("window.__ran") is None, path
        assert page.locator("main :is([onerror], [onload], [onmouseover], [onfocus], [autofocus])").count() == 0, path
        # A chart's data is in a script that is no script; nothing else may be one.
        assert page.locator("main script:not([type='application/json'])").count() == 0, path
        assert fits(page), f"{path} is wider than 380 px"
    assert not asked
    # The payload has no file: its page is shown, with the answer of a stored file that is missing.
    complaints.remove(f"500 {server.address}/admin/payloads/{hostile.quarantined}/data")
    page.goto(f"{server.address}/admin/products/{hostile.product}")
    # As it was written, but for blanks, which a page shows as one.
    assert page.evaluate("document.querySelector('h1').textContent.replace(/\\s+/g, ' ').trim()") == page.evaluate(
        "text => text.replace(/\\r\\n?/g, '\\n').replace(/\\s+/g, ' ').trim()", text
    )
    assert page.locator(".chart canvas").count() >= 1
