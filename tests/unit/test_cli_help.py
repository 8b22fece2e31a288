"""Help, usage and completion of the command line, and the layout of its tables."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from menuwatch.cli import main, output
from menuwatch.cli.options import Output
from menuwatch.cli.output import Column, Format, PlainConsole
from menuwatch.cli.stores import COLUMNS as STORE_COLUMNS
from menuwatch.core.errors import Refused


def _menuwatch(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    code = "from menuwatch.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        env={**os.environ, "COLUMNS": "80", **env},
        capture_output=True,
        text=True,
        timeout=60,
    )


def _complete(line: str, **env: str) -> list[str]:
    """What bash offers after this line."""
    words = line.split(" ")
    asked = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1), "_MENUWATCH_COMPLETE": "complete_bash"}
    return _menuwatch(**asked, **env).stdout.split()


def test_the_list_of_commands_has_panels_and_a_line_for_each() -> None:
    text = _menuwatch("--help").stdout
    panels = re.findall(r"╭─ (\w+) ", text)
    assert panels == ["Options", "Setup", "Run", "Data", "Operate", "Admin"]
    listed = re.findall(r"^│ ([a-z-]+) {2,}\S", text, re.MULTILINE)
    assert [name for name in listed if not name.startswith("-")] == list(main.COMMANDS)


def _params() -> Iterator[tuple[str, Any]]:
    root = typer.main.get_command(main.app)
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        for inner in getattr(command, "commands", {"": command}).values():
            context = typer.Context(inner, info_name=f"{name} {inner.name}")
            usage = " ".join(inner.collect_usage_pieces(context))
            yield usage, [param for param in inner.get_params(context) if not getattr(param, "hidden", False)]


def test_values_are_named_in_one_style() -> None:
    for usage, params in _params():
        assert not re.search(r"[{}<>]", usage), usage
        for param in params:
            named = param.metavar
            assert named == "" or "|" in named or named == named.upper(), (usage, param.name, named)
            assert "<" not in named


def test_names_and_choices_complete() -> None:
    assert _complete("menuwatch ta") == ["tasks"]
    assert _complete("menuwatch stores li") == ["list"]
    assert _complete("menuwatch stores list --freshness s") == ["stale"]


@pytest.mark.parametrize(
    ("shell", "mark"), [("bash", "complete -o"), ("zsh", "#compdef"), ("fish", "complete --command")]
)
def test_each_shell_gets_its_own_script(shell: str, mark: str) -> None:
    assert mark in _menuwatch("--show-completion", shell).stdout


def _table(rows: list[Any], columns: Any, width: int, monkeypatch: pytest.MonkeyPatch, **kind: Any) -> str:
    console = PlainConsole(width=width, highlight=False, emoji=False, **kind)
    monkeypatch.setattr(output, "console", console)
    with console.capture() as shown:
        output.print_list(rows, columns, Format.TABLE)
    return shown.get()


STORE = {
    "id": 7, "slug": "mile-marker-newark-rosewood-annex", "name": "Mile Marker Newark Rosewood Annex", "city": "Newark",
    "state": "NJ", "product_count": 120, "last_crawled_at": None, "crawl_enabled": True, "last_error": "HTTP 502 " * 9,
}  # fmt: skip


def _row(values: dict[str, Any]) -> Any:
    return type("Row", (), values)()


def test_a_slug_is_whole_and_the_name_is_dropped_first(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = _table([_row(STORE)], STORE_COLUMNS, 80, monkeypatch).splitlines()
    assert STORE["slug"] in lines[1].split()
    assert all(len(line) <= 80 for line in lines)
    assert "Name" not in lines[0]
    assert "Last crawl" in lines[0]
    wide = _table([_row(STORE)], STORE_COLUMNS, 200, monkeypatch).splitlines()
    assert STORE["name"] in wide[1]


def test_lines_of_a_table_end_where_their_text_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"a": "x", "b": "long text"}, {"a": "yy", "b": "z"}]
    columns = (Column("A", "a"), Column("B", "b"), Column("", lambda row: None, lambda value: ""))
    shown = _table(rows, columns, 80, monkeypatch).splitlines()
    assert shown == ["A   B", "x   long text", "yy  z"]


def test_states_have_colours_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, columns = [{"status": "failed"}, {"status": "paused (silent)"}], (Column("Status", "status"),)
    assert "\x1b" not in _table(rows, columns, 80, monkeypatch)
    shown = _table(rows, columns, 80, monkeypatch, force_terminal=True, color_system="standard").splitlines()
    assert shown[1].startswith("\x1b[31mfailed")
    assert shown[2].startswith("\x1b[33mpaused")


def test_formats_have_one_spelling_each_and_the_other_still_works() -> None:
    assert Output().is_table
    assert Output(json=True).format == Output(fmt=Format.JSON).format == Format.JSON
    assert Output(csv=True).format == Output(fmt=Format.CSV).format == Format.CSV
    assert Output(json=True, fmt=Format.JSON).format is Format.JSON
    with pytest.raises(Refused, match="--json and --csv"):
        Output(json=True, csv=True)
