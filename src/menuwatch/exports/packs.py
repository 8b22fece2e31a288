"""States that were moved from the database to files: `history/month=2026-03/states-….parquet` below the storage root.

Each file holds states that ended in its month, sorted by product, with what tells which product it was; other programs read them
as they are. A state may be in two files, or in a file and the database, when packing was cut off: it is the same state, and
counts once.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from menuwatch.exports.sheets import PACKED

FOLDER = "history"
"""Below the storage root."""
_OTHERS = ("provider", "provider_product_id")
"""Columns that a state has in a file and not in the database."""
STATE_COLUMNS = tuple(column.name for column in PACKED if column.name not in _OTHERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """One file: its month, how many states it holds, its size in bytes."""

    month: str
    states: int
    size: int
    file: str


class Packs:
    """The packed states below a storage root."""

    def __init__(self, root: Path) -> None:
        self._root = root / FOLDER

    def new(self, month: datetime) -> Path:
        """A name for a new file of that month, whose folder is there."""
        folder = self._root / f"month={month:%Y-%m}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"states-{uuid.uuid4().hex[:12]}.parquet"

    def remove(self, file: Path) -> None:
        """Removes a file that is not needed, and its folder if nothing else is in it."""
        file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            file.parent.rmdir()

    def files(self) -> list[Path]:
        """Every file, by month."""
        return sorted(self._root.glob("month=*/states-*.parquet"))

    def contents(self) -> list[Content]:
        """What the files hold."""
        files = self.files()
        if not files:
            return []
        from pyarrow import parquet

        return [
            Content(
                month=file.parent.name.removeprefix("month="),
                states=parquet.read_metadata(file).num_rows,
                size=file.stat().st_size,
                file=str(file.relative_to(self._root)),
            )
            for file in files
        ]

    def holds(self, dispensary_id: int, since: datetime | None = None) -> bool:
        """Whether any state of that store is packed, or any that ended at `since` or later."""
        files = self.files()
        wanted: list[tuple[str, str, Any]] = [("dispensary_id", "=", dispensary_id)]
        if since is not None:
            first = f"month={since.astimezone(UTC):%Y-%m}"
            files = [file for file in files if file.parent.name >= first]
            wanted.append(("ended_at", ">=", since))
        if not files:
            return False
        from pyarrow import parquet

        return any(parquet.read_table(file, columns=["product_id"], filters=wanted).num_rows for file in files)

    def states_of(self, product_id: int) -> list[dict[str, Any]]:
        """One product's packed states, as rows of `product_states`. A file's row groups tell which products they hold, so that next to
        nothing is read of most."""
        return self._matching(self.files(), [("product_id", "=", product_id)])

    def states_of_store(self, dispensary_id: int, instant: datetime) -> list[dict[str, Any]]:
        """The packed states that a store's products were in at an instant, as rows of `past_states`."""
        first = f"month={instant.astimezone(UTC):%Y-%m}"
        return self._matching(
            [file for file in self.files() if file.parent.name >= first],
            [("dispensary_id", "=", dispensary_id), ("seen_from", "<=", instant), ("ended_at", ">", instant)],
        )

    def _matching(self, files: list[Path], filters: list[tuple[str, str, Any]]) -> list[dict[str, Any]]:
        if not files:
            return []
        from pyarrow import parquet

        found: list[dict[str, Any]] = []
        for file in files:
            # One handle: a file that is replaced meanwhile is read as it was.
            with file.open("rb") as handle:
                table = parquet.read_table(handle, columns=list(STATE_COLUMNS), filters=filters, use_threads=False)
            found += [_row(row) for row in table.to_pylist()]
        return found


def batches(file: Path) -> Iterator[list[dict[str, Any]]]:
    """All states of one file, as rows of `product_states`, some thousands at a time."""
    from pyarrow import parquet

    with parquet.ParquetFile(file) as opened:
        for batch in opened.iter_batches(columns=list(STATE_COLUMNS), batch_size=8_192, use_threads=False):
            yield [_row(row) for row in batch.to_pylist()]


def _row(row: dict[str, Any]) -> dict[str, Any]:
    for name, value in row.items():
        if isinstance(value, Decimal):
            row[name] = Decimal(f"{value.normalize():f}")
    row["prices"] = msgspec.Raw(row["prices"].encode())
    row["stock"] = msgspec.Raw(row["stock"].encode())
    return row
