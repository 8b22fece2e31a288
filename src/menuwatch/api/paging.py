"""Cursors: where the next page of a list starts, as an opaque text.

A cursor holds the sort values of a page's last row with its id as the tie-breaker, and a mark of the list it belongs to: name, order
and filters. Used with another list it is refused rather than answered with something odd.
"""

from __future__ import annotations

import base64
import binascii
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from menuwatch.api.problems import BadCursor

T = TypeVar("T")


def mark(name: str, *selection: Any) -> str:
    """The mark of a list: its name with order and filters."""
    text = msgspec.json.encode([name, *selection], order="deterministic")
    return blake2b(text, digest_size=6).hexdigest()


def encode(list_mark: str, *values: Any) -> str:
    """The cursor behind a row with those sort values."""
    return base64.urlsafe_b64encode(msgspec.json.encode([list_mark, values])).rstrip(b"=").decode()


def decode(cursor: str, list_mark: str, kind: type[T]) -> T:
    """The sort values of a cursor, a tuple of that type; raises BadCursor."""
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        found, values = msgspec.json.decode(data, type=tuple[str, msgspec.Raw])
        if found != list_mark:
            raise BadCursor(
                "this cursor belongs to another list: use it with the same path, order and filters that it was given for"
            )
        return msgspec.json.decode(values, type=kind)
    except (binascii.Error, msgspec.MsgspecError, ValueError) as error:
        raise BadCursor(
            "this is no cursor of ours: send `next` of a page exactly as it came, or no cursor for the first page"
        ) from error
