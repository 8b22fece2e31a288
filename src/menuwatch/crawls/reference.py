"""The id under which an order goes to a provider and its page comes back: `crawl-{job}-{type}-{item}-{attempt}`.

Ids are numbers, so no part of it holds the separator. What a provider sends back is read strictly: anything else is nobody's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from menuwatch.crawls.base import UrlType

_FORM = re.compile(
    r"crawl-([1-9][0-9]{0,17})-(search|pagination|product)-([1-9][0-9]{0,17})-([1-9][0-9]{0,3})", re.ASCII
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Which attempt at which item of which job."""

    job_id: int
    url_type: UrlType
    item_id: int
    attempt: int

    def __str__(self) -> str:
        return f"crawl-{self.job_id}-{self.url_type}-{self.item_id}-{self.attempt}"


def parse(text: str) -> Reference | None:
    """The reference that `text` spells, None where it spells none."""
    if (match := _FORM.fullmatch(text)) is None:
        return None
    job, url_type, item, attempt = match.groups()
    return Reference(job_id=int(job), url_type=UrlType(url_type), item_id=int(item), attempt=int(attempt))
