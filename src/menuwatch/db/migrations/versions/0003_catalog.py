"""The catalogue and its history."""

from menuwatch.db.migrations.run import sql_file

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    sql_file(__file__)
