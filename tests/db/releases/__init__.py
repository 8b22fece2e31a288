"""Databases as released versions left them: plain SQL, a row in every table. Migrations are tested from these."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
FIRST = "0_2_0"


def files(version: str) -> tuple[Path, Path]:
    """The dump of a version: its tables and functions, then its rows, indexes and constraints."""
    return FOLDER / f"schema_{version}.sql", FOLDER / f"rows_{version}.sql"


def dump(version: str) -> str:
    """The statements that make the database."""
    return "".join(file.read_text(encoding="utf-8") for file in files(version))
