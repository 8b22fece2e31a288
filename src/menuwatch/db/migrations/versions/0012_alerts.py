"""Alerts: rules, what they found, and what was sent."""

from menuwatch.db.migrations.run import sql_file

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    sql_file(__file__)
