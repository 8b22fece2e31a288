"""The price chart of the public site: steps, gaps, times and figures, from values alone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from menuwatch.site import chart
from menuwatch.storefront.price_history import PriceLine, State, Step, cheapest

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)


def steps(*parts: tuple[float, float, State, int | None, int | None]) -> list[Step]:
    """Steps by (first day, last day, state, price, struck price), in days before NOW."""
    return [
        Step(
            start=NOW - timedelta(days=start),
            end=NOW - timedelta(days=end),
            state=state,
            price=price,
            regular=regular,
        )
        for start, end, state, price, regular in parts
    ]


def drawn(
    *parts: tuple[float, float, State, int | None, int | None], days: int | None = 90, zone: str = "UTC"
) -> chart.Chart:
    found = chart.draw(
        [("Alpha", PriceLine(steps=steps(*parts)))],
        since=None if days is None else NOW - timedelta(days=days),
        now=NOW,
        zone=ZoneInfo(zone),
    )
    assert found is not None
    return found


def points(path: str) -> list[list[tuple[float, float]]]:
    """The corners of each unbroken part of a path of M, H and V."""
    parts: list[list[tuple[float, float]]] = []
    for command, numbers in re.findall(r"([A-Z])([^A-Z]*)", path):
        values = [float(number) for number in numbers.split()]
        if command == "M":
            parts.append([(values[0], values[1])])
        elif command == "H":
            parts[-1].append((values[0], parts[-1][-1][1]))
        else:
            assert command == "V"
            parts[-1].append((parts[-1][-1][0], values[0]))
    return parts


class TestSteps:
    def test_a_price_is_level_until_it_changes_at_once(self) -> None:
        (corners,) = points(drawn((10, 6, "offered", 4000, None), (6, 0, "offered", 3000, None)).lines[0].path)
        # 656 pixels for ten days: the change is after four of them.
        assert [at for at, _ in corners] == [52, 314.4, 314.4, 708]
        (_, first), (_, second), (_, third), (_, fourth) = corners
        assert (first, third) == (second, fourth)
        assert first < third

    def test_hours_apart_makes_no_slope(self) -> None:
        path = drawn(
            (2, 1.9, "offered", 4000, None), (1.9, 1.7, "offered", 3500, None), (1.7, 0, "offered", 4200, None)
        ).lines[0].path  # fmt: skip
        assert set(re.findall("[A-Za-z]", path)) == {"M", "H", "V"}

    def test_the_struck_price_pauses_with_the_special(self) -> None:
        line = drawn((9, 7, "offered", 3000, 4000), (7, 4, "offered", 4000, None), (4, 0, "offered", 3200, 4000)).lines[
            0
        ]
        first, second = points(line.regular)
        # 656 pixels for nine days: the special pauses from the end of the second to the end of the fifth.
        assert (first[0][0], first[-1][0]) == (52, 197.8)
        assert (second[0][0], second[-1][0]) == (416.4, 708)
        assert len(points(line.path)) == 1

    def test_what_cannot_be_bought_or_was_not_observed_interrupts_the_price(self) -> None:
        found = drawn(
            (10, 8, "offered", 4000, None),
            (8, 6, "out", 4000, None),
            (6, 5, "out", None, None),
            (5, 3, "unobserved", None, None),
            (3, 0, "offered", 4000, None),
        )
        assert [(part[0][0], part[-1][0]) for part in points(found.lines[0].path)] == [(52, 183.2), (511.2, 708)]
        assert found.outs == [(183.2, 131.2), (314.4, 65.6)]
        assert found.gaps == [(380.0, 131.2)]
        assert len(points(found.lines[0].out)) == 1
        assert [row.status for row in found.lines[0].rows] == [
            "On the menu", "Not observed", "Not on the menu", "Out of stock", "On the menu",
        ]  # fmt: skip

    def test_a_chart_begins_with_its_range(self) -> None:
        found = drawn((200, 40, "offered", 9000, None), (40, 0, "offered", 4000, None), days=30)
        assert points(found.lines[0].path)[0][0][0] == 52
        assert [row.price for row in found.lines[0].rows] == [4000]

    def test_nothing_is_drawn_without_a_price(self) -> None:
        line = PriceLine(steps=steps((10, 0, "out", None, None)))
        assert chart.draw([("Alpha", line)], since=None, now=NOW, zone=UTC) is None


class TestTimes:
    def test_ticks_and_rows_are_in_the_same_zone(self) -> None:
        found = drawn((1, 0.5, "offered", 4000, None), (0.5, 0, "offered", 3500, None), zone="America/New_York")
        # It is 8 AM in New York at NOW.
        assert [tick.text for tick in found.ticks] == ["12 PM", "6 PM", "Jun 10", "6 AM"]
        assert found.zone == "EDT"
        assert found.lines[0].rows[0].since == "Jun 9, 2026, 8:00 PM EDT"
        # Midnight is 16 of 24 hours after the beginning.
        assert abs(found.ticks[2].at - (52 + 656 * 16 / 24)) < 0.1

    def test_days_are_days_when_the_clocks_change(self) -> None:
        line = PriceLine(
            steps=[
                Step(
                    start=datetime(2026, 3, 5, tzinfo=UTC),
                    end=datetime(2026, 3, 11, tzinfo=UTC),
                    state="offered",
                    price=4000,
                )
            ]
        )
        zone = ZoneInfo("America/New_York")
        found = chart.draw([("Alpha", line)], since=None, now=datetime(2026, 3, 11, tzinfo=UTC), zone=zone)
        assert found is not None
        assert [tick.text for tick in found.ticks] == ["Mar 5", "Mar 6", "Mar 7", "Mar 8", "Mar 9", "Mar 10"]
        whole = timedelta(days=6)
        midnights = [datetime(2026, 3, day, tzinfo=zone).astimezone(UTC) for day in range(5, 11)]
        at = [52 + 656 * ((moment - datetime(2026, 3, 5, tzinfo=UTC)) / whole) for moment in midnights]
        assert all(abs(tick.at - x) < 0.1 for tick, x in zip(found.ticks, at, strict=True))

    @given(st.floats(min_value=0.01, max_value=3000))
    def test_every_span_has_some_labels_and_not_too_many(self, days: float) -> None:
        ticks = drawn((days, 0, "offered", 4000, None), days=None, zone="America/Denver").ticks
        assert len(ticks) <= 7
        assert all(52 < tick.at < 708 for tick in ticks)
        assert all(later.at > earlier.at for earlier, later in pairwise(ticks))


class TestFigures:
    def figures(
        self, *parts: tuple[float, float, State, int | None, int | None], days: int | None = 90
    ) -> list[tuple[str, int | None, str]]:
        return [tuple(one) for one in drawn(*parts, days=days).lines[0].figures]

    def test_ninety_days_are_named_only_if_observed_that_long(self) -> None:
        assert self.figures((95, 20, "offered", 4000, None), (20, 0, "offered", 4200, None)) == [
            ("Now", 4200, ""), ("Lowest in 90 days", 4000, "until May 21"), ("Highest in 90 days", 4200, ""),
        ]  # fmt: skip
        assert self.figures((89, 20, "offered", 4000, None), (20, 0, "offered", 3900, None)) == [
            ("Now", 3900, ""), ("Lowest since Mar 13", 3900, ""), ("Highest since Mar 13", 4000, ""),
        ]  # fmt: skip

    def test_a_price_that_could_not_be_paid_is_no_lowest(self) -> None:
        found = self.figures((95, 20, "out", 1000, None), (20, 0, "offered", 4200, None))
        assert ("Lowest in 90 days", 4200, "") in found

    def test_a_longer_range_has_its_own(self) -> None:
        parts: tuple[tuple[float, float, State, int, None], ...] = (
            (400, 300, "offered", 2000, None),
            (300, 0, "offered", 4000, None),
        )
        assert self.figures(*parts, days=365)[3:] == [
            ("Lowest in 1 year", 2000, "until Aug 14, 2025"), ("Highest in 1 year", 4000, ""),
        ]  # fmt: skip
        assert self.figures(*parts, days=None)[3:] == [
            ("Lowest since May 6, 2025", 2000, "until Aug 14, 2025"), ("Highest since May 6, 2025", 4000, ""),
        ]  # fmt: skip

    def test_a_price_that_is_not_asked_now_is_not_the_current_one(self) -> None:
        assert self.figures((9, 1, "offered", 4000, None), (1, 0, "out", 4000, None))[0] == (
            "Now",
            None,
            "out of stock",
        )
        parts: tuple[tuple[float, float, State, int | None, None], ...] = (
            (9, 1, "offered", 4000, None),
            (1, 0, "unobserved", None, None),
        )
        assert self.figures(*parts)[0] == ("Last seen", 4000, "Jun 9")


@st.composite
def lines(draw: st.DrawFn) -> list[Step]:
    edges = sorted(draw(st.sets(st.integers(0, 40), min_size=2, max_size=8)), reverse=True)
    found = []
    for start, end in pairwise(edges):
        state: State = draw(st.sampled_from(["offered", "out", "unobserved"]))
        price = draw(st.integers(1, 5)) if state == "offered" else None
        found += steps((start, end, state, price, None))
    return found


@given(st.lists(lines(), min_size=1, max_size=4))
def test_the_cheapest_is_the_lowest_that_could_be_bought_at_any_time(compared: list[list[Step]]) -> None:
    found = cheapest(compared)
    assert all(earlier.end == later.start for earlier, later in pairwise(found))
    for hour in range(41 * 2):
        at = NOW - timedelta(hours=12 * hour + 1)
        there = [step for line in compared for step in line if step.start <= at < step.end]
        (known,) = [step for step in found if step.start <= at < step.end] or [None]
        costs = [step.price for step in there if step.state == "offered" and step.price is not None]
        state = "offered" if costs else "out" if any(step.state == "out" for step in there) else "unobserved"
        assert (known.state if known else "unobserved") == state
        assert (known.price if known else None) == min(costs, default=None)
