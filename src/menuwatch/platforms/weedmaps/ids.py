"""What identifies a menu item, in either shape of a menu."""

from __future__ import annotations

import msgspec

Identifier = int | str


def id_text(value: object) -> str | None:
    """An id, a number or a text, as text; None if it is invalid."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return str(value)
    return (value.replace("\0", "") or None) if isinstance(value, str) else None


class Ids(msgspec.Struct, gc=False):
    """Fields that identify an item's product."""

    id: Identifier | None = None

    def product_id(self) -> str | None:
        """The id as text."""
        return id_text(self.id)
