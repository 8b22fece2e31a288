"""One page of a menu: the envelope around the items, and what is said when it is none.

`data.filteredProducts.{products[], queryInfo{totalCount, totalPages}}`. GraphQL errors are a BadPayload, and so is what
`platforms.envelope` says of an answer that is no JSON.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from menuwatch.core import strict
from menuwatch.core.errors import BadPayload
from menuwatch.platforms.dutchie.identity import Ids, identity
from menuwatch.platforms.envelope import decode, excerpt, said, whole
from menuwatch.platforms.walk import Page, Survey

_NOT_PERSISTED = re.compile(r"persisted[\s_-]*query[\s_-]*(?:not[\s_-]*(?:found|supported)|is not|hash)", re.IGNORECASE)


class _QueryInfo(msgspec.Struct, gc=False):
    totalCount: Any = None  # noqa: N815 - the wire's name
    totalPages: Any = None  # noqa: N815


class _FilteredProducts(msgspec.Struct):
    products: list[msgspec.Raw] | None = None
    queryInfo: _QueryInfo | None = None  # noqa: N815


class _Data(msgspec.Struct):
    filteredProducts: _FilteredProducts | None = None  # noqa: N815
    filteredDispensaries: list[msgspec.Raw] | None = None  # noqa: N815


class _Answer(msgspec.Struct):
    data: _Data | None = None
    errors: Any = None


_decoder = msgspec.json.Decoder(_Answer)


class _Products(msgspec.Struct):
    products: list[Ids]
    queryInfo: _QueryInfo | None = None  # noqa: N815


class _Menu(msgspec.Struct):
    filteredProducts: _Products  # noqa: N815


class _Plain(msgspec.Struct):
    """An answer without anything odd in it: nearly all are."""

    data: _Menu
    errors: Any = None


_plain = strict.Decoder(_Plain)


def survey(body: bytes, status: int = 200) -> Survey:
    """`read`, without the items: one walk over a page that has nothing odd in it. Raises as `read` does."""
    try:
        answer = _plain.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        answer = None
    if answer is None or answer.errors:
        return read(body, status).survey(identity)
    found = answer.data.filteredProducts
    ids = tuple([item.chosen() for item in found.products])
    return Survey(ids, *_totals(found.queryInfo), strict=True)


def read(body: bytes, status: int = 200) -> Page:
    """The page in a body; an empty one is a page as well. Raises BadPayload of kind html, truncated, errors, no_data, schema or
    persisted_query; `status` (HTTP) is only told in the message."""
    data = _data(body, status)
    found = data.filteredProducts
    if found is None or found.products is None:
        what = "data.filteredProducts" if found is None else "data.filteredProducts.products"
        raise BadPayload("no_data", said(f"the answer has no menu: {what} is missing or null", status), body)
    return Page(found.products, *_totals(found.queryInfo))


def _totals(info: _QueryInfo | None) -> tuple[int | None, int | None]:
    return (None, None) if info is None else (whole(info.totalCount), whole(info.totalPages))


def split(body: bytes) -> list[msgspec.Raw]:
    """The raw items of a page that has some; raises BadPayload as `read` does, and of kind empty where it has none."""
    items = read(body).items
    if not items:
        raise BadPayload("empty", "the menu has no products: data.filteredProducts.products is []", body)
    return items


def read_stores(body: bytes, status: int = 200) -> list[msgspec.Raw]:
    """The raw records of a ConsumerDispensaries answer, in order. Raises BadPayload as `read` does."""
    records = _data(body, status).filteredDispensaries
    if records is None:
        raise BadPayload(
            "no_data", said("the answer has no stores: data.filteredDispensaries is missing or null", status), body
        )
    return records


def _data(body: bytes, status: int) -> _Data:
    answer = decode(body, _decoder, status)
    if answer.errors:
        raise _errors(answer.errors, body, status)
    if answer.data is None:
        raise BadPayload("no_data", said("the answer has no data, and names no error", status), body)
    return answer.data


def _errors(errors: Any, body: bytes, status: int) -> BadPayload:
    listed = errors if isinstance(errors, list) else [errors]
    texts = [_message(entry) for entry in listed]
    more = f" (and {len(listed) - 1} more)" if len(listed) > 1 else ""
    if any(_NOT_PERSISTED.search(f"{text} {_code(entry)}") for text, entry in zip(texts, listed, strict=True)):
        return BadPayload("persisted_query", said(f"the persisted query is refused: {texts[0]}", status), body)
    return BadPayload("errors", said(f"GraphQL error: {texts[0]}{more}", status), body)


def _message(entry: Any) -> str:
    found = entry.get("message") if isinstance(entry, dict) else entry
    return excerpt((found if isinstance(found, str) else str(entry)).encode()) or "without a message"


def _code(entry: Any) -> str:
    extensions = entry.get("extensions") if isinstance(entry, dict) else None
    return str(extensions.get("code", "")) if isinstance(extensions, dict) else ""
