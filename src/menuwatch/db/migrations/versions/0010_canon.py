"""The vocabulary of all platforms beside each platform's own words."""

from menuwatch.db.migrations.run import sql_file

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    sql_file(__file__)
