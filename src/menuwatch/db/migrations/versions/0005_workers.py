"""Commands for workers, and the states of a worker that does not claim."""

from menuwatch.db.migrations.run import sql_file

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    sql_file(__file__)
