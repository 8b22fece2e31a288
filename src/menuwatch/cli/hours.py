"""Columns of requests by hour."""

from __future__ import annotations

from datetime import UTC

from menuwatch.cli.output import Column
from menuwatch.core.format import duration, per_second, size

HOUR_COLUMNS = (
    Column("Hour (UTC)", "start", lambda start: f"{start.astimezone(UTC):%m-%d %H:%M}", rank=1),
    Column("Succeeded", "succeeded"),
    Column("Failed", "failed"),
    Column("Refused", "refused"),
    Column("Data", "bytes", size, align="right"),
    Column("Took", "average_ms", lambda ms: None if ms is None else duration(ms / 1000), align="right"),
    Column("Peak (req/s)", "peak_per_second", per_second, align="right"),
)
