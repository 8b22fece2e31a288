"""The sample menu of the README, and arguments that are refused before a database is asked."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from menuwatch.sim.sample import PRODUCTS, sample
from tests.commands import menuwatch

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "dutchie-menu.json.gz"
UNREACHABLE = "postgresql://127.0.0.1:9/none?connect_timeout=1"


def test_the_sample_in_the_repository_is_what_the_simulator_makes() -> None:
    assert gzip.decompress(SAMPLE.read_bytes()) == sample()
    assert SAMPLE.stat().st_size < 50_000


def test_the_sample_is_imported_as_the_readme_says(database_url: str, tmp_path: Path) -> None:
    env = {**os.environ, "DATABASE_URL": database_url, "MENUWATCH_HOME": str(tmp_path)}
    words = ("replay", str(SAMPLE), "--store", "sample", "--state", "AZ", "--json")
    first, second = (json.loads(menuwatch(*words, env=env).stdout) for _ in range(2))
    products = msgspec.json.decode(sample())["data"]["filteredProducts"]["products"]
    assert (first["new"], first["warnings"], len(products)) == (len(products), [], PRODUCTS)
    assert (second["new"], second["unchanged"]) == (0, len(products))
    assert first["stores"][0]["slug"] == "sample"
    assert "18  Sample  Amber Drift" in menuwatch("products", "--store", "sample", "--limit", "3", env=env).stdout


@pytest.mark.parametrize("words", [("replay", "missing.json"), ("migrate-legacy", "import", "--dump", "missing.json")])
def test_a_missing_file_is_named_before_a_database_is_asked(words: tuple[str, ...], tmp_path: Path) -> None:
    env: Mapping[str, str] = {**os.environ, "DATABASE_URL": UNREACHABLE, "MENUWATCH_HOME": str(tmp_path)}
    done = menuwatch(*words, env=env)
    assert (done.returncode, done.stderr) == (2, "menuwatch: missing.json: no such file\n")
