"""Lines as PostgreSQL's COPY gives them, made into the bytes of a file. Nothing here reads or writes anything.

`expressions` says how the server is to write each column, so that as little as possible is left to do here.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Protocol

from menuwatch.exports.sheets import Column, Format, Kind

_ISO = """to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
PRECISION, SCALE = 18, 6
"""Of numbers in Parquet."""


def expression(column: Column, fmt: Format) -> str:
    """How a column is selected. Names are ours, so they are put in as they are."""
    name = f"x.{column.name}"
    match column.kind:
        case Kind.TIME:
            name = _ISO.format(name)
        case Kind.NUMBER if fmt is Format.PARQUET:
            name = f"round({name}, {SCALE})"
        case Kind.NUMBER:
            # A month that is packed does not know any more with how many zeros a number came: one form wherever it lies.
            name = f"trim_scale({name})"
        case Kind.FLAG | Kind.JSON if fmt is not Format.JSONL:
            name = f"{name}::text"
        case _:
            pass
    return f"{name} AS {column.name}"


class Encoder(Protocol):
    """Makes a file of lines. `batch` is how many lines it wants at a time."""

    batch: int

    def begin(self) -> bytes:
        """What the file starts with."""
        ...

    def lines(self, lines: Sequence[bytes]) -> bytes:
        """What can be written once these are known; each is one whole row."""
        ...

    def end(self) -> bytes:
        """What the file ends with."""
        ...


class Csv:
    """CSV (RFC 4180, lines end with LF) with a header. Null is nothing, an empty text is `""`."""

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
        # Here and not above: it takes a while, and only who exports pays for it.
        import pyarrow as pa
        from pyarrow import parquet

        types: dict[Kind, Any] = {
            Kind.WHOLE: pa.int64(),
            Kind.TEXT: pa.string(),
            Kind.FLAG: pa.bool_(),
            Kind.NUMBER: pa.decimal128(PRECISION, SCALE),
            Kind.TIME: pa.timestamp("us", tz="UTC"),
            Kind.JSON: pa.string(),
        }
        self._types = {column.name: types[column.kind] for column in columns}
        self._sink = _Sink()
        self._writer = parquet.ParquetWriter(
            self._sink, pa.schema(list(self._types.items())), compression="zstd", store_decimal_as_integer=True
        )

    def begin(self) -> bytes:
        return self._sink.taken()

    def lines(self, lines: Sequence[bytes]) -> bytes:
        from pyarrow import csv

        table = csv.read_csv(
            io.BytesIO(b"".join(lines)),
            read_options=csv.ReadOptions(
                column_names=list(self._types), block_size=sum(map(len, lines)) + 1, use_threads=False
            ),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=self._types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=["true"],
                false_values=["false"],
            ),
        )
        self._writer.write_table(table)
        return self._sink.taken()

    def end(self) -> bytes:
        self._writer.close()
        return self._sink.taken()


class _Sink(io.RawIOBase):
    """Keeps what is written until it is taken."""

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

    def taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def encoder(fmt: Format, columns: Sequence[Column]) -> Encoder:
    """A new file of that format."""
    made: dict[Format, Any] = {Format.CSV: Csv, Format.JSONL: Jsonl, Format.PARQUET: Parquet}
    found: Encoder = made[fmt](columns)
    return found
