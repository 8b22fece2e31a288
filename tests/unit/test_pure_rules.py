"""The pure rules of the catalogue: misses, diff, suspicion; and settings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.catalog.diff import diff
from menuwatch.catalog.model import Product
from menuwatch.catalog.stock import absent
from menuwatch.cli.options import parse_past, parse_since
from menuwatch.config.settings import Settings
from menuwatch.core.clock import ManualClock
from menuwatch.core.errors import Refused
from menuwatch.pipeline.quarantine import size_anomaly
from tests.market import product


@given(st.integers(0, 3))
def test_misses_go_up_by_one_and_stop_at_three(misses: int) -> None:
    step = absent(misses)
    assert step.misses == {0: 1, 1: 2, 2: 3, 3: 3}[misses]
    assert step.first is (misses == 0)
    assert step.declared_oos is (misses == 2)


@pytest.mark.parametrize("misses", [-1, 4])
def test_other_numbers_of_misses_do_not_exist(misses: int) -> None:
    with pytest.raises(ValueError, match="0 to 3"):
        absent(misses)


_menus = st.dictionaries(
    st.sampled_from("abcde"), st.tuples(st.sampled_from(["1", "2.5"]), st.sampled_from([None, 0, 3]))
)


def _products(menu: dict[str, tuple[str, int | None]]) -> list[Product]:
    return [product({"id": i, "name": i.upper(), "price": p, "qty": q}) for i, (p, q) in menu.items()]


@given(_menus, _menus)
def test_diff_is_what_set_algebra_says(
    old: dict[str, tuple[str, int | None]], new: dict[str, tuple[str, int | None]]
) -> None:
    found = diff(_products(old), _products(new))
    assert {i.provider_product_id for i in found.added} == new.keys() - old.keys()
    assert {i.provider_product_id for i in found.removed} == old.keys() - new.keys()
    both = old.keys() & new.keys()
    assert {c.provider_product_id for c in found.price_changes} == {i for i in both if old[i][0] != new[i][0]}
    assert {c.provider_product_id for c in found.stock_changes} == {i for i in both if old[i][1] != new[i][1]}


@given(_menus)
def test_a_menu_differs_in_nothing_from_itself(menu: dict[str, tuple[str, int | None]]) -> None:
    found = diff(_products(menu), reversed(_products(menu)))
    assert (found.added, found.removed, found.price_changes, found.stock_changes) == ((), (), (), ())


@pytest.mark.parametrize(
    ("products", "usual", "expected"),
    [
        (0, [], None),
        (39, [100, 100, 100], "shrunk: 39 products, usually 100"),
        (40, [100, 100, 100], None),
        (500, [100], None),
        (40, [100, 90, 400], None),
        (39, [100, 90, 400], "shrunk: 39 products, usually 100"),
        (3, [10, 5], None),
        (2, [10, 5], "shrunk: 2 products, usually 7.5"),
    ],
)
def test_suspicion(products: int, usual: list[int], expected: str | None) -> None:
    assert size_anomaly(products, usual, 0.4) == expected


def test_settings_come_from_the_environment_and_overrides_win() -> None:
    found = Settings.from_env({"PORT": "9000", "WORKER_ROLE": "payload_fetch, product_refresh", "HOST": ""}, port=1234)
    assert (found.port, found.worker_role, found.host) == (1234, ("payload_fetch", "product_refresh"), "127.0.0.1")
    assert Settings.from_env({"MENUWATCH_HOME": "/x"}).storage == Path("/x/storage")


NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("90m", NOW - timedelta(minutes=90)),
        ("6h", NOW - timedelta(hours=6)),
        ("2w", NOW - timedelta(days=14)),
        ("2026-11-19", datetime(2026, 11, 19, tzinfo=UTC)),
        ("2026-11-19T10:00:00-05:00", datetime(2026, 11, 19, 15, tzinfo=UTC)),
    ],
)
def test_since(text: str, moment: datetime) -> None:
    assert parse_since(text, NOW) == moment


@pytest.mark.parametrize("text", ["yesterday", "6y", "2026-13-01", "999999w", ""])
def test_since_that_is_no_time(text: str) -> None:
    with pytest.raises(Refused, match="is not a time"):
        parse_since(text, NOW)


def test_a_period_starts_in_the_past() -> None:
    assert parse_past("7d", NOW) == NOW - timedelta(days=7)
    now = f"{NOW:%Y-%m-%dT%H:%M:%S}"
    assert parse_past(now, NOW) == NOW
    with pytest.raises(
        Refused, match=r"^--new-since '2031-01-01' is in the future: give a time no later than now, 2026-"
    ):
        parse_past("2031-01-01", NOW, "--new-since")


def test_a_manual_clock_only_goes_forward() -> None:
    clock = ManualClock(NOW)
    clock.advance(timedelta(seconds=90))
    assert (clock.now(), clock.monotonic()) == (NOW + timedelta(seconds=90), 90.0)
    with pytest.raises(ValueError, match="only goes forward"):
        clock.advance(timedelta(seconds=-1))
