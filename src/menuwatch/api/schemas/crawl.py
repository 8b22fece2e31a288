"""Search crawls."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field, Strict, WithJsonSchema

from menuwatch.api.schemas.common import Amount, Input, Page, PageQuery, Search, Text, between
from menuwatch.crawls.base import UrlType
from menuwatch.crawls.model import ItemStatus, JobStatus
from menuwatch.operations.crawl_keywords import LONGEST, MOST
from menuwatch.operations.crawls import MAX_PAGES, PAGES_BOUNDS


class NewCrawl(Input):
    """A search crawl to start."""

    keywords: list[Text] = Field(
        description=f"What to search for: 1 to {MOST}, each of up to {LONGEST} characters. Doubled ones count once, whatever their "
        "case.",
    )
    site: Text | None = Field(None, max_length=100, description="The shop; the first there is where nothing is said.")
    provider: Text | None = Field(
        None,
        max_length=100,
        description="Who fetches the pages: `serpwatch`, where its token is set, or `identities`, our own workers. Left out: the "
        "first there is.",
    )
    max_pages: Annotated[
        int,
        Strict(),
        AfterValidator(between(*PAGES_BOUNDS)),
        WithJsonSchema({"type": "integer", "minimum": PAGES_BOUNDS[0], "maximum": PAGES_BOUNDS[1]}),
    ] = Field(MAX_PAGES, description="Pages of results for each keyword.")
    country: Text | None = Field(
        None,
        min_length=2,
        max_length=2,
        description="From where the shop is looked at, in two letters; the provider's choice where left out.",
    )


class CrawlQuery(PageQuery):
    """Which crawls."""

    status: JobStatus | None = Field(None, description="Only those that are so.")


class CrawlItemQuery(PageQuery):
    """Which pages."""

    status: ItemStatus | None = Field(None, description="Only those that are so.")
    url_type: UrlType | None = Field(None, description="Only those of this kind.")
    keyword: Search | None = Field(None, description="Only those that this keyword led to.")


class CrawlAttemptQuery(PageQuery):
    """How they are walked."""


class CrawlProductQuery(PageQuery):
    """Which products."""

    keyword: Search | None = Field(None, description="Only those that this keyword led to.")
    search: Search | None = Field(None, description="Only those whose name holds this text.")


class Crawl(BaseModel):
    """A search crawl, and how far it is."""

    id: int = Field(description="Number of the crawl.")
    site: str = Field(description="The shop.")
    provider: str = Field(description="Who fetches its pages.")
    status: JobStatus = Field(description="Where it is.")
    keywords: list[str] = Field(description="What is searched for.")
    max_pages: int = Field(description="Pages of results for each keyword.")
    country: str | None = Field(description="From where the shop is looked at.")
    mixing_since: datetime | None = Field(
        description="From when on pages are submitted without waiting for more to choose from."
    )
    next_submission_at: datetime | None = Field(description="When it is looked at next; null where it has ended.")
    created_at: datetime = Field(description="When it was started.")
    created_by: str | None = Field(description="By whom.")
    completed_at: datetime | None = Field(description="When nothing was left to do.")
    cancelled_at: datetime | None = Field(description="When it was cancelled.")
    pages: int = Field(description="Pages that are known so far.")
    pending: int = Field(description="Of these, those that wait.")
    submitted: int = Field(description="Those that were ordered and have not come.")
    completed: int = Field(description="Those that were read.")
    failed: int = Field(description="Those that were given up.")
    products: int = Field(description="Products that were found.")
    progress: float = Field(description="Share of the pages known so far that have ended, 0 to 1.")
    seconds_left: int | None = Field(
        description="Seconds at the usual pace for the pages that are left; retries and pages still to be found not counted."
    )


class CrawlPage(Page[Crawl]):
    """One page of crawls."""


class CrawlKind(BaseModel):
    """Pages of one kind."""

    url_type: UrlType = Field(description="The kind.")
    pages: int = Field(description="How many.")
    pending: int = Field(description="Those that wait.")
    submitted: int = Field(description="Those that were ordered and have not come.")
    completed: int = Field(description="Those that were read.")
    failed: int = Field(description="Those that were given up.")
    removed: int = Field(description="Products that are no longer sold, by their pages.")


class CrawlKeyword(BaseModel):
    """Pages that one keyword led to first."""

    keyword: str = Field(description="The keyword.")
    pages: int = Field(description="How many.")
    product_pages: int = Field(description="Of these, products.")
    completed: int = Field(description="Those that were read.")
    failed: int = Field(description="Those that were given up.")


class CrawlAttempts(BaseModel):
    """Submissions in all."""

    submissions: int = Field(description="How many were made.")
    retries: int = Field(description="Of these, second and later ones of a page.")
    good: int = Field(description="Those that brought a page that could be read.")
    bad: int = Field(description="Those that did not.")
    first_at: datetime | None = Field(description="When the first was made.")
    last_at: datetime | None = Field(description="When the last was made.")
    mean_wait_seconds: float | None = Field(description="Mean time from submission to page, of good ones, seconds.")


class CrawlError(BaseModel):
    """Why pages failed, or wait for another try."""

    cause: str = Field(description="The same for failures of one kind.")
    error: str = Field(description="What went wrong, without what differs from page to page.")
    pages: int = Field(description="How many pages.")
    failed: int = Field(description="Of these, given up.")


class CrawlSlice(BaseModel):
    """Submissions of a slice of time."""

    at: datetime = Field(description="Where it begins.")
    submissions: int = Field(description="How many.")
    good: int = Field(description="Of these, those that brought their page.")
    bad: int = Field(description="Those that did not.")


class CrawlDetail(Crawl):
    """A search crawl with its figures."""

    by_type: list[CrawlKind] = Field(description="By kind of page.")
    by_keyword: list[CrawlKeyword] = Field(description="By keyword.")
    attempts: CrawlAttempts = Field(description="Submissions.")
    errors: list[CrawlError] = Field(description="Why pages failed or wait for another try, the most first.")
    slice_seconds: int = Field(description="Length of a slice of `timeline`, seconds.")
    timeline: list[CrawlSlice] = Field(description="Submissions over time.")


class CrawlItem(BaseModel):
    """One page of a crawl."""

    id: int = Field(description="Number of the page.")
    url: str = Field(description="Its address.")
    url_type: UrlType = Field(description="What it is.")
    keyword: str = Field(description="The keyword that led to it first.")
    page: int | None = Field(description="Of the results, which; null for products.")
    priority: int = Field(description="1 goes before 2.")
    status: ItemStatus = Field(description="Where it is.")
    retry_count: int = Field(description="Retries that were used, of three.")
    attempt: int = Field(description="Submissions in all.")
    next_attempt_at: datetime = Field(description="Not submitted before.")
    created_at: datetime = Field(description="When it was found.")
    submitted_at: datetime | None = Field(description="When it was submitted last.")
    deadline_at: datetime | None = Field(description="Until when it must come.")
    completed_at: datetime | None = Field(description="When it ended.")
    error_message: str | None = Field(description="What went wrong last.")
    parent_id: int | None = Field(description="The page that led to it.")
    found: int | None = Field(description="Addresses on it that were new.")
    removed: bool = Field(description="Whether it says that the product is no longer sold.")


class CrawlItemPage(Page[CrawlItem]):
    """One page of pages."""


class CrawlAttempt(BaseModel):
    """One submission."""

    submitted_at: datetime = Field(description="When it was made.")
    item_id: int = Field(description="Number of the page.")
    attempt: int = Field(description="Which of the page's submissions.")
    url: str = Field(description="The page's address.")
    url_type: UrlType = Field(description="What the page is.")
    keyword: str = Field(description="The keyword that led to it first.")
    request_id: str | None = Field(description="What the provider calls it.")
    ended_at: datetime | None = Field(description="When it ended; null while it is under way.")
    ok: bool | None = Field(description="Whether it brought the page; null where that did not matter any more.")
    error: str | None = Field(description="What went wrong.")
    path: str | None = Field(description="Where its page lies below the storage root.")


class CrawlAttemptPage(Page[CrawlAttempt]):
    """One page of submissions."""


class CrawledProduct(BaseModel):
    """A product that a search crawl found."""

    id: int = Field(description="Number of the product.")
    job_id: int = Field(description="Number of the crawl.")
    site_product_id: str = Field(description="What the shop calls it.")
    keyword: str = Field(description="The keyword that led to it first.")
    name: str = Field(description="Its name.")
    url: str = Field(description="Its page.")
    price_min: Amount | None = Field(description="Lowest price.")
    price_max: Amount | None = Field(description="Highest price.")
    currency: str = Field(description="Of the prices.")
    weight_g: Amount | None = Field(description="Weight in grams, packed.")
    listed: int | None = Field(description="Shops that have it on offer, by the site's own count.")
    score: Amount = Field(
        description="How promising it is, 0 to 100: 40 points for demand (`listed`), 30 for lightness, 15 for one price, 15 for "
        "variants that have both price and weight."
    )
    images: list[str] = Field(description="Addresses of pictures.")
    seen_at: datetime = Field(description="When its page was read.")
    variant_count: int = Field(description="Forms in which it is sold.")


class CrawledProductPage(Page[CrawledProduct]):
    """One page of products."""


class CrawledVariant(BaseModel):
    """One form in which a product is sold."""

    variant_id: str = Field(description="What the shop calls it.")
    sku: str | None = Field(description="Its stock keeping unit.")
    name: str | None = Field(description="Its name.")
    price: Amount | None = Field(description="Its price.")
    weight_g: Amount | None = Field(description="Its weight in grams, packed.")


class CrawledProductDetail(CrawledProduct):
    """A product with its variants."""

    variants: list[CrawledVariant] = Field(description="In the order of its page.")


class CrawlRetried(BaseModel):
    """What retrying did."""

    pages: int = Field(description="Pages that were put back.")
    job: Crawl = Field(description="The crawl.")


class WebhookTaken(BaseModel):
    """What became of the results that a webhook brought."""

    taken: int = Field(description="Kept; they are read in a moment.")
    ignored: int = Field(description="Not needed any more: the page has come, or the crawl has ended.")
    unknown: int = Field(description="Of pages that nobody ordered.")
