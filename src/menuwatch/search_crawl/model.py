"""Data model of search crawls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from menuwatch.search_crawl.protocols import UrlType
from menuwatch.search_crawl.rules import Pacing

_FORM = re.compile(
    r"crawl-([1-9][0-9]{0,17})-(search|pagination|product)-([1-9][0-9]{0,17})-([1-9][0-9]{0,3})", re.ASCII
)


class JobStatus(StrEnum):
    """Status of a search crawl."""

    RUNNING = "running"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class ItemStatus(StrEnum):
    """Status of one page of a search crawl."""

    PENDING = "pending"
    SUBMITTED = "submitted"
    COMPLETED = "completed"
    FAILED = "failed"


class Job(Struct, frozen=True, kw_only=True):
    """One row of `crawl_jobs`; 21_search_crawls.sql of the schema describes its columns."""

    id: int
    site: str
    provider: str
    status: JobStatus
    keywords: list[str]
    max_pages: int
    country: str | None
    pacing: Pacing
    unthrottled_since: datetime | None
    next_submit_after: datetime
    submitting_until: datetime | None
    next_submission_at: datetime | None
    created_at: datetime
    created_by: str | None
    completed_at: datetime | None
    cancelled_at: datetime | None


class NewJob(Struct, frozen=True, kw_only=True):
    """A job to start. `urls` are those of its searches, each once, and `searched` the keyword of each; the first of several keywords
    with the same URL."""

    site: str
    provider: str
    keywords: tuple[str, ...]
    urls: tuple[str, ...]
    searched: tuple[str, ...]
    max_pages: int
    pacing: Pacing
    country: str | None = None
    created_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Identifies an attempt at a page in orders and deliveries: `crawl-{job}-{type}-{item}-{attempt}`."""

    job_id: int
    url_type: UrlType
    item_id: int
    attempt: int

    def __str__(self) -> str:
        return f"crawl-{self.job_id}-{self.url_type}-{self.item_id}-{self.attempt}"


def parse_reference(text: str) -> Reference | None:
    """None for an invalid reference. Parsed strictly, since it comes from a provider."""
    if (match := _FORM.fullmatch(text)) is None:
        return None
    job, url_type, item, attempt = match.groups()
    return Reference(job_id=int(job), url_type=UrlType(url_type), item_id=int(item), attempt=int(attempt))


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One row of `crawl_queue`."""

    id: int
    job_id: int
    url: str
    url_type: UrlType
    keyword: str
    status: ItemStatus
    retry_count: int
    attempt: int

    @property
    def reference(self) -> Reference:
        """Reference of its current attempt."""
        return Reference(job_id=self.job_id, url_type=self.url_type, item_id=self.id, attempt=self.attempt)


class PendingDelivery(Struct, frozen=True, kw_only=True):
    """A delivery claimed for processing, with its page."""

    id: int
    item_id: int
    attempt: int
    tries: int
    ok: bool
    error: str | None
    html: bytes | None
    html_url: str | None
    job_id: int
    site: str
    url: str
    url_type: UrlType


PRIORITY = {UrlType.SEARCH: 1, UrlType.PAGINATION: 1, UrlType.PRODUCT: 2}
"""Pages that lead to products are submitted first."""
