"""Filters of the analytics screens: what can be chosen, and what was."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from msgspec.json import Decoder

from menuwatch.analytics.reports import Coverage
from menuwatch.analytics.service import (
    ALL,
    UNKNOWN,
    CheapestGroup,
    DayGroup,
    Report,
    ReportFilter,
    SpecialGroup,
    StockGroup,
    read_report,
)
from menuwatch.catalog.taxonomy.categories import CATEGORIES
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Connection
from menuwatch.geo.states import parse_state
from menuwatch.web.forms import FormInput

_decode_coverage = Decoder(Coverage).decode
_MOST_STATES = 200
CATEGORY_CHOICES = [
    *((name, name.replace("_", " ").capitalize()) for name in sorted(CATEGORIES)), (UNKNOWN, "Unknown")
]  # fmt: skip


async def list_states(conn: Connection, chosen: str = ALL) -> list[tuple[str, str]]:
    """All states together, those with stores, and the chosen one, to choose from."""
    return state_choices(await read_coverage(conn), chosen)


async def read_coverage(conn: Connection) -> dict[str, Coverage]:
    """The coverage of all states together and of each with stores."""
    rows = (await read_report(conn, Report.COVERAGE, ReportFilter(), limit=_MOST_STATES)).rows
    return {ALL if one.all_states else one.state or UNKNOWN: _decode_coverage(one.coverage) for one in rows}


def state_choices(covered: Iterable[str], chosen: str = ALL) -> list[tuple[str, str]]:
    """`covered` and the chosen state after all of them together, with their labels."""
    names = {ALL: "All states", UNKNOWN: "Unknown"}
    return [(one, names.get(one, one)) for one in dict.fromkeys((ALL, *covered, chosen))]


def parse_scope(form: FormInput) -> str:
    """The state of a filter, ALL or UNKNOWN, which the form then has as it is written; an error goes to the form."""
    text = form.text("state") or ALL
    if (word := text.lower()) in (ALL, UNKNOWN):
        scope = word
    else:
        try:
            scope = parse_state(text)
        except Refused as error:
            form.add_error("state", str(error))
            return ALL
    form.values = {**form.values, "state": scope}
    return scope


def parse_category(form: FormInput, *more: str) -> str | None:
    """The category of a filter, or one of `more`; None for none, and with an error in the form."""
    return form.parse_choice("category", [*(name for name, _ in CATEGORY_CHOICES), *more])


OF_CATEGORY = frozenset({
    Report.PRICES, Report.DISCOUNTS, Report.STOCK, Report.OUT_PRODUCTS, Report.DISTRIBUTION, Report.BRAND_DISTRIBUTION,
    Report.DISPERSION, Report.GAPS, Report.CHEAPEST, Report.SPECIALS, Report.SPECIAL_GROUPS, Report.SHRINKFLATION,
    Report.MARKET_DAYS,
})  # fmt: skip
OF_BRAND = frozenset({
    Report.OUT_PRODUCTS, Report.DISTRIBUTION, Report.BRAND_DISTRIBUTION, Report.DISPERSION, Report.GAPS, Report.CHEAPEST,
    Report.SPECIALS, Report.SPECIAL_GROUPS, Report.SHRINKFLATION, Report.BRAND_DAYS,
})  # fmt: skip
OF_PRODUCT = frozenset({Report.DISTRIBUTION, Report.DISPERSION, Report.GAPS})
OF_DAYS = frozenset({Report.DAYS, Report.MARKET_DAYS, Report.BRAND_DAYS})
"""Reports that can be filtered by category, by brand, by canonical product, and by day."""


_FILTERS = {
    "category": OF_CATEGORY, "brand": OF_BRAND, "canonical_product": OF_PRODUCT, "from": OF_DAYS, "to": OF_DAYS,
}  # fmt: skip


def parse_filter(report: Report, form: FormInput) -> ReportFilter:
    """The filter of a report; errors go to the form."""
    for name, reports in _FILTERS.items():
        if report not in reports and form.text(name) is not None:
            form.add_error(name, "this report cannot be filtered by it")
    category, brand = parse_category(form), form.text("brand")
    where = _in_state(report, parse_scope(form))
    if report in OF_DAYS:
        first, last = form.parse_date("from"), form.parse_date("to")
        if first is not None and last is not None and last < first:
            form.add_error("to", f"{last} is before the first day, {first}")
        where = replace(where, since=first, until=last and last + timedelta(days=1))
    if report in OF_PRODUCT:
        where = replace(where, canonical_product=form.parse_int("canonical_product", low=1, high=2**63 - 1))
    if report is Report.MARKET_DAYS:
        category = category or ALL
    if report is Report.CHEAPEST and (category or brand):
        where = replace(where, by=CheapestGroup.BRAND if brand else CheapestGroup.CATEGORY)
    if report is Report.SPECIAL_GROUPS and (category or brand):
        where = replace(where, by=SpecialGroup.BRAND if brand else SpecialGroup.CATEGORY)
    return replace(
        where,
        category=category if report in OF_CATEGORY else None,
        brand=brand if report in OF_BRAND else None,
    )


def _in_state(report: Report, state: str) -> ReportFilter:
    """All states are rows of their own where a report has such, and else all rows."""
    every = state == ALL
    match report:
        case Report.STOCK:
            return ReportFilter(
                by=StockGroup.CATEGORY if every else StockGroup.STATE_CATEGORY, state=None if every else state
            )
        case Report.DAYS:
            return ReportFilter(by=DayGroup.ALL if every else DayGroup.STATE, state=None if every else state)
        case (
            Report.PRICES
            | Report.DISCOUNTS
            | Report.DISTRIBUTION
            | Report.BRAND_DISTRIBUTION
            | Report.DISPERSION
            | Report.GAPS
            | Report.SPECIAL_GROUPS
            | Report.MARKET_DAYS
            | Report.BRAND_DAYS
        ):
            return ReportFilter(state=state)
        case _:
            return ReportFilter(state=None if every else state)
