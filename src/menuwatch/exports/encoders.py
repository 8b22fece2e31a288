"""Encodes lines of PostgreSQL's COPY as the bytes of a file. Pure: no I/O.

`expressions` defines how the server writes each column, so that as little as possible is left to do here.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from menuwatch.core import csv_cells
from menuwatch.exports.tables import Column, Format, Kind

_ISO = """to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
PRECISION, SCALE = 18, 6
"""Of numbers in Parquet."""


def expression(column: Column, fmt: Format) -> str:
    """The SQL expression of a column. Names are constants of ours, so they need no quoting."""
    name = f"x.{column.name}"
    match column.kind:
        case Kind.TIME:
            name = _ISO.format(name)
        case Kind.NUMBER if fmt is Format.PARQUET:
            name = f"round({name}, {SCALE})"
        case Kind.NUMBER:
            # Packed months do not keep trailing zeros: the same form for all.
            name = f"trim_scale({name})"
        case Kind.FLAG | Kind.JSON if fmt is not Format.JSONL:
            name = f"{name}::text"
        case Kind.TEXT if fmt is Format.CSV:
            name = csv_cells.sql(name)
        case _:
            pass
    return f"{name} AS {column.name}"


class Encoder(Protocol):
    """Encodes rows as a file. `batch`: rows per call."""

    batch: int

    def begin(self) -> bytes:
        """The start of the file."""
        ...

    def lines(self, lines: Sequence[bytes]) -> bytes:
        """The bytes for these rows, one line of COPY each."""
        ...

    def end(self) -> bytes:
        """The end of the file."""
        ...


class Csv:
    """CSV (RFC 4180, lines end with LF) with a header. Null is nothing, an empty text is `""`. Texts are safe to open in a spreadsheet
    (core/csv_cells.py); JSON lines and Parquet hold them as they are."""

    batch = 2_000

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns

    def begin(self) -> bytes:
        return (",".join(column.name for column in self._columns) + "\n").encode()

    def lines(self, lines: Sequence[bytes]) -> bytes:
        return b"".join(lines)

    def end(self) -> bytes:
        return b""


class Jsonl:
    """One JSON object a line, numbers exact."""

    batch = 2_000

    def __init__(self, columns: Sequence[Column]) -> None:
        pass

    def begin(self) -> bytes:
        return b""

    def lines(self, lines: Sequence[bytes]) -> bytes:
        # COPY's text format doubles every backslash; JSON holds no other character that it escapes.
        return b"".join(lines).replace(b"\\\\", b"\\")

    def end(self) -> bytes:
        return b""


class Parquet:
    """Parquet, zstd-compressed, a row group for each batch. JSON columns are text."""

    batch = 65_536

    def __init__(self, columns: Sequence[Column]) -> None:
        # Imported here: it takes a while, and only exports need it.
        import pyarrow as pa
        from pyarrow import parquet

        types: dict[Kind, Any] = {
            Kind.WHOLE: pa.int64(),
            Kind.TEXT: pa.string(),
            Kind.FLAG: pa.bool_(),
            Kind.NUMBER: pa.decimal128(PRECISION, SCALE),
            Kind.REAL: pa.float64(),
            Kind.TIME: pa.timestamp("us", tz="UTC"),
            Kind.DATE: pa.date32(),
            Kind.JSON: pa.string(),
        }
        self._types = {column.name: types[column.kind] for column in columns}
        self._sink = _Sink()
        self._writer = parquet.ParquetWriter(
            self._sink, pa.schema(list(self._types.items())), compression="zstd", store_decimal_as_integer=True
        )

    def begin(self) -> bytes:
        return self._sink.drain()

    def lines(self, lines: Sequence[bytes]) -> bytes:
        from pyarrow import csv as arrow_csv

        table = arrow_csv.read_csv(
            io.BytesIO(b"".join(lines)),
            read_options=arrow_csv.ReadOptions(
                column_names=list(self._types), block_size=sum(map(len, lines)) + 1, use_threads=False
            ),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=self._types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=["true"],
                false_values=["false"],
            ),
        )
        self._writer.write_table(table)
        return self._sink.drain()

    def end(self) -> bytes:
        self._writer.close()
        return self._sink.drain()


class _Sink(io.RawIOBase):
    """Buffers what is written."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: Any, /) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._at += len(piece)
        return len(piece)

    def drain(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def encode_rows(fmt: Format, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> bytes:
    """A file of rows that are in memory, as `encoder` would write it."""
    file = encoder(fmt, columns)
    if fmt is Format.JSONL:
        lines = [msgspec.json.encode(row) + b"\n" for row in rows]
        return file.begin() + b"".join(lines) + file.end()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        cells = [row[column.name] for column in columns]
        writer.writerow(
            [csv_cells.safe(cell) if fmt is Format.CSV and isinstance(cell, str) else cell for cell in cells]
        )
    return file.begin() + file.lines([text.getvalue().encode()]) + file.end()


def encoder(fmt: Format, columns: Sequence[Column]) -> Encoder:
    """The encoder of a new file."""
    kinds: dict[Format, Callable[[Sequence[Column]], Encoder]] = {
        Format.CSV: Csv,
        Format.JSONL: Jsonl,
        Format.PARQUET: Parquet,
    }
    return kinds[fmt](columns)
