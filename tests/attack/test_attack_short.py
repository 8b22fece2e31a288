"""The attack in its short form: a case of almost each part, and proof that the checks fail where they must. `make attack` is long."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack.installation import Installation
from tests.attack.report import Attack
from tests.attack.run import SHARES, attack, filled
from tests.attack.vectors import MARKUP, Page

CASES = {
    "api": "GET /api/products positive #0",
    "forms": "GET /search #0",
    "files": "picture jpeg #0",
    "connections": "smuggling: two hosts",
    "secrets": "GET /api/proxies",
}
"""Cheap ones: what starts processes and kills them is left to the long form."""


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Installation, Path]]:
    with filled(1, stores=1, products=5, cycles=1) as (template, folder):
        template.start()
        try:
            yield template, folder
        finally:
            template.stop()


@pytest.mark.slow
def test_a_case_of_each_part_holds(running: tuple[Installation, Path]) -> None:
    assert CASES.keys() == SHARES.keys() - {"faults"}
    for part, only in CASES.items():
        done = attack(part, *running, seed=1, seconds=90, most=1, only=only)
        assert done.cases, f"{part}: no case is named {only!r}"
        assert not done.findings, "\n".join(done.lines())


def test_markup_that_came_through_is_seen() -> None:
    elements = [vector for vector in MARKUP if vector.startswith(("<", '">'))]
    assert len(elements) > 4
    for vector in elements:
        assert Page(f'<p title="{vector}">{vector}</p>').injected, vector
        assert not Page(f'<p title="{html.escape(vector)}">{html.escape(vector)}</p>').injected, vector
    assert Page('<a href="java&#9;script:zqx()">').injected
    assert Page('<input value="" onzqx="1">').injected
    assert not Page('<input value="&quot; onzqx=&quot;1">').injected


def test_a_finding_names_the_command_that_repeats_it(tmp_path: Path) -> None:
    made = Attack(
        part="api", seed=7, folder=tmp_path, template=Installation.__new__(Installation), deadline=0.0, only="GET"
    )
    assert [made.begins(case) for case in ("GET /x", "POST /x")] == [True, False]
    made.expect(True, "GET /x", "nothing")
    made.expect(False, "GET /x", "500", "curl /x")
    made.expect(False, "GET /x", "500", "curl /x")
    assert (made.cases, len(made.findings), made.late) == (1, 1, True)
    assert made.lines()[-1].endswith("--seed 7 --part api --case 'GET /x'")
    assert made.chance("a").random() == made.chance("a").random() != made.chance("b").random()
