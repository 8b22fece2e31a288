"""Numbers, times and amounts as text, for every interface. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from decimal import Decimal

_JUST_NOW_SECONDS = 5
_DAY, _HOUR, _MINUTE = 86_400, 3600, 60


def duration(seconds: float) -> str:
    """`420 ms`, `1.3 s`, `45 s`, `2 min 5 s`, `3 h 20 min`, `2 d 3 h`: by its two largest units."""
    seconds = max(seconds, 0.0)
    if 0 < seconds < 0.0005:
        return "< 1 ms"
    if 0 < seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    for size, name, small, minor in ((_DAY, "d", _HOUR, "h"), (_HOUR, "h", _MINUTE, "min"), (_MINUTE, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {name}" + (f" {rest} {minor}" if rest else "")
    return f"{whole} s"


def approx_duration(seconds: float) -> str:
    """`2 d`, `45 s`: by its largest unit."""
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= unit:
            return f"{int(seconds // unit)} {name}"
    return f"{int(seconds)} s"


def age(hours: Decimal | float | None) -> str:
    """`3 d 4 h`, `2 h 36 min`, `18 min` for 0.3 hours, `under 1 min`; a dash for None. Hours are known to the minute at best."""
    if hours is None:
        return "–"
    minutes = round(float(hours) * _HOUR / _MINUTE)
    return "under 1 min" if minutes < 1 else duration(minutes * _MINUTE)


def ago(moment: datetime | None, now: datetime) -> str:
    """`3 min ago`, `in 2 h`, `just now`; `never` for None."""
    if moment is None:
        return "never"
    seconds = (now - moment).total_seconds()
    if abs(seconds) < _JUST_NOW_SECONDS:
        return "just now"
    text = approx_duration(abs(seconds))
    return f"{text} ago" if seconds > 0 else f"in {text}"


def timestamp(moment: datetime | None, zone: tzinfo = UTC) -> str:
    """`2026-03-01 12:00:00 UTC`; `never` for None."""
    if moment is None:
        return "never"
    local = moment.astimezone(zone)
    return f"{local:%Y-%m-%d %H:%M:%S} {local.tzname()}"


def pluralize(n: int, noun: str, plural: str | None = None) -> str:
    """`1 task`, `2 tasks`, `1 match`, `2 matches` (`plural`)."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def number(value: float | Decimal | None) -> str:
    """`1,234`; a dash for None."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}".rstrip("0").rstrip(".")


def decimal(value: float) -> str:
    """`0.5`, `2`: no exponent, at most six decimals, no trailing zeros."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def per_second(rate: float) -> str:
    """A rate, to three digits."""
    return decimal(float(f"{rate:.3g}")) if rate < 100 else f"{rate:,.0f}"


_SIGNS = {"USD": "$", "CAD": "CA$"}


def currency_sign(currency: str) -> str:
    """What stands before an amount: `$` for USD, `CA$` for CAD, `EUR ` for another currency."""
    return _SIGNS.get(currency, f"{currency} ")


def money(value: Decimal | float | None, currency: str = "USD") -> str:
    """`$1,234.50`, `CA$1,234.50` for CAD; a dash for None."""
    return "–" if value is None else f"{currency_sign(currency)}{value:,.2f}"


def percent(share: float | None, digits: int = 0) -> str:
    """`12 %` of 0.12; a dash for None."""
    return "–" if share is None else f"{share * 100:.{digits}f} %"


def size(count: float | None) -> str:
    """`1.5 MB`: bytes in the largest fitting unit of 1000; a dash for None."""
    if count is None:
        return "–"
    value, units = float(count), ("B", "kB", "MB", "GB", "TB")
    for unit in units:
        if abs(value) < 1000 or unit == units[-1]:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("the last unit takes everything")


def strip_period(text: str | None) -> str:
    """A reason without its full stop, to be put into a longer sentence."""
    return (text or "no reason given").strip().rstrip(".")
