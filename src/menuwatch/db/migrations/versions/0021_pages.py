"""What lists and screens of an installation of millions need to answer at once."""

from menuwatch.db.migrations.run import sql_file

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    sql_file(__file__)
