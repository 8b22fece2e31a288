"""`menuwatch products` as a person runs it, with filters in the words of all platforms."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.commands import menuwatch
from tests.e2e.recordings import page, product
from tests.e2e.test_replay import Command
from tests.unit.test_weedmaps import item
from tests.unit.test_weedmaps import page as weedmaps_page


@pytest.fixture
def command(database_url: str, tmp_path: Path) -> Command:
    return Command(database_url, tmp_path / "home")


def products(command: Command, *args: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "DATABASE_URL": command.database_url, "MENUWATCH_HOME": str(command.home)}
    return menuwatch("products", *args, "--format", "json", env=env)


def names(command: Command, *args: str) -> list[str]:
    run = products(command, *args)
    assert run.returncode == 0, run.stderr
    return sorted(row["name"] for row in json.loads(run.stdout))


def test_two_platforms_in_one_vocabulary(command: Command, tmp_path: Path) -> None:
    dutchie, weedmaps = tmp_path / "d.json", tmp_path / "w.json"
    dutchie.write_bytes(page([
        product(1, Name="Dutch joint", type="Pre-Rolls", strainType="Indica"),
        product(2, Name="Dutch gummy", type="Edible", subcategory="gummies"),
    ]))  # fmt: skip
    weedmaps.write_bytes(weedmaps_page([
        item(1, name="Weed joint", sub_category={"name": "Pre Roll"}, genetics="indica"),
        item(2, name="Weed gummy", category_name="Edibles", sub_category={"name": "Gummies"}, genetics="hybrid"),
    ]))  # fmt: skip
    command.report(dutchie, weedmaps)
    assert names(command) == ["Dutch gummy", "Dutch joint", "Weed gummy", "Weed joint"]
    assert names(command, "--category-canon", "preroll") == ["Dutch joint", "Weed joint"]
    assert names(command, "--category-canon", "preroll", "--category-canon", "edible", "--strain-canon", "hybrid") == [
        "Weed gummy"
    ]
    assert names(command, "--subcategory-canon", "gummies") == ["Dutch gummy", "Weed gummy"]
    assert names(command, "--category-canon", "apparel") == []
    unknown = products(command, "--category-canon", "Pre-Rolls")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    (line,) = unknown.stderr.splitlines()
    assert "--category-canon 'Pre-Rolls': unknown value; use one of: accessory, apparel," in line
