"""What people do to tasks: have them done again, cancel many at once."""

from menuwatch.db.migrations.run import sql_file

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    sql_file(__file__)
