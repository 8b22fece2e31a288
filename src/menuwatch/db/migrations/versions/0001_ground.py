"""Stores, discovery, proxies, archive metadata."""

from menuwatch.db.migrations.run import sql_file

revision = "0001"
down_revision = None


def upgrade() -> None:
    sql_file(__file__)
