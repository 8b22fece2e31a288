"""`menuwatch match`: which listings are the same product, over stores and platforms."""

from __future__ import annotations

from menuwatch.cli import match_review
from menuwatch.cli.options import Commands

app = Commands("Match products across stores and platforms.")
app.add_typer(match_review.app)
