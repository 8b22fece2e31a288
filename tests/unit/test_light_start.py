"""What a command does not use it does not load: the API with its web framework and the migration tool are half of a start."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer.main

from menuwatch.cli import main

HEAVY = ("menuwatch.api", "fastapi", "uvicorn", "alembic", "sqlalchemy", "lightkube", "httpx2", "mcp", "mcp_types")


def test_the_command_line_loads_neither_the_api_nor_the_migration_tool() -> None:
    asks = f"import sys; from menuwatch.cli.main import app; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout == "[]\n"


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["--show-completion", "zsh"]])
def test_what_needs_no_command_loads_no_database_driver_and_no_command(words: list[str]) -> None:
    code = (
        "import sys; from menuwatch.cli import main\n"
        f"sys.argv = ['menuwatch', *{words!r}]\n"
        "try: main.main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "heavy = {'psycopg', 'structlog', 'menuwatch.system', 'menuwatch.cli.tasks'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "[]\n"


def test_a_command_that_reads_loads_no_adapter_and_nothing_for_logs_and_progress() -> None:
    code = (
        "import sys, menuwatch.system, menuwatch.cli.products, menuwatch.cli.stores, menuwatch.cli.tasks\n"
        "print([name for name in sys.modules if name.startswith('menuwatch.platforms.') and name.endswith('.adapter')]\n"
        "      + sorted({'structlog', 'rich.progress'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_a_server_starts_without_the_sdk_of_mcp() -> None:
    code = (
        "import sys, menuwatch.cli.serving, menuwatch.cli.mcp; print(sorted({'mcp', 'mcp_types'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def _names(program: typer.Typer) -> list[str]:
    return list(typer.main.get_group(program).commands)


def test_a_command_is_loaded_alone_and_all_where_it_is_not_known() -> None:
    for name in ("tasks", "changes", "audit"):
        assert _names(main.select_program([name, "--help"])) == [name]
    for arguments in ([], ["--help"], ["nonsense"], ["--version"]):
        assert set(_names(main.select_program(arguments))) == set(main.COMMANDS)
