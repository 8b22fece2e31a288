"""Where one may be sent after a login: to pages of ours."""

from __future__ import annotations

import pytest

from menuwatch.dashboard.pages.login import safe_next


@pytest.mark.parametrize(
    "text",
    [
        "/admin/",
        "/admin/tasks?state=failed&q=a%20b",
        "/admin/tasks/5#log",
        "/stores/a.b",
        "/?q=https://x.test",
        "/a/...b",
    ],
)
def test_pages_of_ours(text: str) -> None:
    assert safe_next(text) == text
    assert safe_next("/menus" + text, "/menus") == "/menus" + text


@pytest.mark.parametrize(
    "text",
    [
        None, "", "//evil.test", "///evil.test", "/\\evil.test", "\\\\evil.test", "/\t/evil.test", "/\n/evil.test", " //evil.test",
        "https://evil.test", "http:evil.test", "javascript:alert(1)",
        "evil.test", "?next=/", "#", "data:text/html,x",
        "/admin/\r\nSet-Cookie: a=b", "/admin/\r", "/admin/\x00", "/admin/ x",
        "/admin/é", "/a" * 1500, "/admin//evil.test", "@evil.test",
        "/..//evil.test", "/.//evil.test", "/%2e%2e/x", "/a/../../x", "/%2E/x", "/admin/\u2028", "/admin/\x7f", "/\u202eevil",
    ],
)  # fmt: skip
def test_nowhere_else(text: str | None) -> None:
    assert safe_next(text) == "/admin/"
    assert safe_next(text, "/menus") == "/menus/admin/"


@pytest.mark.parametrize("text", ["/admin/", "/menusx/admin", "/menus", "/menus/../admin/", "/menus/%2e%2e/admin/"])
def test_not_out_of_the_prefix(text: str) -> None:
    assert safe_next(text, "/menus") == "/menus/admin/"
