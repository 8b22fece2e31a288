"""JSON as a tree that opens and closes: nested `<details>`, so that no script is needed. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from menuwatch.core.format import pluralize

OPEN_TO = 2
"""Levels that are open at first."""

MOST = 400
"""Most values of a tree; the raw text beside it has them all."""

DEEPEST = 40
"""Levels shown; deeper values are only in the raw text."""

_TEXT = 2000
"""Most characters of a text that is a value."""


@dataclass(slots=True)
class _Room:
    """Remaining number of values; `cut` if there were more."""

    name: str
    open_to: int
    left: int = MOST
    cut: bool = field(default=False)
    opened: int = 0


def tree(value: Any, name: str, *, open_to: int = OPEN_TO) -> Markup:
    """The tree of a decoded value. `name` makes the ids of its branches, by which an opened one stays open while the page is live."""
    room = _Room(name, open_to)
    inside = _items(value, 0, room) if isinstance(value, dict | list) else _leaf(value)
    more = Markup('<p class="soft small">There is more: the raw text has it.</p>') if room.cut else Markup("")
    return Markup('<div class="json-tree">{}</div>{}').format(inside, more)


def _items(value: dict[Any, Any] | list[Any], depth: int, room: _Room) -> Markup:
    pairs: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
    shown = []
    for key, one in pairs:
        if not room.left:
            room.cut = True
            break
        room.left -= 1
        shown.append(_branch(str(key), one, depth, room))
    return Markup("<ul>{}</ul>").format(Markup("").join(shown))


def _branch(key: str, value: Any, depth: int, room: _Room) -> Markup:
    if not isinstance(value, dict | list) or not value:
        return Markup('<li><span class="json-key">{}</span> {}</li>').format(key, _leaf(value))
    if depth + 1 >= DEEPEST:
        room.cut = True
        return Markup('<li><span class="json-key">{}</span> …</li>').format(key)
    room.opened += 1
    number = room.opened
    size = pluralize(len(value), "field") if isinstance(value, dict) else pluralize(len(value), "item")
    return Markup(
        '<li><details id="{}-{}"{}><summary><span class="json-key">{}</span> <span class="soft">{}</span></summary>{}</details></li>'
    ).format(
        room.name, number, Markup(" open") if depth + 1 < room.open_to else "", key, size, _items(value, depth + 1, room)
    )  # fmt: skip


def _leaf(value: Any) -> Markup:
    if isinstance(value, str):
        text = value if len(value) <= _TEXT else value[:_TEXT] + "…"
        return (
            Markup('<span class="json-text">{}</span>').format(text)
            if text
            else Markup('<span class="none">empty text</span>')
        )
    if value is None or isinstance(value, bool):
        return Markup('<span class="json-word">{}</span>').format({None: "null", True: "true", False: "false"}[value])
    if isinstance(value, dict | list):
        return Markup('<span class="none">{}</span>').format("no fields" if isinstance(value, dict) else "no items")
    return Markup('<span class="json-number">{}</span>').format(value)
