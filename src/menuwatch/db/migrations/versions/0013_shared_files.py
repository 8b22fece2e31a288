"""Payloads with the same answers share one file."""

from menuwatch.db.migrations.run import sql_file

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    sql_file(__file__)
