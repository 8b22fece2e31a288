"""Databases as released versions left them: plain SQL, a row in every table. Migrations are tested from these."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
FIRST = FOLDER / "schema_0_2_0.sql"
