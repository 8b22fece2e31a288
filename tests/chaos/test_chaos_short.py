"""The crash test in its short form: every kind of disturbance at least once. `make chaos` is the long one."""

from __future__ import annotations

import os

import pytest

from menuwatch.core.errors import Refused
from tests.chaos.run import SHORT, run

SEED = 20_261


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_whatever_happens_every_task_ends_once_and_as_planned() -> None:
    seed = int(os.environ.get("SEED", SEED))
    try:
        report = await run(SHORT, seed)
    except Refused as error:
        pytest.skip(f"this machine runs no server of the test's own: {error}")
    assert report.faults == [], "\n".join(report.lines())
    kinds = {"kill": 2, "stop": 2, "term": 1, "cut": 3, "crash": 1, "axe": 1}
    assert {kind: report.done[kind] for kind in kinds} == kinds
    assert report.counts["tasks"] >= SHORT.tasks
