"""The present is the product's row; history holds what is no longer so."""

from menuwatch.db.migrations.run import sql_file

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    sql_file(__file__)
