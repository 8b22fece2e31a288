"""A table of a screen as a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

from menuwatch.core import csv_cells


def csv_response(name: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Response:
    """The rows as a file that a browser saves. Empty cells are null, times are ISO 8601 in UTC, and texts are no formulas."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
    headers = {"Content-Disposition": f'attachment; filename="menuwatch-{name.replace("/", "-")}.csv"'}
    return Response(text.getvalue(), headers=headers, media_type="text/csv; charset=utf-8")


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, bool):
        return "true" if value else "false"
    return csv_cells.safe(value) if isinstance(value, str) else value
