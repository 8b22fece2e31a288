"""Which product an item is: its `id`, a number that is told as text."""

from __future__ import annotations

from typing import Any

import msgspec

from menuwatch.platforms import lenient
from menuwatch.platforms.items import named_by


class Ids(msgspec.Struct, gc=False):
    """What an item says of which product it is."""

    id: int | str | None = None


_decoder = msgspec.json.Decoder(Ids)


def named(value: Any) -> str | None:
    """An id as text, None for what is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return str(value)
    return (value.replace("\0", "") or None) if isinstance(value, str) else None


def of_plain(plain: dict[str, Any]) -> str | None:
    """The product id of an item that was read leniently."""
    return named(lenient.writable(plain.get("id")))


identity = named_by(_decoder, lambda ids: named(ids.id), of_plain)
"""The product id of a raw item, None where it has none that can be read."""
