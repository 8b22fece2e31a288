"""Where stores were found is kept for each platform."""

from menuwatch.db.migrations.run import sql_file

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    sql_file(__file__)
