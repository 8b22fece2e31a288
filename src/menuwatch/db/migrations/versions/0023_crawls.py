"""Search crawls: jobs, their queue, deliveries, and the products found."""

from menuwatch.db.migrations.run import sql_file

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    sql_file(__file__)
