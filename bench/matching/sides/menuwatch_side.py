"""Menuwatch, as `menuwatch match listings` groups a file."""

from __future__ import annotations

import msgspec
import side

from menuwatch import __version__
from menuwatch.matching.files import group_listings
from menuwatch.matching.model import Listing


def group(rows: side.type_rows) -> list[int]:
    return [one.group_id for one in group_listings(msgspec.convert(rows, list[Listing]))]


if __name__ == "__main__":
    side.serve(__version__, group)
