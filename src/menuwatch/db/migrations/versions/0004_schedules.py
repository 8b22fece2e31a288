"""Schedules, their runs, the day's plan of crawls, and what the workers can do in an hour."""

from menuwatch.db.migrations.run import sql_file

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    sql_file(__file__)
