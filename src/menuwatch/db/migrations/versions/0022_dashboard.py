"""What people keep of the dashboard: views they saved."""

from menuwatch.db.migrations.run import sql_file

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    sql_file(__file__)
