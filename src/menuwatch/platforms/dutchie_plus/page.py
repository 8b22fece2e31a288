"""One page of products: `{"success": true, "data": {"products_list": [...], "products_count": 101, "prods_per_page": 20, ...}}`.

The HTML that comes beside the products repeats them and is not read.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from menuwatch.core.errors import BadPayload
from menuwatch.platforms.envelope import decode, whole

_LAST = re.compile(r"/\s*(\d{1,6})\s*$")


class _Data(msgspec.Struct):
    products_list: list[msgspec.Raw]
    products_count: Any = None
    prods_per_page: Any = None
    pagination_show_current_page_text: Any = None


class _Answer(msgspec.Struct):
    data: _Data


_decoder = msgspec.json.Decoder(_Answer)


def split(body: bytes) -> list[msgspec.Raw]:
    """The raw items of a page that has some; raises BadPayload of kind html, truncated, schema, and empty where it has none."""
    items = decode(body, _decoder).data.products_list
    if not items:
        raise BadPayload("empty", "the menu has no products: data.products_list is []", body)
    return items


def totals(body: bytes) -> tuple[int | None, int | None]:
    """(products, pages) of the list that this page is of, None where it does not say. The pages stand in "Page 1 / 6"."""
    data = decode(body, _decoder).data
    total, size = whole(data.products_count), whole(data.prods_per_page)
    text = data.pagination_show_current_page_text
    match = _LAST.search(text) if isinstance(text, str) else None
    if match:
        return total, int(match[1])
    return total, -(-total // size) if total is not None and size else None
