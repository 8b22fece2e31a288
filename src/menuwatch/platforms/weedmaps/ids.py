"""What identifies a menu item, in either shape of a menu."""

from __future__ import annotations

import msgspec

from menuwatch.platforms.numbers import Identifier, id_text

__all__ = ["Identifier", "Ids", "id_text"]


class Ids(msgspec.Struct, gc=False):
    """Fields that identify an item's product."""

    id: Identifier | None = None

    def product_id(self) -> str | None:
        """The id as text."""
        return id_text(self.id)
