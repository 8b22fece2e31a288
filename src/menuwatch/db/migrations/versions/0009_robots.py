"""What is needed to ask for a host's robots.txt once a day, by one process at a time."""

from menuwatch.db.migrations.run import sql_file

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    sql_file(__file__)
