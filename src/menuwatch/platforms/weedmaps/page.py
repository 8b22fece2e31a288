"""One page of a menu: `{"meta": {"page", "per_page", "total"}, "data": [items]}`, and a page of a list of stores:
`{"meta": {"total_listings"}, "data": {"listings": [records]}}`."""

from __future__ import annotations

from typing import Any

import msgspec

from menuwatch.core import strict
from menuwatch.core.errors import BadPayload
from menuwatch.platforms.envelope import decode, said, whole
from menuwatch.platforms.walk import Page, Survey
from menuwatch.platforms.weedmaps.identity import Ids, identity, named


class _Meta(msgspec.Struct, gc=False):
    page: Any = None
    per_page: Any = None
    total: Any = None
    total_listings: Any = None


class _Menu(msgspec.Struct):
    meta: _Meta
    data: list[msgspec.Raw] | None


class _Plain(msgspec.Struct):
    """A page without anything odd in it: nearly all are."""

    meta: _Meta
    data: list[Ids]


class _Listings(msgspec.Struct):
    listings: list[msgspec.Raw] | None = None
    listing: msgspec.Raw = msgspec.Raw()


class _Stores(msgspec.Struct):
    data: _Listings | None = None
    meta: _Meta | None = None


_menu = msgspec.json.Decoder(_Menu)
_plain = strict.Decoder(_Plain)
_stores = msgspec.json.Decoder(_Stores)


def survey(body: bytes, status: int = 200) -> Survey:
    """`read`, without the items: one walk over a page that has nothing odd in it. Raises as `read` does."""
    try:
        answer = _plain.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return read(body, status).survey(identity)
    return Survey(tuple([named(item.id) for item in answer.data]), *_totals(answer.meta), strict=True)


def read(body: bytes, status: int = 200) -> Page:
    """The page in a body; an empty one is a page as well. Raises BadPayload of kind html, truncated, schema or no_data."""
    answer = decode(body, _menu, status)
    if answer.data is None:
        raise BadPayload("no_data", said("the answer has no menu: data is null", status), body)
    return Page(answer.data, *_totals(answer.meta))


def _totals(meta: _Meta) -> tuple[int | None, int | None]:
    """(products, pages) of the whole menu."""
    total, size = whole(meta.total), whole(meta.per_page)
    return total, -(-total // size) if total is not None and size else None


def split(body: bytes) -> list[msgspec.Raw]:
    """The raw items of a page that has some; raises BadPayload as `read` does, and of kind empty where it has none."""
    page = read(body)
    if not page.items:
        said_total = f", meta.total is {page.total_count}" if page.total_count is not None else ""
        raise BadPayload("empty", f"the menu has no products: data is []{said_total}", body)
    return page.items


def read_stores(body: bytes, status: int = 200) -> list[msgspec.Raw]:
    """The raw records of a listing answer, of one store or of many. Raises BadPayload as `read` does."""
    data = decode(body, _stores, status).data
    if data is not None and data.listings is not None:
        return data.listings
    if data is not None and bytes(data.listing).startswith(b"{"):
        return [data.listing]
    raise BadPayload("no_data", said("the answer has no stores: data.listings is missing or null", status), body)
