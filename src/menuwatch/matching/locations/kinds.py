"""Which licences are of shops, and which have ended, by the words of the registers. Pure."""

from __future__ import annotations

import re

_RETAIL = re.compile(
    r"retail|dispensar|\bstores?\b|provisioning|medical marijuana center|treatment center", re.IGNORECASE
)
_NOT_RETAIL = re.compile(r"deliver|couri|transport|wholesale|pre-certif", re.IGNORECASE)

ENDED = r"\m(expired|revoked|surrendered|closed|inactive|cancell?ed|suspended|terminated|denied|withdrawn|void|not active)\M"
"""PostgreSQL pattern of the words for a licence that no longer holds."""


def is_retail(kind: str | None) -> bool:
    """Whether a licence of this kind is for a shop that sells to consumers. A register without kinds is taken to list shops."""
    kind = (kind or "").strip()
    return not kind or (_RETAIL.search(kind) is not None and _NOT_RETAIL.search(kind) is None)
