"""Cursors of pages: where the next page of a list begins, as an opaque text in its address."""

from __future__ import annotations

import base64
import binascii
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class BadCursor(Exception):
    """A text that is not a cursor of that list: its first page is shown instead."""


def encode(*values: Any) -> str:
    """The cursor behind a row with those sort values."""
    return base64.urlsafe_b64encode(msgspec.json.encode(values)).rstrip(b"=").decode()


def decode(cursor: str, kind: type[T]) -> T:
    """The sort values of a cursor, a tuple of that type; raises BadCursor."""
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(data, type=kind)
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        raise BadCursor from None
