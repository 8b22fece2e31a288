"""The task queue."""

from menuwatch.db.migrations.run import sql_file

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    sql_file(__file__)
