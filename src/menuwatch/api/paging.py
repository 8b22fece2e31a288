"""Cursors: where the next page of a list starts, as an opaque text.

A cursor holds the sort values of a page's last row with its id as the tie-breaker, and a mark of the list it belongs to: name, order
and filters. Used with another list it is refused rather than answered with something odd.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Generic, TypeVar, get_origin

import msgspec
from fastapi import Request, Response

from menuwatch.api.inputs import PageQuery
from menuwatch.api.problems import BadCursor
from menuwatch.api.responses import page
from menuwatch.web import paging

T = TypeVar("T")
R = TypeVar("R")


def mark(name: str, *selection: Any) -> str:
    """The mark of a list: its name with order and filters."""
    text = msgspec.json.encode([name, *selection], order="deterministic")
    return blake2b(text, digest_size=6).hexdigest()


def encode(list_mark: str, *values: Any) -> str:
    """The cursor behind a row with those sort values."""
    return paging.encode(list_mark, values)


def decode(cursor: str, list_mark: str, kind: type[T]) -> T:
    """The sort values of a cursor, a tuple of that type; raises BadCursor."""
    try:
        own_mark, values = paging.decode(cursor, tuple[str, msgspec.Raw])
        if own_mark != list_mark:
            raise BadCursor(
                "this cursor belongs to another list: use it with the path, order and filters of the request that "
                "returned it"
            )
        return msgspec.json.decode(values, type=kind)
    except (paging.BadCursor, msgspec.MsgspecError) as error:
        raise BadCursor(
            "this is not a valid cursor: send `next` of a page unchanged, or no cursor for the first page"
        ) from error


class Keyset(Generic[T]):
    """The pages of one list, whose rows are ordered by `kind`: one value or a tuple of them. `selection`: the filters of the list."""

    def __init__(self, query: PageQuery, kind: type[T], name: str, *selection: Any) -> None:
        """Raises BadCursor for a cursor of another list."""
        self._mark = mark(name, *selection)
        self._size = query.limit
        self._is_tuple = get_origin(kind) is tuple
        self.after: T | None = None
        if query.cursor is not None:
            values: Any = decode(query.cursor, self._mark, kind if self._is_tuple else tuple[kind])  # type: ignore[valid-type]
            self.after = values if self._is_tuple else values[0]

    @property
    def limit(self) -> int:
        """Rows to read: one more than the page holds, to see whether another page follows."""
        return self._size + 1

    def cursor(self, key: Any) -> str | None:
        """The cursor of the page after a row with this key; None for None."""
        if key is None:
            return None
        return encode(self._mark, *key) if self._is_tuple else encode(self._mark, key)

    def page(self, request: Request, rows: Sequence[R], key: Callable[[R], T], **more: Any) -> Response:
        """One page of the rows that were read; `key` gives a row's sort values. `more`: further members of the page."""
        items = rows[: self._size]
        return page(request, items, self.cursor(key(items[-1])) if len(rows) > self._size else None, **more)
