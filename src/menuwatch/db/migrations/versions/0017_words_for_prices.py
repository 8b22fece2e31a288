"""What the cheapest option costs, and what a change is, said in one place."""

from menuwatch.db.migrations.run import sql_file

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    sql_file(__file__)
