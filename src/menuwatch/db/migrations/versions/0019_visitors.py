"""Who looks at the public site, without saying who: salts that do not last, visits, and their sums."""

from menuwatch.db.migrations.run import sql_file

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    sql_file(__file__)
