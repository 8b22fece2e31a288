"""How pages say numbers, times and amounts. Pure; the words of spans are those of the operations."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from decimal import Decimal

from markupsafe import Markup

from menuwatch.operations.wording import span

_JUST_NOW_SECONDS = 5
_DAY_SECONDS = 86_400


def number(value: float | Decimal | None) -> str:
    """`1,234`; a dash where there is none."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}".rstrip("0").rstrip(".")


def many(n: int, one: str, more: str | None = None) -> str:
    """`1 task`, `2 tasks`, `1 match`, `2 matches` (`more`)."""
    return f"{n:,} {one if n == 1 else more or one + 's'}"


def money(value: Decimal | float | None) -> str:
    """`$1,234.50`; a dash where there is none."""
    return "–" if value is None else f"${value:,.2f}"


def percent(share: float | None, digits: int = 0) -> str:
    """A share of 1 in percent."""
    return "–" if share is None else f"{share * 100:.{digits}f} %"


def size(count: float | None) -> str:
    """Bytes in the largest fitting unit of 1000."""
    if count is None:
        return "–"
    value, units = float(count), ("B", "kB", "MB", "GB", "TB")
    for unit in units:
        if abs(value) < 1000 or unit == units[-1]:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("the last unit takes everything")


def ago(moment: datetime | None, now: datetime) -> str:
    """`3 min ago`, `in 2 h`, `just now`; `never` where there is no moment."""
    if moment is None:
        return "never"
    seconds = (now - moment).total_seconds()
    if abs(seconds) < _JUST_NOW_SECONDS:
        return "just now"
    words = rough(abs(seconds))
    return f"{words} ago" if seconds > 0 else f"in {words}"


def rough(seconds: float) -> str:
    """A length of time by its largest unit: what a glance needs."""
    for unit, name in ((_DAY_SECONDS, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{int(seconds // unit)} {name}"
    return f"{int(seconds)} s"


def moment(value: datetime | None, zone: tzinfo = UTC) -> str:
    """A moment in full, with its zone."""
    if value is None:
        return "never"
    local = value.astimezone(zone)
    return f"{local:%Y-%m-%d %H:%M:%S} {local.tzname()}"


def clock(value: datetime | None, now: datetime) -> Markup:
    """A `<time>` that says how long ago, and in full on hover or focus; app.js keeps the words fresh."""
    if value is None:
        return Markup('<span class="none">never</span>')
    return Markup('<time datetime="{}" title="{}" data-ago>{}</time>').format(
        value.astimezone(UTC).isoformat(timespec="seconds"), moment(value), ago(value, now)
    )


__all__ = ["ago", "clock", "many", "moment", "money", "number", "percent", "rough", "size", "span"]
