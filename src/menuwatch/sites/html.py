"""The little of HTML that is read of hostile pages: text, title, links, scripts. One pass each, no tree, time in proportion to the
page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from html import unescape

_SCRIPT_END = re.compile(r"</script(?=[\s>/])", re.IGNORECASE)
_STYLE_END = re.compile(r"</style(?=[\s>/])", re.IGNORECASE)
_COMMENT_OR_CODE = re.compile(r"<!--|<script(?=[\s>/])|<style(?=[\s>/])", re.IGNORECASE)
_TYPE = re.compile(r"""\btype\s{0,9}=\s{0,9}["']?([^"'\s>]{1,100})""", re.IGNORECASE)
_RUNNABLE = frozenset({"text/javascript", "application/javascript", "module"})
_TITLE = re.compile(r"<title(?:\s[^<>]{0,300})?>([^<]{0,1000})", re.IGNORECASE)
_LINK = re.compile(
    r"""<a\s[^<>]{0,2000}?\bhref\s{0,9}=\s{0,9}(?:"([^"<>]{1,2000})"|'([^'<>]{1,2000})')""", re.IGNORECASE
)
_CANONICAL = re.compile(
    r"""<link\s(?=[^<>]{0,1000}rel\s?=\s?["']?canonical)[^<>]{0,1000}?href\s?=\s?["']([^"'<>]{1,2000})""", re.IGNORECASE
)
_TAG = re.compile(r"<([^<>]{0,4000})>")
_OPENS_LINK = re.compile(r"a(?:\s|$)", re.IGNORECASE)
_CLOSES_LINK = re.compile(r"/a(?:\s|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Html:
    """A page. `markup` is what is left of it without comments, scripts and styles; `scripts` are the texts of those that would run,
    in order."""

    markup: str
    scripts: tuple[str, ...]

    @property
    def title(self) -> str:
        """What stands in the first title; empty where there is none."""
        found = _TITLE.search(self.markup)
        return "" if found is None else _plain(found[1])

    @property
    def canonical(self) -> str | None:
        """The address that the page gives itself."""
        found = _CANONICAL.search(self.markup)
        return None if found is None else _plain(found[1])

    def links(self) -> Iterator[str]:
        """Where its links lead, as written, in order."""
        for double, single in _LINK.findall(self.markup):
            yield _plain(double or single)

    def texts(self) -> Iterator[str]:
        """The pieces of text between its tags that say something and are no part of a link, in order, white space made one space."""
        at, linked = 0, False
        for tag in _TAG.finditer(self.markup):
            if not linked and (text := _plain(self.markup[at : tag.start()])):
                yield text
            at = tag.end()
            linked = _OPENS_LINK.match(tag[1]) is not None or (linked and _CLOSES_LINK.match(tag[1]) is None)
        if not linked and (text := _plain(self.markup[at:])):
            yield text


def parse(page: str) -> Html:
    """The page in its parts. Whatever is not closed reaches to the end."""
    kept: list[str] = []
    scripts: list[str] = []
    at = 0
    while (opened := _COMMENT_OR_CODE.search(page, at)) is not None:
        kept.append(page[at : opened.start()])
        if opened[0] == "<!--":
            closed = page.find("-->", opened.end())
            at = len(page) if closed < 0 else closed + 3
            continue
        is_script = opened[0][1:].lower() == "script"
        start = page.find(">", opened.end())
        end = None if start < 0 else (_SCRIPT_END if is_script else _STYLE_END).search(page, start)
        stop = len(page) if end is None else end.start()
        if is_script and start >= 0 and _runs(page[opened.end() : min(start, opened.end() + 2000)]):
            scripts.append(page[start + 1 : stop])
        at = len(page) if end is None else max(end.end(), page.find(">", end.end()) + 1)
    kept.append(page[at:])
    return Html("".join(kept), tuple(scripts))


def _runs(attributes: str) -> bool:
    kind = _TYPE.search(attributes)
    return kind is None or kind[1].lower() in _RUNNABLE


def _plain(text: str) -> str:
    """The text with its character references resolved, on one line."""
    with suppress(ValueError):  # a reference to a character with thousands of digits
        text = unescape(text)
    return " ".join(text.split())
