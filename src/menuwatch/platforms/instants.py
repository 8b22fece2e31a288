"""Platforms' two ways of writing an instant: milliseconds since 1970 as a text, and ISO 8601 with or without a zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def instant(value: str | int | None) -> datetime | None:
    """The instant in UTC; None for null and "". A time without a zone is taken as UTC; digits beyond microseconds are cut.

    Raises ValueError for what is no instant.
    """
    if value is None or value == "":
        return None
    try:
        if isinstance(value, int) or value.isdecimal():
            return _EPOCH + int(value) * _MILLISECOND
        found = datetime.fromisoformat(value)
        if found.tzinfo is UTC:
            return found
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{str(value)[:40]!r} is no instant") from error
