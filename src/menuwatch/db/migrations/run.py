"""How a revision runs its SQL file: whole, unparsed, in the transaction of its revision."""

from __future__ import annotations

from pathlib import Path

from alembic import op


def sql_file(revision_file: str) -> None:
    """Runs the `.sql` file that lies beside the revision's `.py` file."""
    text = Path(revision_file).with_suffix(".sql").read_text(encoding="utf-8")
    op.get_bind().exec_driver_sql(text, execution_options={"no_parameters": True})
