"""Upkeep: what is done now and then, and what it needs to be quick."""

from pathlib import Path

from menuwatch.db.migrations.run import sql_file

revision = "0007"
down_revision = max(file.name[:4] for file in Path(__file__).parent.glob("0*.py") if file.name < "0007")


def upgrade() -> None:
    sql_file(__file__)
