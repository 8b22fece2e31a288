"""What a command does not use it does not load: the API with its web framework and the migration tool are half of a start."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("menuwatch.api", "fastapi", "uvicorn", "alembic", "sqlalchemy")


def test_the_command_line_loads_neither_the_api_nor_the_migration_tool() -> None:
    asks = f"import sys, menuwatch.cli.main; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout == "[]\n"
