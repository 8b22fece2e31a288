"""Upkeep: what is done now and then, and what it needs to be quick."""

from menuwatch.db.migrations.run import sql_file

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    sql_file(__file__)
