"""Figures for analysts, and the order in which crawls were taken in."""

from menuwatch.db.migrations.run import sql_file

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    sql_file(__file__)
