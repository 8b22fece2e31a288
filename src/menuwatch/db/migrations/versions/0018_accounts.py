"""Who may do what: users, sessions, tokens, login failures, the audit, and keys of repeated requests."""

from menuwatch.db.migrations.run import sql_file

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    sql_file(__file__)
