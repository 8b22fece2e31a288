"""Which product an item is: `id`, else `_id`.

The one place that decides it, for items that are only told apart and for those that are read: were the two to differ, a
product would be stored under one id and looked for under another.
"""

from __future__ import annotations

from typing import Any

import msgspec

from menuwatch.platforms import lenient
from menuwatch.platforms.items import named_by


class Ids(msgspec.Struct, gc=False):
    """What an item says of which product it is."""

    id: str | None = None
    _id: str | None = None

    def chosen(self) -> str | None:
        """The product id, None where it has none that can be read."""
        return chosen(self.id, self._id)


_decoder = msgspec.json.Decoder(Ids)


def chosen(*candidates: Any) -> str | None:
    """The first that is a text and, without NUL (which no column takes), not empty."""
    for candidate in candidates:
        if isinstance(candidate, str):
            name = candidate.replace("\0", "") if "\0" in candidate else candidate
            if name:
                return name
    return None


def of_plain(plain: dict[str, Any]) -> str | None:
    """The product id of an item that was read leniently."""
    return chosen(*(lenient.writable(entry) for entry in (plain.get("id"), plain.get("_id")) if isinstance(entry, str)))


identity = named_by(_decoder, Ids.chosen, of_plain)
"""The product id of a raw item, None where it has none that can be read."""
