"""Dutchie's own spellings; what all platforms' texts have in common is in `catalog.canon.text`."""

from __future__ import annotations

import re
from functools import lru_cache

from menuwatch.catalog.canon.text import clean as clean
from menuwatch.catalog.canon.text import describes as describes
from menuwatch.catalog.canon.text import enum as enum
from menuwatch.catalog.canon.text import label as label
from menuwatch.platforms.escapes import mend_escapes as mend_escapes


@lru_cache(maxsize=4096)
def effect_name(text: str) -> str:
    """`Pain-Relief`, `painRelief` and `Clear_Mind` in one spelling: `pain_relief`, `clear_mind`."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text.replace("\0", "").strip())
    return re.sub(r"[\s\-_]+", "_", spaced).lower()
