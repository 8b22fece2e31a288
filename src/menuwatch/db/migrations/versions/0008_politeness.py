"""Who may ask which host when, through whom, and what came of it."""

from menuwatch.db.migrations.run import sql_file

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    sql_file(__file__)
