"""What the screens of the catalogue draw and list, from values alone: charts, strips and differences."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from menuwatch.archive.diff import Compared
from menuwatch.archive.store import Payload
from menuwatch.catalog.diff import Change, Item, MenuDiff
from menuwatch.catalog.history import Gap, PriceSeries, PriceStep
from menuwatch.dashboard.charts.timelines import draw_crawls, draw_outcomes
from menuwatch.dashboard.pages import payload_diff as menu_diff
from menuwatch.dashboard.pages.products import potency_chart, price_chart
from menuwatch.stores.service import Crawl

START = datetime(2026, 3, 1, tzinfo=UTC)


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def step(
    start: float,
    end: float | None,
    price: int,
    special: int | None = None,
    *,
    stock: bool | None = True,
    listed: bool = True,
) -> PriceStep:
    return PriceStep(
        start=at(start), end=None if end is None else at(end), regular=Decimal(price), listed=listed, in_stock=stock,
        special=None if special is None else Decimal(special),
    )  # fmt: skip


def drawn(series: PriceSeries, now: datetime) -> list[tuple[float, float | None, float | None, float | None]]:
    """(hours since the start, usual, price, out of stock) of each point."""
    chart = price_chart(series, now)
    usual, costs, out = (one.values for one in chart.series)
    hours = [round((one - START).total_seconds() / 3600, 2) for one in chart.times]
    return list(zip(hours, usual, costs, out, strict=True))


def test_a_chart_of_nothing_is_empty() -> None:
    assert drawn(PriceSeries(steps=[], gaps=[], cut=False), at(5)) == []


def test_a_price_lasts_until_the_next_one_and_until_now() -> None:
    found = drawn(PriceSeries(steps=[step(0, 4, 10), step(8, None, 12, 9)], gaps=[], cut=False), at(20))
    assert found == [(0, 10, 10, None), (8, 10, 10, None), (8, 12, 9, None), (20, 12, 9, None), (20, 12, 9, None)]


def test_prices_in_canada_are_in_canadian_dollars() -> None:
    series = PriceSeries(steps=[step(0, None, 10)], gaps=[], cut=False)
    for currency, text in (("USD", "$10.00"), ("CAD", "CA$10.00")):
        assert {values[1] for _, values in price_chart(series, at(5), currency).rows} == {text}


def test_nothing_is_drawn_where_nobody_looked() -> None:
    series = PriceSeries(
        steps=[step(0, 4, 10), step(12, None, 10)], gaps=[Gap(from_=at(4), to=at(12), reason="unobserved")], cut=False
    )
    found = drawn(series, at(16))
    between = [costs for hours, _, costs, _ in found if 4.0002 < hours < 12]
    assert (4, 10, 10, None) in found, "what was seen last is drawn up to there"
    assert None in {costs for hours, _, costs, _ in found if 4 <= hours < 4.01}
    assert all(costs is None for costs in between)
    assert found[-1][2] == 10


def test_a_gap_that_lasts_ends_the_line() -> None:
    series = PriceSeries(steps=[step(0, 4, 10)], gaps=[Gap(from_=at(4), to=None, reason="absent")], cut=False)
    assert drawn(series, at(16))[-1] == (16, None, None, None)


def test_out_of_stock_is_a_line_of_its_own_and_gone_is_none() -> None:
    found = drawn(
        PriceSeries(steps=[step(0, 4, 10, stock=False), step(8, None, 10, listed=False)], gaps=[], cut=False), at(9)
    )
    assert found[0] == (0, 10, 10, 10)
    assert found[-1] == (9, None, None, None)


def test_potency_is_of_percents_alone() -> None:
    def state(hours: float, lo: float, hi: float | None, unit: str, present: bool = True) -> dict[str, Any]:
        return {"from": at(hours), "present": present, "thc": {"lo": lo, "hi": hi, "unit": unit}, "cbd": None}

    assert potency_chart([], at(1)) is None
    assert potency_chart([state(0, 10, None, "MILLIGRAMS")], at(1)) is None
    found = potency_chart([state(0, 18, 20.5, "PERCENTAGE"), state(2, 19, None, "PERCENTAGE")], at(4))
    assert found is not None
    assert [list(one.values) for one in found.series] == [[0.205, 0.19, 0.19], [None, None, None]]


def crawl(hours: float, outcome: str = "ok", products: int | None = 40, reason: str | None = None) -> Crawl:
    return Crawl(at=at(hours), outcome=outcome, number=int(hours) + 1, products=products, bytes=1, reason=reason)


def test_a_strip_has_a_bar_for_each_crawl_and_a_gap_where_more_than_one_was_missed() -> None:
    crawls = [crawl(0), crawl(4), crawl(16), crawl(20, "failed", None, 'an <b>"error"</b>')]
    found = draw_crawls(crawls, now=at(22), interval=timedelta(hours=4), address="/menus/admin")
    assert found.count("<a ") == 4
    assert found.count('class="gap"') == 1
    assert "Not observed for 12 h" in found
    assert 'href="/menus/admin/payloads/1"' in found
    assert 'href="/menus/admin/tasks/21"' in found
    assert "<b>" not in found
    assert "style=" not in found
    assert draw_crawls([], now=at(1), interval=timedelta(hours=4)) == ""


def test_one_crawl_of_nothing_is_a_strip_too() -> None:
    found = draw_crawls([crawl(0, products=0)], now=at(0), interval=timedelta(hours=4))
    assert "NaN" not in found
    assert found.count("<a ") == 1


def test_outcomes_say_how_many_went_well() -> None:
    assert 'aria-label="Of the last 3 crawls, 2 succeeded, 1 failed"' in draw_outcomes([False, True, True])
    assert 'aria-label="Of the last 1 crawl, 1 succeeded"' in draw_outcomes([True])
    assert draw_outcomes([]) == ""


def payload(number: int, products: int) -> Payload:
    return Payload(
        id=number,
        task_id=None,
        dispensary_id=1,
        platform="dutchie",
        status="ok",
        reason=None,
        product_count=products,
        total_count=None,
        page_count=1,
        is_first=False,
        is_partial=False,
        fetched_at=START,
        path="p",
        bytes=1,
        raw_bytes=1,
        sha256="",
        content_sha256="",
        notes=[],
        applied_at=None,
        released_at=None,
        created_at=START,
    )


def compared(*, added: int = 0, prices: tuple[Change, ...] = (), stock: tuple[Change, ...] = ()) -> Compared:
    items = tuple(
        Item(provider_product_id=str(n), name="n", brand_name=None, price_rec=None, stock_status="oos")
        for n in range(added)
    )
    diff = MenuDiff(added=items, removed=(), price_changes=prices, stock_changes=stock)
    return Compared(older=payload(1, 40), newer=payload(2, 40), diff=diff)


def test_differences_are_told_by_field() -> None:
    before = (("1g", Decimal(10), None, Decimal(9), None), ("7g", Decimal(50), None, None, None))
    after = (("1g", Decimal(12), Decimal(8), Decimal(9), None),)
    (row,) = menu_diff.price_rows(
        compared(prices=(Change(provider_product_id="a", name="A", before=before, after=after),))
    )
    assert [(one.name, one.before, one.after) for one in row.fields] == [
        ("1g, recreational", 10, 12),
        ("1g, recreational special", None, 8),
        ("7g, recreational", 50, None),
        ("option 7g", "listed", None),
    ]


def test_stock_is_told_in_words() -> None:
    before, after = ("in_stock", (("1g", "in_stock", 30, True),)), ("oos", (("1g", "oos", 0, False),))
    (row,) = menu_diff.stock_rows(
        compared(stock=(Change(provider_product_id="a", name="A", before=before, after=after),))
    )
    assert [(one.name, one.before, one.after) for one in row.fields] == [
        ("status", "in stock", "out of stock"),
        ("1g, left", "30+", "0"),
    ]


def test_a_third_of_a_menu_is_a_large_change() -> None:
    assert not menu_diff.is_large(compared(added=12))
    assert menu_diff.is_large(compared(added=13))
