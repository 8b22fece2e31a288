"""What people may ask a search crawl to look for. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from menuwatch.operations.refusals import Unusable

MOST = 200
LONGEST = 100
"""Characters of one."""
_BLANKS = re.compile(r"\s+")
_NO_TEXT = re.compile(r"[\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""What nobody sees, or what turns the text beside it round. Joiners are letters' business, and stay."""


def checked(keywords: Sequence[str]) -> tuple[str, ...]:
    """The keywords as they are searched for: without blanks around and doubled ones within, each once whatever its case. Raises
    Unusable with the position (from 1) of the one that cannot be used."""
    if not keywords:
        raise Unusable("keywords", "name at least one keyword")
    if len(keywords) > MOST:
        raise Unusable(
            "keywords", f"there are {len(keywords):,} keywords; a job takes {MOST} at most: start several jobs"
        )
    kept: dict[str, str] = {}
    for place, given in enumerate(keywords, 1):
        keyword = _BLANKS.sub(" ", unicodedata.normalize("NFC", given.strip()))
        if not keyword:
            raise Unusable("keywords", f"keyword {place} of {len(keywords)} is empty")
        if _NO_TEXT.search(given) or any(
            unicodedata.category(sign) in ("Cc", "Cs", "Co", "Cn") for sign in given.strip()
        ):
            raise Unusable(
                "keywords", f"keyword {place} of {len(keywords)} holds a control character or one that is no text"
            )
        if len(keyword) > LONGEST:
            raise Unusable(
                "keywords",
                f"keyword {place} of {len(keywords)} has {len(keyword):,} characters; it takes {LONGEST} at most",
            )
        if not any(sign.isalnum() for sign in keyword):
            raise Unusable("keywords", f"keyword {place} of {len(keywords)} holds no letter and no digit")
        kept.setdefault(keyword.casefold(), keyword)
    return tuple(kept.values())
