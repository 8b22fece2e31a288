"""`menuwatch match`: pairs, corrections and brands, and corrections from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from menuwatch.core.errors import InvalidFields, Refused
from menuwatch.matching.bulk_corrections import parse_corrections
from tests.commands import run_here
from tests.matching.match_rows import MatchRows


@pytest.fixture
def run(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command of the group."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("MENUWATCH_HOME", str(tmp_path))

    def command(*words: str) -> Result:
        result = run_here(["match", *words])
        if result.exception is not None and not isinstance(result.exception, SystemExit | Refused):
            raise result.exception
        return result

    return command


def test_a_pair_is_reviewed_corrected_and_withdrawn(run: Any, rows: MatchRows) -> None:
    a, b = rows.written("Blue Dream", "Blue Dreem")
    rows.review(1, 2, confidence=0.625)
    assert "62%" in run("review").stdout
    (pair,) = json.loads(run("review", "--json").stdout)
    assert (pair["a"]["product_id"], pair["b"]["product_id"], pair["confidence"]) == (a, b, 0.625)
    assert "Recorded as the same product (correction 1)." in run("same", str(a), str(b), "--note", "misspelt").stdout
    assert "No pairs to review." in run("review").stderr
    assert isinstance(run("different", str(a), str(b)).exception, Refused)
    assert "in place of correction 1" in run("different", str(a), str(b), "--replace").stdout
    listed = json.loads(run("corrections", "--json").stdout)
    assert [(one["id"], one["same"], one["state"]) for one in listed] == [(2, False, "waiting"), (1, True, "withdrawn")]
    assert "withdrawn" in run("withdraw", "2").stdout
    assert "skipped" in run("skip", str(a), str(b)).stdout
    assert len(json.loads(run("review", "--skipped", "--json").stdout)) == 1
    assert rows.sql("SELECT DISTINCT via FROM audit_log") == [("cli",)]


def test_brands(run: Any, rows: MatchRows) -> None:
    rows.brand("Acme Farms")
    rows.brand("Acme")
    assert "Acme Farms was merged into Acme; 0 listings" in run("merge-brands", "acme farms", "2").stdout
    assert [one["name"] for one in json.loads(run("brands", "--json").stdout)] == ["Acme"]
    assert "a separate brand again" in run("unmerge-brand", "1").stdout
    assert "spelling of Acme;" in run("move-spelling", "Akme", "--to", "Acme").stdout
    assert "is now named ACME Inc" in run("rename-brand", "Akme", "ACME Inc").stdout
    refused = run("merge-brands", "nothing", "Acme").exception
    assert isinstance(refused, Refused)
    assert "there is no brand 'nothing'" in str(refused)


def test_a_file_is_applied_as_a_whole(run: Any, rows: MatchRows, tmp_path: Path) -> None:
    a, b, c = rows.written("one", "two", "three")
    file = tmp_path / "said.csv"
    file.write_text(f"a,b,verdict,note\n{a},{b},same,\n{b},{c},Different,other line\n\n{a},{b},same\n")
    result = run("correct", str(file))
    assert "2 corrections recorded." in result.stdout
    assert "1 had already been made." in result.stderr
    assert rows.sql("SELECT same, note FROM match_corrections ORDER BY id") == [(True, None), (False, "other line")]


def test_a_file_with_an_error_changes_nothing_and_names_the_lines(run: Any, rows: MatchRows, tmp_path: Path) -> None:
    a, b, c = rows.written("one", "two", "three")
    file = tmp_path / "said.csv"
    file.write_text(f"{a},{b},same\n{b},{c},same\n{a},{c},different\n{a},424242,same\n")
    error = run("correct", str(file)).exception
    assert isinstance(error, InvalidFields)
    assert [one.field for one in error.errors] == ["line 3", "line 4"]
    assert "product 424242 does not exist" in str(error)
    assert rows.sql("SELECT (SELECT count(*) FROM match_corrections), (SELECT count(*) FROM audit_log)") == [(0, 0)]


def test_lines_that_are_no_corrections_are_named() -> None:
    text = "1,2,same\n1,2\nx,2,same\n1,0,same\n1,2,maybe\n1,2,same,note,more\n1,99999999999999999999,same\n"
    with pytest.raises(InvalidFields) as refused:
        parse_corrections(text)
    assert [one.field for one in refused.value.errors] == [f"line {n}" for n in range(2, 8)]
    assert "use same or different" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "why"), [("", "no corrections"), ("a,b,verdict\n", "no corrections"), ('1,2,"same', "not CSV")]
)
def test_files_without_corrections(text: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        parse_corrections(text)


def test_a_file_that_is_not_text(run: Any, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"1,2,\xff\xfe")
    assert "not UTF-8" in str(run("correct", str(tmp_path / "x.csv")).exception)
    assert isinstance(run("correct", str(tmp_path / "nothing.csv")).exception, Refused)
