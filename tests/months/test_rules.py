"""The rules by which a menu waits for a person, number by number."""

from __future__ import annotations

import pytest

from menuwatch.pipeline.quarantine import data_loss_anomaly, max_lost, removal_anomaly, size_anomaly
from menuwatch.platforms.paging import Ask, Pager


@pytest.mark.parametrize(
    ("products", "lost"),
    [(1, 2.5), (3, 3.5), (6, 5), (12, 8), (24, 8), (32, 8), (40, 10), (400, 100)],
)
def test_what_a_store_may_lose_at_once(products: int, lost: float) -> None:
    assert max_lost(products) == lost


@pytest.mark.parametrize(
    ("missing", "known", "suspect"),
    [
        (0, 0, False),
        (2, 2, False),
        (4, 4, False),
        (5, 5, True),
        (8, 24, False),
        (9, 24, True),
        (100, 400, False),
        (101, 400, True),
    ],
)
def test_products_that_are_gone_at_once(missing: int, known: int, suspect: bool) -> None:
    assert removal_anomaly(missing, known) == (
        f"gone at once: {missing} of {known} products are not on this menu" if suspect else None
    )


def test_a_menu_without_stock_or_prices_says_what_it_lacks() -> None:
    assert data_loss_anomaly(100, stock=25, unknown=25, price=25) is None
    sold = "sold out at once: 60 of 100 products are no longer in stock"
    assert data_loss_anomaly(100, stock=60, unknown=25, price=0) == sold
    dumb = "schema changed: 26 of 100 products have no stock information any more"
    assert data_loss_anomaly(100, stock=60, unknown=26, price=0) == dumb
    priceless = "schema changed: 26 of 100 products have lost their price at once"
    assert data_loss_anomaly(100, stock=100, unknown=100, price=26) == priceless
    assert data_loss_anomaly(8, stock=6, unknown=2, price=2) is None, "a small shop sells most of what it has"
    assert data_loss_anomaly(8, stock=3, unknown=3, price=0) is not None, "and goes on counting"


@pytest.mark.parametrize(
    ("products", "short", "suspect"),
    [
        (100, 70, False),  # a total that always lies: the store is as large as usual
        (95, 10, True),
        (96, 10, False),  # fewer than half of what is said to be missing
        (95, 5, False),  # totals may be off by a twentieth
        (60, 40, True),
    ],
)
def test_a_menu_that_was_cut_short_by_its_own_word(products: int, short: int, suspect: bool) -> None:
    found = size_anomaly(products, [100] * 10, 0.4, short=short)
    assert (found is not None) == suspect
    assert size_anomaly(products, [], 0.4, short=short) is None, "of a first menu nobody knows what is usual"


def _walk(sizes: list[int], total: int, size: int) -> Pager:
    pager = Pager(100)
    serial = 0
    step = Ask(0)
    while isinstance(step, Ask):
        rows = sizes[step.page] if step.page < len(sizes) else 0
        start = sum(sizes[: step.page])
        found = pager.feed([str(start + n) for n in range(rows)], total, -(-total // size))
        serial += 1
        assert serial < 20, "it comes to an end"
        if not isinstance(found, Ask):
            break
        step = found
    return pager


@pytest.mark.parametrize(
    ("sizes", "total", "short"),
    [
        ([25, 25, 25, 15], 90, 0),
        ([25, 8, 25, 15], 73, 17),  # nobody's page in the middle is so short, whatever the total says
        ([25, 25, 25, 5], 90, 10),  # the total names more than came
        ([25, 25, 25, 15], 80, 0),
        ([25, 13, 25, 15], 78, 0),  # pages that are filtered a little are nothing odd
        ([40], 40, 0),
    ],
)
def test_rows_that_did_not_come(sizes: list[int], total: int, short: int) -> None:
    assert _walk(sizes, total, 25).short == short
