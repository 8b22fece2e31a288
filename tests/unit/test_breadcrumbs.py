"""Breadcrumbs of all screens are of one kind: links from the list downwards, a slash between them, without the page itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

TEMPLATES = ROOT / "src/menuwatch/dashboard/templates"
WITH_CRUMBS = sorted(path for path in TEMPLATES.rglob("*.html") if 'class="crumbs"' in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WITH_CRUMBS, ids=lambda path: str(path.relative_to(TEMPLATES)))
def test_breadcrumbs(path: Path) -> None:
    (crumbs,) = re.findall(r'<nav class="crumbs"([^>]*)>(.*?)</nav>', path.read_text(encoding="utf-8"), re.DOTALL)
    label, inside = crumbs
    assert 'aria-label="Breadcrumb"' in label
    links = re.findall(r"<a [^>]*>(.*?)</a>", inside)
    assert links[0][0].isupper()
    between = re.sub(r"{%.*?%}", "", re.sub(r"<a .*?</a>", "\0", inside))
    assert between.replace(" ", "") == "/".join("\0" * len(links))


def test_every_screen_of_one_thing_has_them() -> None:
    assert len(WITH_CRUMBS) >= 35
