"""Search crawls as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from menuwatch.crawls.base import UrlType
from menuwatch.crawls.reference import Reference


class JobStatus(StrEnum):
    """Where a job is."""

    RUNNING = "running"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class ItemStatus(StrEnum):
    """Where one page of a job is."""

    PENDING = "pending"
    SUBMITTED = "submitted"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One row of `crawl_jobs`; migration 0023 says what its columns are."""

    id: int
    site: str
    provider: str
    status: JobStatus
    keywords: list[str]
    max_pages: int
    country: str | None
    mixing_since: datetime | None
    not_before: datetime
    asking_until: datetime | None
    next_submission_at: datetime | None
    created_at: datetime
    created_by: str | None
    completed_at: datetime | None
    cancelled_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to start. `urls` are those of its searches, each once, and `searched` the keyword of each: of several keywords with one
    address the first."""

    site: str
    provider: str
    keywords: tuple[str, ...]
    urls: tuple[str, ...]
    searched: tuple[str, ...]
    max_pages: int
    country: str | None = None
    created_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One row of `crawl_queue`, as those need it who work on it."""

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
        """Under which its present attempt goes out."""
        return Reference(job_id=self.job_id, url_type=self.url_type, item_id=self.id, attempt=self.attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """A delivery that was taken to be read, with what it is of."""

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
"""Whatever leads to products goes before them."""
