"""Pictures: what is to be downloaded, from where, and which file is whose."""

from menuwatch.db.migrations.run import sql_file

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    sql_file(__file__)
