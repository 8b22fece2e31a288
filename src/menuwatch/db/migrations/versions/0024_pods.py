"""How many pods people ordered, until that many there are."""

from menuwatch.db.migrations.run import sql_file

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    sql_file(__file__)
