"""Answers: a page of a menu, wrapped with the address that it was requested from.

The plugin answers `{"total", "page", "pages", "per_page", "next_page", "results": [items]}`. Nothing in it says of which menu it is,
or whether its prices are recreational or medical: a page is therefore archived as `{"api_url": …, "products": ANSWER}`, with the
answer verbatim, which is also how answers were recorded. The items of a page get the menu as a key of their own, `menu_of`.

WordPress reports errors as `{"code": "rest_no_route", "message": …, "data": {"status": 404}}`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from menuwatch.core.errors import BadPayload
from menuwatch.platforms.dovetail.menu_id import of_api_url
from menuwatch.platforms.dovetail.payload import ITEMS_PATH, WRAPPED
from menuwatch.platforms.envelope import (
    Envelope,
    check_count,
    decode,
    excerpt,
    missing,
    parse_count,
    read_wrapped,
    short_value,
    with_status,
)
from menuwatch.platforms.model import Page

_BOM = b"\xef\xbb\xbf"


class _Known(msgspec.Struct):
    """What every item of a menu has, whatever its envelope."""

    id: Any
    name: Any
    variants: Any
    potency_thc: Any
    meta_data: Any


ENVELOPES = (
    Envelope(items=ITEMS_PATH, total="total", pages="pages", known=_Known),
    Envelope(items=f"{WRAPPED}.{ITEMS_PATH}", total=f"{WRAPPED}.total", pages=f"{WRAPPED}.pages", known=_Known),
    Envelope(items=WRAPPED, known=_Known),
    Envelope(items="", known=_Known),
)
"""Every envelope whose items are known."""


class _Answer(msgspec.Struct):
    results: list[msgspec.Raw] | None = None
    total: msgspec.Raw = msgspec.Raw()
    pages: msgspec.Raw = msgspec.Raw()
    next_page: msgspec.Raw = msgspec.Raw()
    code: msgspec.Raw = msgspec.Raw()
    message: msgspec.Raw = msgspec.Raw()


class _Wrapped(msgspec.Struct):
    api_url: str
    products: _Answer


class _AnyWrapped(msgspec.Struct):
    api_url: Any = None


_answer = msgspec.json.Decoder(_Answer)
_wrapped = msgspec.json.Decoder(_Wrapped)
_any_wrapped = msgspec.json.Decoder(_AnyWrapped)


def wrap(body: bytes, api_url: str) -> bytes:
    """The page as it is archived. The body is known to be JSON."""
    return b'{"api_url":%s,"%s":%s}' % (msgspec.json.encode(api_url), WRAPPED.encode(), body.removeprefix(_BOM).strip())


def results(page: bytes) -> bytes:
    """The items of an archived page, as one text for comparing."""
    return msgspec.json.encode(_wrapped.decode(page).products.results)


def read_answer(body: bytes, status: int = 200) -> Page:
    """Parses an answer of the plugin, which may be empty. Raises BadPayload of kind html, truncated, errors, no_data, schema or
    limits."""
    return _page(decode(body, _answer, status), body, status)


def read(body: bytes) -> Page:
    """Parses an archived page, a recorded answer, or a list of items; the items name their menu where the page does."""
    try:
        wrapped = decode(body, _wrapped)
    except BadPayload as error:
        if error.kind != "schema":
            raise
        return _read_unwrapped(body)
    page = _page(wrapped.products, body, 200)
    return _of_menu(page, wrapped.api_url)


def _read_unwrapped(body: bytes) -> Page:
    """An answer as the plugin gives it, or in the envelope of another recorder."""
    page = read_wrapped(body, ENVELOPES)
    if page is None:
        return read_answer(body)
    try:
        api_url = decode(body, _any_wrapped).api_url
    except BadPayload:
        api_url = None
    return _of_menu(page, api_url) if isinstance(api_url, str) else page


def _page(answer: _Answer, body: bytes, status: int) -> Page:
    if answer.results is None:
        code, message = short_value(answer.code, 1000), short_value(answer.message, 5000)
        if isinstance(code, str) and isinstance(message, str):
            raise BadPayload(
                "errors", with_status(f"the shop's site answers {code}: {excerpt(message.encode())}", status), body
            )
        raise missing("menu", ITEMS_PATH, status, body)
    check_count(len(answer.results), body)
    return Page(answer.results, parse_count(answer.total), parse_count(answer.pages))


def _of_menu(page: Page, api_url: str) -> Page:
    """The page with the menu's name in each item. A page that was requested by category is part of a menu."""
    menu = of_api_url(api_url)
    items = page.items if menu is None else [_named(item, str(menu)) for item in page.items]
    return Page(items, page.total_count, page.total_pages, partial=page.partial or "categories" in api_url)


def _named(item: msgspec.Raw, menu: str) -> msgspec.Raw:
    """The item with one more key. It is the last, which counts if the item has a key of that name itself."""
    text = bytes(item).strip()
    if not text.startswith(b"{") or not text.endswith(b"}"):
        return item
    inside = text[1:-1].strip()
    return msgspec.Raw(b'{%s%s"menu_of":%s}' % (inside, b"," if inside else b"", msgspec.json.encode(menu)))
