"""A watch as an Atom feed (RFC 4287). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree as Xml

from menuwatch.operations import watch_words
from menuwatch.shoppers.model import Event, Watch

_SPACE = "http://www.w3.org/2005/Atom"


def write(
    watch: Watch, *, item: str, title: str, events: Sequence[Event], address: str, page: str, manage: str
) -> bytes:
    """The feed, `events` the latest first. It has an entry that says what it waits for, so that it is never empty."""
    Xml.register_namespace("", _SPACE)
    feed = Xml.Element(f"{{{_SPACE}}}feed")
    _add(feed, "id", address)
    _add(feed, "title", _plain(f"Tell me when {title}"))
    _add(feed, "updated", _when(events[0].happened_at if events else watch.created_at))
    _link(feed, "self", address)
    _link(feed, "alternate", page)
    _add(_sub(feed, "author"), "name", "Menuwatch")
    for one in events:
        entry = _sub(feed, "entry")
        _add(entry, "id", f"{address}#{one.id}")
        _add(entry, "title", _plain(watch_words.headline(watch, item, one.facts)))
        _add(entry, "updated", _when(one.happened_at))
        _link(entry, "alternate", page)
        place = watch_words.at(one.facts)
        said = f"At {place}. " if place else ""
        _add(entry, "content", _plain(f"{said}Prices and stock are as the store’s menu last said them."))
    entry = _sub(feed, "entry")
    _add(entry, "id", f"{address}#begun")
    _add(entry, "title", _plain(f"We are watching whether {title}"))
    _add(entry, "updated", _when(watch.created_at))
    _link(entry, "alternate", manage)
    _add(entry, "content", "News appear above this one. To end it, follow the link.")
    return bytes(Xml.tostring(feed, encoding="utf-8", xml_declaration=True))


def _sub(parent: Xml.Element, name: str) -> Xml.Element:
    return Xml.SubElement(parent, f"{{{_SPACE}}}{name}")


def _add(parent: Xml.Element, name: str, text: str) -> None:
    _sub(parent, name).text = text


def _link(parent: Xml.Element, rel: str, href: str) -> None:
    link = _sub(parent, "link")
    link.set("rel", rel)
    link.set("href", href)


def _plain(text: str) -> str:
    """Without what XML cannot hold."""
    return "".join(c if c.isprintable() else " " for c in text)


def _when(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
