"""Whole months with faults at random, in their short form: one month of four stores. `make months` is the long one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.months.run import SHORT, run

SEEDS = (int(os.environ["SEED"]),) if os.environ.get("SEED") else (2,)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_no_fault_puts_a_product_out_of_stock_in_a_month(database_url: str, tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}: python -m tests.months.run --seed {seed} runs months like this one")
    report = await run(SHORT, seed, database_url, tmp_path)
    assert report.wrong == [], "\n".join(report.lines())
    count = report.count
    assert (count["false out of stock"], count["false misses"], count["missed out of stock"]) == (0, 0, 0)
    assert count["store months"] == SHORT.stores * 2
    # A month in which nothing happens proves nothing.
    assert count["really out of stock"] > 50
    assert len(report.met) > 8, report.met
