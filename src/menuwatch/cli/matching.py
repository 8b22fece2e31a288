"""`menuwatch match`: which listings are the same product, over stores and platforms."""

from __future__ import annotations

from menuwatch.cli.options import Commands

app = Commands("Match products across stores and platforms.")
