"""The newest backup into each folder, so that it can be told how old it is."""

from menuwatch.db.migrations.run import sql_file

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    sql_file(__file__)
