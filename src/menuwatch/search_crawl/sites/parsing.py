"""Read data from untrusted pages: HTML, and the JavaScript object literals in its scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from html import unescape
from typing import Any

import chompjs
from msgspec import Struct

MAX_CHARS = 2_000_000
"""Characters scanned after the start of a literal. Those of the sites have less than a tenth."""
MAX_VALUES = 200_000
"""Values in one literal, inner ones counted; commas in texts count too."""
MAX_DIGITS = 400
"""Characters of one number: more than any that fits into JavaScript's own."""

_CONSTANTS: dict[str, bool | None] = {
    "undefined": None,
    "void 0": None,
    "true": True,
    "!0": True,
    "false": False,
    "!1": False,
}
_QUOTED_CONSTANT = re.compile(r"""["'`](?:undefined|void 0|true|false|!0|!1)["'`]""")
_ESCAPE = re.compile(
    r"\\(?:(?P<json>[\"\\/bfnrt]|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u(?P<unit>[0-9a-fA-F]{4})|(?:x(?P<byte>[0-9a-fA-F]{2})|u\{(?P<code>[0-9a-fA-F]{1,6})\})|(?P<other>\r\n|[^ux]))",
    re.DOTALL,
)
_OTHER = {"v": "\\u000b", "0": "\\u0000", "\n": "", "\r": "", "\r\n": "", "\u2028": "", "\u2029": ""}

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


class Html(Struct, frozen=True):
    """A page. `markup` is the page without comments, scripts and styles; `scripts` are the contents of runnable scripts, in order."""

    markup: str
    scripts: tuple[str, ...]

    @property
    def title(self) -> str:
        """Content of the first title; empty if there is none."""
        match = _TITLE.search(self.markup)
        return "" if match is None else _plain(match[1])

    @property
    def canonical(self) -> str | None:
        """Its canonical URL; None if it names none."""
        match = _CANONICAL.search(self.markup)
        return None if match is None else _plain(match[1])

    def links(self) -> Iterator[str]:
        """Targets of its links, as written, in order."""
        for link in _LINK.finditer(self.markup):
            yield _plain(link[1] or link[2])

    def texts(self) -> Iterator[str]:
        """Non-empty texts between its tags outside of links, in order, with white space collapsed."""
        at, linked = 0, False
        for tag in _TAG.finditer(self.markup):
            if not linked and (text := _plain(self.markup[at : tag.start()])):
                yield text
            at = tag.end()
            linked = _OPENS_LINK.match(tag[1]) is not None or (linked and _CLOSES_LINK.match(tag[1]) is None)
        if not linked and (text := _plain(self.markup[at:])):
            yield text


def parse_html(page: str) -> Html:
    """Parse an untrusted page in one pass, in time linear to its size. An element that is not closed extends to the end."""
    markup: list[str] = []
    scripts: list[str] = []
    at = 0
    while (opened := _COMMENT_OR_CODE.search(page, at)) is not None:
        markup.append(page[at : opened.start()])
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
    markup.append(page[at:])
    return Html("".join(markup), tuple(scripts))


def _runs(attributes: str) -> bool:
    kind = _TYPE.search(attributes)
    return kind is None or kind[1].lower() in _RUNNABLE


def _plain(text: str) -> str:
    """The text with its character references resolved, on one line."""
    with suppress(ValueError):  # a reference to a character with thousands of digits
        text = unescape(text)
    return " ".join(text.split())


class BadLiteral(ValueError):
    """The text does not start with an object or array, or it cannot be read."""


def read_literal(text: str, start: int = 0) -> Any:
    """The JavaScript object or array literal that starts at `start`, read without running it.

    chompjs rewrites a literal as JSON, in one pass. Here are the limits, the escapes that JSON lacks, and the constants that chompjs
    takes for text. Code (a call, a template with `${}`) becomes its own text. Of a repeated key, the last value counts.

    Values are dict, list, str, int, Decimal (numbers with a fraction or an exponent, exactly as written), bool and None. None also
    stands for undefined, NaN and Infinity. Halves of surrogate pairs become U+FFFD. Raises BadLiteral and nothing else.
    """
    text = text[start : start + MAX_CHARS].lstrip("\ufeff \t\r\n")
    if not text.startswith(("{", "[")):
        raise BadLiteral("it is not an object")
    try:
        if _count_values(text) <= MAX_VALUES:
            return _decoder(_no_constants).raw_decode(_ESCAPE.sub(_json_escape, text))[0]
    except (ValueError, RecursionError):
        pass  # no JSON: an object of JavaScript
    # chompjs gives bare words as text: where the same word is quoted as well, nothing distinguishes them, and both stay text.
    constants = _with_constants if _QUOTED_CONSTANT.search(text) is None else _no_constants
    try:
        return chompjs.parse_js_object(text, loader=lambda rewritten: _load(rewritten, constants))
    except BadLiteral:
        raise
    except (ValueError, RecursionError) as error:
        raise BadLiteral(f"{type(error).__name__}: {str(error)[:100]}") from None


def _count_values(text: str) -> int:
    return sum(map(text.count, ",[{"))


def _load(text: str, constants: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    if _count_values(text) > MAX_VALUES:
        raise BadLiteral(f"more than {MAX_VALUES} values")
    return _decoder(constants).decode(_ESCAPE.sub(_json_escape, text))


def _decoder(constants: Callable[[dict[str, Any]], dict[str, Any]]) -> json.JSONDecoder:
    return json.JSONDecoder(
        strict=False, object_hook=constants, parse_int=_integer, parse_float=_decimal, parse_constant=lambda _: None
    )


def _no_constants(value: dict[str, Any]) -> dict[str, Any]:
    return value


def _json_escape(match: re.Match[str]) -> str:
    if match["json"] is not None:
        return match[0]
    if match["other"] is not None:
        return _OTHER.get(match["other"], match["other"])
    code = int(match["unit"] or match["byte"] or match["code"], 16)
    if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
        code = 0xFFFD
    return json.dumps(chr(code))[1:-1]


def _with_constants(value: dict[str, Any]) -> dict[str, Any]:
    return {key: _CONSTANTS.get(inner, inner) if isinstance(inner, str) else inner for key, inner in value.items()}


def _integer(digits: str) -> int:
    _check_length(digits)
    return int(digits)


def _decimal(digits: str) -> Decimal | None:
    """Numbers beyond a double are infinity or zero in JavaScript; as a Decimal, rounding them could exhaust memory."""
    _check_length(digits)
    double = abs(float(digits))
    return None if double == float("inf") else Decimal(digits) if double else Decimal(0)


def _check_length(digits: str) -> None:
    if len(digits) > MAX_DIGITS:
        raise BadLiteral(f"a number of more than {MAX_DIGITS} characters")
