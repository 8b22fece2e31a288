"""JSON as a tree: everything is in it once, as text, and what is too much is said to be."""

from __future__ import annotations

import re
from decimal import Decimal

from menuwatch.dashboard import json_tree
from menuwatch.dashboard.json_tree import tree


def words(markup: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", markup).split())


def test_every_value_is_in_its_place() -> None:
    found = tree({"a": 1, "b": {"c": [True, None, ""], "d": {}}, "price": Decimal("12.50")}, "asked")
    assert words(found) == "a 1 b 2 fields c 3 items 0 true 1 null 2 empty text d no fields price 12.50"
    assert re.findall(r'<details id="([\w-]+)"( open)?>', found) == [("asked-1", " open"), ("asked-2", "")]


def test_text_stays_text() -> None:
    found = tree({"<b>&": "<script>alert('x')</script>", "list": ["<i>"]}, "r")
    assert "<script>" not in found
    assert "<b>" not in found
    assert "&lt;i&gt;" in found


def test_what_is_large_or_deep_ends_somewhere() -> None:
    found = tree(list(range(5000)), "r")
    assert found.count("<li>") == json_tree.MOST
    assert "There is more: the raw text has it." in found
    deep: object = "end"
    for _ in range(500):
        deep = [deep]
    found = tree(deep, "r")
    assert found.count("<details") == json_tree.DEEPEST - 1
    assert "There is more" in found
    assert "There is more" not in tree({"a": 1}, "r")
