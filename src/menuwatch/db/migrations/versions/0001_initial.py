"""The schema of 0.2.0, the first release. Its SQL lies in the folder of the same name, one file per domain."""

from menuwatch.db.upgrade import run_sql

revision = "0001"
down_revision = None


def upgrade() -> None:
    run_sql(__file__)
