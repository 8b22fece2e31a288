"""A table of a screen as a CSV or Parquet file."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from starlette.responses import Response

from menuwatch.core import csv_cells


def csv_response(name: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Response:
    """The rows as a file that a browser saves. Empty cells are null, times are ISO 8601 in UTC, and texts are no formulas."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
    return Response(text.getvalue(), headers=_saved_as(name, "csv"), media_type="text/csv; charset=utf-8")


def parquet_response(name: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Response:
    """The same as Parquet, with numbers, times and booleans as such. Encodes in this thread."""
    import pyarrow as pa  # loaded at the first download
    from pyarrow import parquet

    table = pa.table({column: _array([row.get(column) for row in rows]) for column in columns})
    file = io.BytesIO()
    parquet.write_table(table, file, compression="zstd")
    return Response(file.getvalue(), headers=_saved_as(name, "parquet"), media_type="application/vnd.apache.parquet")


def _saved_as(name: str, extension: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="menuwatch-{name.replace("/", "-")}.{extension}"'}


def _array(values: list[Any]) -> Any:
    import pyarrow as pa

    # Figures from JSON are whole numbers or decimals from row to row; a column has one type.
    if any(isinstance(value, Decimal) for value in values):
        values = [Decimal(value) if isinstance(value, int) else value for value in values]
    return pa.array(values)


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, bool):
        return "true" if value else "false"
    return csv_cells.safe(value) if isinstance(value, str) else value
