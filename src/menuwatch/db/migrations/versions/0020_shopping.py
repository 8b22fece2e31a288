"""The public site: what makes its searches fast, and what visitors want to be told of."""

from menuwatch.db.migrations.run import sql_file

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    sql_file(__file__)
