"""Browsers of people are people, programs are programs. The user agents, one a line, are as their makers publish them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from menuwatch.web.visits import PATTERNS, is_bot

HERE = Path(__file__).parent
PEOPLE = (HERE / "people.txt").read_text(encoding="utf-8").splitlines()
PROGRAMS = (HERE / "programs.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("agent", PEOPLE)
def test_a_browser_is_a_person(agent: str) -> None:
    assert not is_bot(agent)


@pytest.mark.parametrize("agent", ["", *PROGRAMS])
def test_a_program_is_none(agent: str) -> None:
    assert is_bot(agent)


def test_every_pattern_compiles_and_has_its_reason() -> None:
    for pattern, why in PATTERNS:
        re.compile(pattern)
        assert why
