"""Visitors of the public site."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from menuwatch.api.schemas.common import Input, Text


def _country(text: str) -> str:
    code = text.strip().upper()
    if len(code) != 2 or not (code.isascii() and code.isalpha()):
        raise ValueError("must be a country's two letters (ISO 3166-1), for example US")
    return code


Country = Annotated[Text, AfterValidator(_country)]

_UNIQUES = "Daily uniques: visitors who are told apart within a day only."
_MEAN = "Daily uniques, on average over the days of the period. They cannot be summed: whoever comes again the next day is new."


class PeriodQuery(Input):
    """Which days."""

    since: date | None = Field(None, description="From this day on (UTC), as 2026-11-20; 30 days when left out.")
    until: date | None = Field(None, description="Before this day (UTC); with today when left out. 400 days at most.")


class PlacesQuery(PeriodQuery):
    """Which places."""

    by: Literal["country", "region", "city"] = Field("country", description="How finely places are told apart.")
    country: Country | None = Field(None, description="Only this country, by its two letters.")
    region: Text | None = Field(None, max_length=100, description="Only this region, by its name, as `Arizona`.")
    limit: int = Field(20, ge=1, le=200, description="Most places that are listed.")


class PagesQuery(PeriodQuery):
    """Which pages."""

    kind: Literal["product", "store", "brand"] | None = Field(None, description="Only pages of this kind.")
    limit: int = Field(20, ge=1, le=200, description="Most pages that are listed.")


class VisitorDay(BaseModel):
    """One day (UTC)."""

    day: date = Field(description="The day.")
    views: int = Field(description="Pages that were looked at.")
    daily_uniques: int = Field(description=_UNIQUES)
    views_without_place: int = Field(description="Views of which it is not known from where.")


class PageKind(BaseModel):
    """Views of one kind of page."""

    kind: str = Field(description="`home`, `search`, `product`, `store`, `brand` or `other`.")
    views: int = Field(description="Pages that were looked at.")
    share: float | None = Field(description="Of all views of the period.")
    daily_uniques_mean: float = Field(description=_MEAN)
    daily_arrivals_mean: float = Field(description="Visitors whose first page of a day was of this kind, on average.")


class Visitors(BaseModel):
    """A period as a whole, day by day, and by kind of page."""

    since: date = Field(description="First day (UTC).")
    until: date = Field(description="The day after the last one.")
    views: int = Field(description="Pages that were looked at, all days together.")
    daily_uniques_mean: float = Field(description=_MEAN)
    views_without_place: int = Field(description="Views of which it is not known from where.")
    share_without_place: float | None = Field(description="Their share of all views; null where there is none.")
    geography: str | None = Field(description="What places visitors now; null where GEOIP_DATABASE is not set.")
    days: list[VisitorDay] = Field(description="Every day of the period, also those without a visitor.")
    kinds: list[PageKind] = Field(description="By kind of page, most views first.")


class VisitorPlace(BaseModel):
    """Views from one place. A name that is null is not known, or not asked for (`by`)."""

    country: str | None = Field(description="Two letters (ISO 3166-1).")
    region: str | None = Field(description="In English.")
    city: str | None = Field(description="In English.")
    views: int = Field(description="Pages that were looked at.")
    share: float | None = Field(description="Of all views of the period.")
    daily_uniques_mean: float = Field(description=_MEAN)


class VisitorPlaces(BaseModel):
    """Where visitors were."""

    since: date = Field(description="First day (UTC).")
    until: date = Field(description="The day after the last one.")
    items: list[VisitorPlace] = Field(description="Most views first.")


class VisitedPage(BaseModel):
    """Views of one page."""

    kind: str = Field(description="`product`, `store` or `brand`.")
    page: str = Field(description="Which one: the last part of its address.")
    path: str = Field(description="Where it is on the public site.")
    views: int = Field(description="How often it was looked at.")
    daily_uniques_mean: float = Field(description=_MEAN)


class VisitedPages(BaseModel):
    """What was looked at."""

    since: date = Field(description="First day (UTC).")
    until: date = Field(description="The day after the last one.")
    items: list[VisitedPage] = Field(description="Most views first.")
