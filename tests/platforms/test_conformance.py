"""Every adapter of the registry passes the conformance checks, with menus of the simulator and with recorded ones."""

from __future__ import annotations

from typing import Any

import pytest

from menuwatch.platforms.conformance import CHECKS
from menuwatch.platforms.conformance.checks import Check, every_field_is_declared, every_item_is_read
from menuwatch.platforms.registry import built_in
from menuwatch.sim.expected import ExpectedState
from menuwatch.sim.local_session import simulated_platforms
from tests.platforms.samples import sample_of
from tests.platforms.simulated import Simulated

NAMES = [adapter.name for adapter in built_in()]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_conformance(name: str, check: Check) -> None:
    check(sample_of(name, "simulator"))


@pytest.mark.parametrize("check", [every_item_is_read, every_field_is_declared], ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_recorded_menus(name: str, check: Check) -> None:
    check(sample_of(name, "recordings"))


FAULTS: dict[str, dict[str, Any]] = {
    "fair": {},
    "clamped": {"clamp": {"rate": 1, "per_page": 7}},
    "repeated": {"pinned": {"rate": 1}},
    "too_high": {"total_lies": {"rate": 1, "delta": 9}},
    "too_low": {"total_lies": {"rate": 1, "delta": -9}},
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", simulated_platforms())
def test_whole_menus_of_the_simulator(name: str, fault: str) -> None:
    """Requested page by page, with the faults of a store's server."""
    shop = Simulated(name, products=230, faults=FAULTS[fault])
    menu = shop.menu()
    ids = {shop.adapter.identity(item) for page in menu.pages for item in shop.adapter.split(page)}
    assert ids == set(ExpectedState(shop.market).rows(shop.store.slug, 0))
    assert menu.product_count == len(ids)
    if fault in ("fair", "clamped"):
        assert menu.complete
