"""Whether a payload is the whole menu or, replayed from a file, a part of it. Pure.

A part tells what it holds and nothing of what it does not: the products that it lacks have no miss. The payload's notes say so, for
the refresh that follows at once and for any later one.
"""

from __future__ import annotations

from collections.abc import Sequence

REPLAYED = "replayed from a file"
NOT_WHOLE = "a part of the menu: no miss is counted"


def is_whole(notes: Sequence[str]) -> bool:
    """Whether products that a payload with these notes lacks are missing from the store."""
    return NOT_WHOLE not in notes


def shortfall(*, products: int, total: int | None, pages: int, total_pages: int | None) -> str | None:
    """What part of a menu files hold, None where they hold all of it. `products` counts distinct ones; the totals are the menu's own
    word, None where it gives none."""
    if total is not None:
        return f"{products} of {total} products" if products < total else None
    if total_pages is not None and pages < total_pages:
        return f"{pages} of {total_pages} pages"
    return None
