"""Refreshes as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

WINDOW = timedelta(days=7)
"""What has a length (coverage, time out of stock) is of this time, unless somebody says otherwise (ANALYTICS_WINDOW_DAYS)."""

DAYS = 30
"""New and gone products are counted for each of that many days, or for as many as the window has where those are more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a refresh: how long it took, in seconds, and how many rows it wrote."""

    step: str
    seconds: float
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """A refresh whose figures are read from now on."""

    run_id: int
    started_at: datetime
    window_from: datetime
    window_to: datetime
    seconds: float
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """Another refresh is at it, since `started_at`; None where that has only just begun or ended."""

    run_id: int | None
    started_at: datetime | None
