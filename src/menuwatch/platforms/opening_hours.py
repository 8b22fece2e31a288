"""Opening hours in platforms' records of stores. Pure.

Dutchie gives the hours for pickup, by weekday and for special days; Jane the working hours by weekday. Others give none. A weekday for
which Jane lists two different periods is not known: no recording has one, so it is not clear whether both count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any

from msgspec import Struct

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
FIELDS = ("pickupHours", "specialHours", "working_hours")
"""Fields of a record that `read_hours` reads."""

DAY = 24 * 60
"""Minutes of a day."""
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})\s*([ap]m)?", re.IGNORECASE)
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")

Opening = tuple[int, int]
"""Minutes after midnight; the end of one that lasts into the next day is beyond 24 hours."""


class OpenState(Struct, frozen=True, kw_only=True):
    """Whether a store is open. `until` is when that ends, `opens` when it opens next; None if not within a week, or not known."""

    is_open: bool
    today: Opening | None
    until: datetime | None = None
    opens: datetime | None = None


class OpeningHours(Struct, frozen=True, kw_only=True):
    """Hours by weekday (0 is Monday) and for special days. None: closed on that day; a missing weekday is not known."""

    week: Mapping[int, Opening | None]
    special: Mapping[date, Opening | None] = {}
    for_pickup: bool = False
    """They are those of orders for pickup."""

    def on(self, day: date) -> Opening | None:
        """The hours of a day; None if closed or not known."""
        return self.special.get(day, self.week.get(day.weekday())) if self.is_known(day) else None

    def is_known(self, day: date) -> bool:
        """Whether anything is known about that day."""
        return day in self.special or day.weekday() in self.week

    def state(self, now: datetime) -> OpenState | None:
        """The state at a time, in the store's time zone; None if it is not known."""
        today = now.date()
        if not self.is_known(today):
            return None
        for day in (today - timedelta(days=1), today):
            span = self.on(day)
            if span is not None and _at(day, span[0], now) <= now < (end := _at(day, span[1], now)):
                return OpenState(is_open=True, today=self.on(today), until=end)
        for after in range(8):
            day = today + timedelta(days=after)
            if not self.is_known(day):
                break
            span = self.on(day)
            if span is not None and (start := _at(day, span[0], now)) > now:
                return OpenState(is_open=False, today=self.on(today), opens=start)
        return OpenState(is_open=False, today=self.on(today))


def _at(day: date, minutes: int, now: datetime) -> datetime:
    """A time on the clock of the time zone, which stays the same when the clocks change."""
    return datetime(day.year, day.month, day.day, tzinfo=now.tzinfo) + timedelta(minutes=minutes)


def read_hours(record: Any) -> OpeningHours | None:
    """The hours in a record of a store; None if it gives none."""
    if not isinstance(record, dict):
        return None
    week: dict[int, Opening | None] = {}
    special: dict[date, Opening | None] = {}
    pickup = record.get("pickupHours")
    if isinstance(pickup, dict):
        by_name = {str(name).lower(): bounds for name, bounds in pickup.items()}
        for number, name in enumerate(WEEKDAYS):
            bounds = by_name.get(name)
            if isinstance(bounds, dict) and isinstance(bounds.get("active"), bool):
                _set(week, number, bounds, "start", "end", closed=not bounds["active"])
        for day, bounds in _special_days(record.get("specialHours")):
            _set(special, day, bounds, "start", "end", closed=not bounds.get("active"))
        return OpeningHours(week=week, special=special, for_pickup=True) if week else None
    days = record.get("working_hours")
    several: set[int] = set()
    for entry in days if isinstance(days, list) else ():
        name = str(entry.get("day")).lower() if isinstance(entry, dict) else ""
        if name in WEEKDAYS and isinstance(entry.get("period"), dict):
            one: dict[int, Opening | None] = {}
            _set(one, WEEKDAYS.index(name), entry["period"], "from", "to", closed=False)
            several |= {day for day, span in one.items() if week.setdefault(day, span) != span}
    week = {day: span for day, span in week.items() if day not in several}
    return OpeningHours(week=week) if week else None


def _special_days(value: Any) -> list[tuple[date, dict[str, Any]]]:
    found: list[tuple[date, dict[str, Any]]] = []
    for event in value if isinstance(value, list) else ():
        days = event.get("hoursPerDay") if isinstance(event, dict) else None
        for one in days if isinstance(days, list) else ():
            bounds = one.get("pickupHours") if isinstance(one, dict) else None
            if isinstance(bounds, dict) and (match := _DATE.match(str(one.get("date")))):
                try:
                    found.append((date(int(match[1]), int(match[2]), int(match[3])), bounds))
                except ValueError:
                    continue
    return found


def _set(
    hours: dict[Any, Opening | None], key: Any, bounds: Mapping[str, Any], start: str, end: str, *, closed: bool
) -> None:
    if closed:
        hours[key] = None
        return
    first, last = _minutes(bounds.get(start)), _minutes(bounds.get(end))
    if first is not None and last is not None:
        hours[key] = (first, last if last > first else last + DAY)


def _minutes(text: Any) -> int | None:
    """`9:30 PM`, `21:30` and `00:00 AM` as minutes after midnight."""
    match = _CLOCK.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        return None
    hour, minute, half = int(match[1]), int(match[2]), (match[3] or "").lower()
    if hour > (12 if half else 24) or minute > 59:
        return None
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return hour * 60 + minute
