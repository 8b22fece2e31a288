"""Times as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from menuwatch.core.errors import Refused

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_since(text: str, now: datetime, option: str = "--since", *, sign: int = -1) -> datetime:
    """Parses a time: an age (`90m`, `6h`, `7d`, `2w`; with `sign` 1 a delay), or an ISO 8601 date or time, UTC by default.

    `option` is the option's name in errors.
    """
    age = re.fullmatch(r"(\d{1,6})([mhdw])", text.strip())
    try:
        if age:
            return now + sign * timedelta(**{_UNITS[age[2]]: int(age[1])})
        moment = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise Refused(
            f"{option} {text!r} is not a time: give a date (2026-11-20), a time (2026-11-20T14:30) or an age (6h)"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def parse_past(text: str, now: datetime, option: str = "--since") -> datetime:
    """Parses the start of a period, as `parse_since`; raises Refused for a time in the future, after which there is nothing."""
    moment = parse_since(text, now, option)
    if moment > now:
        raise Refused(f"{option} {text!r} is in the future: give a time no later than now, {now:%Y-%m-%dT%H:%M} UTC")
    return moment
