"""Questions with known answers, over stdio and over HTTP. `python -m tests.mcp.run` prints them.

The tools are the same over both: `make test` asks every question over HTTP and every fifth over stdio, `make proofs` all over both.
"""

from __future__ import annotations

import os

import pytest

from tests.mcp import questions_recorded, questions_simulated
from tests.mcp.proof import LEAST_EXACT, Market, ask

WAYS = {"http": 1, "stdio": 1 if "ALL_QUESTIONS" in os.environ else 5}
"""Every so many questions are asked."""


def test_there_are_sixty_questions() -> None:
    texts = [text for part in (questions_recorded, questions_simulated) for text, _ in part.QUESTIONS.questions]
    assert len(texts) == len(set(texts)) >= 60


async def _assert_exact(market: Market) -> None:
    for way, every in WAYS.items():
        results = await ask(market, way, every)
        assert len(results) >= len(market.questions.questions) // every
        wrong = [str(result) for result in results if not result.is_exact]
        assert len(wrong) <= (1 - LEAST_EXACT) * len(results), "\n".join(wrong)
        assert sum(not result.expected for result in results) <= 1, "an empty answer proves little"


@pytest.mark.slow
async def test_the_simulated_market(simulated_market: Market) -> None:
    await _assert_exact(simulated_market)


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_the_recorded_market(recorded_market: Market) -> None:
    """It takes its seconds: 84 menus are taken in first."""
    await _assert_exact(recorded_market)
