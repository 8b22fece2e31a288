"""Simulated days in their short form: three workers, one day, three troubles. `make soak` is the long one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.chaos.worker_processes import Leash
from tests.soak.plan import SHORT, Plan
from tests.soak.run import run

SEED = 4


@pytest.mark.slow
async def test_a_hostile_day_loses_no_menu_and_no_proxy_and_keeps_to_the_budget(
    database_url: str, tmp_path: Path
) -> None:
    seed = int(os.environ.get("SEED", SEED))
    with Leash(tmp_path / "gone") as leash:
        report = await run(SHORT, seed, database_url, tmp_path, leash)
    assert report.faults == [], "\n".join(report.lines())
    assert report.menus == len(Plan(SHORT, seed).rounds) * SHORT.stores
